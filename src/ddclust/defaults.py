"""What every "auto" stands for, in one place: the parameters of a fit, resolved against the data.

The numbers here were chosen with the classes of development data in sight; docs/defaults.md says of which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ddclust.choosing.anchors import Anchor, found_anchor
from ddclust.choosing.k_means import k_means_labels
from ddclust.choosing.selection import Selection
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items, SparseItems
from ddclust.data.validation import resolve_device
from ddclust.data.views import ViewItems
from ddclust.encoders import FittedEncoder
from ddclust.networks import Network, NetworkFactory, NetworkOfViews
from ddclust.objective.augment import BUILT_IN, Affine, Augmentation, Dropout
from ddclust.objective.loss import K_MEANS, TERMS, DDCLoss
from ddclust.objective.objective import ClusteringLoss
from ddclust.objective.pairs import ANCHOR, PAIR_TERMS, PAIRS
from ddclust.objective.precision import is_native
from ddclust.objective.regrouping import FineStage
from ddclust.progress import shows_progress
from ddclust.training.randomness import usual_threads
from ddclust.training.rates import ConstantRate, CosineRate, Rate
from ddclust.training.setup import Setup
from ddclust.training.trainer import EarlyStopping

if TYPE_CHECKING:
    from ddclust.ddc import DDC

AUTO = "auto"
# First learning rates by kind of network: without pairs, with pairs, and with pairs of vectors, dense or sparse.
RATES = {"conv": 1e-3, "mlp": 1e-5}
PAIRS_RATES = {"conv": 3e-3, "mlp": 1e-4}
VECTOR_PAIRS_RATES = {"mlp": 3e-3}
OTHER_RATE = 1e-3
# Weight of orthogonality with pairs: large at the start, so that pairs do not merge clusters, and small once there are
# clusters, whose sizes should then follow the data. Chosen on MNIST.
PAIRS_START_ORTHOGONALITY, PAIRS_ORTHOGONALITY = 50.0, 5.0
# The same with given sizes of clusters, throughout: a stronger start, which draws to equal sizes, would divide large
# classes and merge small ones.
SIZED_ORTHOGONALITY = 25.0
# They are for at most so many clusters, and grow with this power of their number beyond. Two clusters of 1/k of the items that
# become one add 2/k^2 to the orthogonality, but up to a share of 2/k of the pairs is then no longer parted; and the finer the clusters,
# the more pairs they part. Chosen on AG News and digits, in 20 and 50 clusters.
FEW_CLUSTERS, CROWDING = 12, 1.5
# By default the network has this many clusters for each one that is asked for, and at least so many more; they are merged
# after training. Chosen on digits and on blobs of 850, 120 and 30 points.
FINE_CLUSTERS, MORE_CLUSTERS = 3, 6
FEWEST_FINE = 2  # of vectors, for each cluster; three blobs are not made of four clusters of one size
FINE_ITEMS = 50  # items of a fine cluster on average, at least: five times the neighbours of vectors
FINE_IMAGES = 20  # the same of images, ten times their neighbours
# First learning rate for features of encoders. On AG News by "minilm", 3e-3, 1e-3, 5e-4 and 3e-4 gave .862, .864, .867 and .866.
ENCODED_RATE = 5e-4
# Weight, first learning rate and iterations at most of what a network learns from a simple method. On iris, wine and
# blobs 300 iterations were enough for the same clusters.
ANCHOR_WEIGHT, ANCHOR_RATE, ANCHOR_ITERATIONS = 10.0, 1e-3, 1000
# When the sizes of texts' clusters are estimated by words, as a share of training, and the weight of these assignments from
# then on.
WORDS_AT, WORDS_WEIGHT = 0.6, 1.0
# Weight, at the start, of the clusters of k-means with which runs on features of encoders begin. It falls to 0. On AG News
# by "minilm", 10, .5 and .1 gave .862, .864 and .849.
START_WEIGHT = 0.5
MOST_BYTES = 2 * 2**30  # of dense items as float32, up to which neighbours are searched in memory


class PairsOf(NamedTuple):
    """How items are paired: with augmented copies, with nearest neighbours, with both, or not at all."""

    augment: Augmentation | None = None
    neighbors: int | None = None

    @property
    def exist(self) -> bool:
        return self.augment is not None or self.neighbors is not None


IMAGE_PAIRS = PairsOf(Affine(), 2)
TEXT_PAIRS = PairsOf(Dropout(0.8), 20)
VECTOR_PAIRS = PairsOf(None, 10)
ENCODED_PAIRS = PairsOf(None, 20)  # by topics; their number was chosen on reuters21578-balanced by "minilm"


def resolve(
    params: DDC,
    X: Items,
    scaling: Scaling,
    *,
    has_links: bool = False,
    anchor: Anchor | None = None,
) -> Setup:
    """Everything that a fit of X depends on; ``anchor`` is what :func:`resolved_anchor` gives."""
    views = X.view_shapes if isinstance(X, ViewItems) else None
    network = resolved_network(params.network, tuple(X.shape[1:]), views)
    encoder: FittedEncoder | None = getattr(params, "encoder_", None)
    pairs = resolved_pairs(
        params.augment, params.neighbors, X, loss=params.loss, is_encoded=encoder is not None
    )
    if anchor is not None:
        pairs = PairsOf()
    selection, device = resolved_selection(params.selection), resolve_device(params.device)
    has_anchor = anchor is not None
    rate = resolved_rate(
        params.learning_rate, network, X, has_pairs=pairs.exist, has_anchor=has_anchor, encoder=encoder
    )
    # Encoders bring items of one class together, so that merging has nothing to gain: with it, AG News had .76, not .87.
    is_usual = isinstance(params.loss, str) and isinstance(network, Network) and encoder is None
    can_merge = is_usual and pairs.exist and not has_links
    is_ours = isinstance(params.loss, (str, DDCLoss))
    starts = encoder is not None and pairs.exist and is_ours and params.anchor == AUTO
    n_clusters, n_final = resolved_merging(params, X, can_merge=can_merge)
    fine = resolved_fine_stage(X, n_clusters, n_final) if can_merge and params.n_final == AUTO else None
    return Setup(
        n_clusters=n_clusters,
        n_final=n_final,
        network=network,
        loss=(
            resolved_loss(
                params.loss,
                n_clusters,
                X,
                scaling,
                has_pairs=pairs.exist,
                has_start=starts,
                n_wanted=n_final or n_clusters,
            )
            if fine is None
            else loss_after(fine, X)
        ),
        fine=fine,
        augment=pairs.augment,
        neighbors=pairs.neighbors,
        max_iter=min(int(params.max_iter), ANCHOR_ITERATIONS) if has_anchor else int(params.max_iter),
        batch_size=int(params.batch_size),
        learning_rate=rate,
        early_stopping=resolved_early_stopping(params.early_stopping, rate),
        n_init=int(params.n_init),
        n_vote=int(params.n_vote),
        criterion=selection.criterion,
        halving=selection.halving,
        device=device,
        precision=resolved_precision(params.precision, network, device),
        # Several runs train side by side on one thread each; a single one uses all.
        threads=1 if params.n_init > 1 else usual_threads(),
        anchor=None if anchor is None else anchor.name,
        encoder=None if encoder is None else str(encoder),
        start=K_MEANS if starts else None,
    )


def resolved_anchor(params: DDC, X: Items, scaling: Scaling, *, has_links: bool = False) -> Anchor | None:
    """The simple method that the network is to learn, if any; see :mod:`ddclust.choosing.anchors`.

    Only dense vectors have one, and only if nothing was set that takes part in finding clusters: no loss, pairs, links,
    network of the user's own, or merging. Features of encoders are left to the network.
    """
    at_auto = (params.anchor, params.loss, params.augment, params.neighbors, params.n_final)
    is_left_to_us = (
        all(isinstance(value, str) and value == AUTO for value in at_auto)
        and isinstance(params.network, (str, Network))
        and resolved_selection(params.selection).criterion != PAIRS
        and not has_links
        and not hasattr(params, "encoder_")
    )
    is_dense = are_vectors(X) and not isinstance(X, SparseItems)
    if not (is_left_to_us and is_dense and params.n_clusters > 1 and default_pairs(X).exist):
        return None
    n_clusters = int(params.n_clusters)
    verbose = shows_progress(params.verbose)
    return found_anchor(BatchSource(X, scaling), n_clusters, _many(n_clusters), verbose=verbose)


def resolved_network(
    network: Any, item_shape: tuple[int, ...], view_shapes: Sequence[tuple[int, ...]] | None = None
) -> NetworkFactory:
    """The factory of the network for items of a shape, or of several views.

    Examples
    --------
    >>> resolved_network(Network(init="auto"), (28, 28))
    Network(kind='conv', init='he', norm_first=False)
    """
    if isinstance(network, str):
        network = Network(network)
    if not isinstance(network, Network):
        return network
    if view_shapes is None:
        kind = network.kind_for(input_shape(item_shape))
        return replace(network, kind=kind, init=network.init_for([kind]))
    of_views = NetworkOfViews(network, tuple(view_shapes))
    of_views.kinds()  # refuses views that the network cannot take
    return of_views


def resolved_pairs(
    augment: Any, neighbors: Any, X: Items, *, loss: Any = AUTO, is_encoded: bool = False
) -> PairsOf:
    """What items are paired with.

    Both parameters must be left at "auto" for the defaults of the kind of data; so must the loss be, or a DDCLoss.
    """
    is_ours = isinstance(loss, (str, DDCLoss))
    if isinstance(augment, str) and augment == AUTO and isinstance(neighbors, str) and is_ours:
        return default_pairs(X, is_encoded=is_encoded)
    if isinstance(neighbors, str):
        neighbors = None
    if isinstance(augment, str):
        augment = None if augment == AUTO else BUILT_IN[augment]
    return PairsOf(augment, neighbors)


def default_pairs(X: Items, *, is_encoded: bool = False) -> PairsOf:
    """What items are paired with by default; views are not, and neighbours are only searched in data that fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> default_pairs(np.zeros((50, 28, 28))).neighbors, default_pairs(np.zeros((4, 7))).neighbors
    (2, 3)
    """
    if isinstance(X, ViewItems):
        return PairsOf()
    of_vectors = ENCODED_PAIRS if is_encoded else VECTOR_PAIRS
    usual = TEXT_PAIRS if isinstance(X, SparseItems) else IMAGE_PAIRS if len(X.shape) > 2 else of_vectors
    fits_into_memory = isinstance(X, SparseItems) or 4 * math.prod(X.shape) <= MOST_BYTES
    n_neighbors = min(usual.neighbors or 0, len(X) - 1) if fits_into_memory else 0
    return usual._replace(neighbors=n_neighbors or None)


def resolved_merging(params: DDC, X: Items, *, can_merge: bool) -> tuple[int, int | None]:
    """How many clusters are trained, and how many they are merged into, None if they are left as they are."""
    n_clusters = int(params.n_clusters)
    if not isinstance(params.n_final, str):
        return n_clusters, params.n_final
    n_fine = fine_clusters(n_clusters, X, params.batch_size) if can_merge else n_clusters
    return n_fine, n_clusters if n_fine > n_clusters else None


def fine_clusters(n_clusters: int, X: Items, batch_size: int) -> int:
    """How many clusters to train for ``n_clusters`` after merging, if nothing else is said.

    The orthogonality term draws clusters to one size. Of many small ones, a large class takes several and a rare one
    its own, and merging leaves them in their own sizes. Texts, whose classes overlap, gain nothing by it.

    Examples
    --------
    >>> import numpy as np
    >>> [fine_clusters(k, np.zeros((5000, 2)), 100) for k in (1, 2, 3, 10, 20, 60)]
    [1, 8, 9, 30, 50, 60]
    >>> fine_clusters(10, np.zeros((500, 8, 8)), 100)
    25
    """
    if n_clusters == 1 or isinstance(X, SparseItems):
        return n_clusters
    n_items, fewest = (FINE_IMAGES, 1) if groups_in_training(X) else (FINE_ITEMS, FEWEST_FINE)
    n_fine = min(_many(n_clusters), batch_size // 2, len(X) // n_items)
    return n_fine if n_fine >= fewest * n_clusters else n_clusters


def resolved_fine_stage(X: Items, n_clusters: int, n_final: int | None) -> FineStage | None:
    """The first part of training, if the sizes of clusters are found in its course: images by groups, texts by words."""
    if isinstance(X, SparseItems):
        if not 1 < n_clusters <= FEW_CLUSTERS:
            return None
        return FineStage(n_clusters, loss_of_pairs(n_clusters, n_clusters), WORDS_AT)
    if n_final is None or not groups_in_training(X):
        return None
    return FineStage(n_final, loss_of_pairs(n_clusters, n_final))


def groups_in_training(X: Items) -> bool:
    """Whether fine clusters are grouped in the course of training, as those of images are, rather than after it."""
    return len(X.shape) > 2


def are_vectors(X: Items) -> bool:
    """Whether items are vectors, dense or sparse, of a single view."""
    return len(X.shape) == 2 and not isinstance(X, ViewItems)


def _many(n_clusters: int) -> int:
    return max(FINE_CLUSTERS * n_clusters, n_clusters + MORE_CLUSTERS)


def resolved_loss(
    loss: Any,
    n_clusters: int,
    X: Items,
    scaling: Scaling,
    *,
    has_pairs: bool,
    has_start: bool = False,
    n_wanted: int,
) -> ClusteringLoss:
    """The loss, with a weight for each term and the sizes that clusters are drawn to.

    ``n_wanted`` of the ``n_clusters`` are left after merging.
    """
    if isinstance(loss, str):
        loss = DDCLoss()
    if not isinstance(loss, DDCLoss):
        return loss
    sizes = loss.cluster_sizes
    if sizes == K_MEANS:
        sizes = k_means_sizes(BatchSource(X, scaling).vectors(), n_clusters)
    if sizes is not None and len(sizes) != n_clusters:
        raise ValueError(f"cluster_sizes holds {len(sizes)} sizes for n_clusters={n_clusters}.")
    weights, start_weights = default_weights(
        n_clusters, has_pairs=has_pairs, has_sizes=sizes is not None, n_wanted=n_wanted
    )
    if "orthogonality" in loss.weights:
        start_weights = {}
    if has_start:
        weights[ANCHOR], start_weights[ANCHOR] = 0.0, START_WEIGHT
    return replace(
        loss,
        weights=weights | dict(loss.weights),
        start_weights=dict(loss.start_weights) or start_weights,
        cluster_sizes=sizes,
    )


def default_weights(
    n_clusters: int, *, has_pairs: bool, has_sizes: bool = False, n_wanted: int | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Weights of the loss's terms, and those at the start of training, if ``n_wanted`` clusters are left after merging.

    With pairs, divergence and corners weigh (k - 1) / 4, half of what they do in the paper's text: with all of it one
    of five runs on MNIST was far behind after 400 iterations, with half of it none was.

    Examples
    --------
    >>> weights, start_weights = default_weights(10, has_pairs=True)
    >>> weights["divergence"], weights["orthogonality"], start_weights
    (2.25, 5.0, {'orthogonality': 50.0})
    >>> default_weights(48, has_pairs=True)[1], default_weights(48, has_pairs=True, n_wanted=12)[1]
    ({'orthogonality': 400.0}, {'orthogonality': 50.0})
    """
    weights = dict.fromkeys((*TERMS, *PAIR_TERMS), 1.0) | {ANCHOR: ANCHOR_WEIGHT}
    if not has_pairs:
        return weights, {}
    weights["divergence"] = weights["corners"] = (n_clusters - 1) / 4
    more = max((n_wanted or n_clusters) / FEW_CLUSTERS, 1.0) ** CROWDING
    weights["orthogonality"] = more * (SIZED_ORTHOGONALITY if has_sizes else PAIRS_ORTHOGONALITY)
    return weights, {} if has_sizes else {"orthogonality": more * PAIRS_START_ORTHOGONALITY}


def loss_of_pairs(n_clusters: int, n_wanted: int) -> DDCLoss:
    """The loss with pairs if nothing else is said."""
    weights, start_weights = default_weights(n_clusters, has_pairs=True, n_wanted=n_wanted)
    return DDCLoss(weights=weights, start_weights=start_weights)


def loss_after(fine: FineStage, X: Items) -> DDCLoss:
    """The loss with pairs once clusters have sizes of their own."""
    loss = replace(loss_of_pairs(fine.n_groups, fine.n_groups), start_weights={})
    if isinstance(X, SparseItems):
        loss = replace(loss, weights={**loss.weights, ANCHOR: WORDS_WEIGHT})
    return loss


def resolved_selection(selection: Any) -> Selection:
    """How runs are ranked and eliminated."""
    return Selection(selection) if isinstance(selection, str) else selection


def resolved_rate(
    learning_rate: Any,
    network: NetworkFactory,
    X: Items,
    *,
    has_pairs: bool,
    has_anchor: bool = False,
    encoder: FittedEncoder | None = None,
) -> Rate:
    """The learning rate; it falls along a cosine if there are pairs or an anchor, unless an object says otherwise."""
    if isinstance(learning_rate, (ConstantRate, CosineRate)):
        return learning_rate
    if isinstance(learning_rate, str) and has_anchor:
        learning_rate = ANCHOR_RATE
    if isinstance(learning_rate, str) and encoder is not None and has_pairs and "mlp" in _kinds(network):
        learning_rate = ENCODED_RATE
    if isinstance(learning_rate, str):
        rates = RATES
        if has_pairs:
            rates = VECTOR_PAIRS_RATES if are_vectors(X) else PAIRS_RATES
        learning_rate = max(rates.get(kind, OTHER_RATE) for kind in _kinds(network))
    falls = has_pairs or has_anchor
    return CosineRate(float(learning_rate)) if falls else ConstantRate(float(learning_rate))


def resolved_early_stopping(early_stopping: Any, rate: Rate) -> EarlyStopping | None:
    """When runs have converged: never by default if the learning rate falls to zero at the end."""
    if isinstance(early_stopping, str):
        return None if isinstance(rate, CosineRate) else EarlyStopping()
    return early_stopping


def resolved_precision(precision: str, network: NetworkFactory, device: torch.device) -> str:
    """The precision of the network in training; "auto" is bfloat16 where that saves time.

    Examples
    --------
    >>> resolved_precision("auto", Network("mlp"), torch.device("cpu"))
    'float32'
    """
    if precision != AUTO:
        return precision
    return "bfloat16" if "conv" in _kinds(network) and is_native("bfloat16", device) else "float32"


def k_means_sizes(vectors: Any, n_clusters: int) -> list[int]:
    """Sizes of the clusters that k-means finds, at least 1 each."""
    labels = k_means_labels(vectors, n_clusters)
    return np.maximum(np.bincount(labels, minlength=n_clusters), 1).tolist()


def _kinds(network: NetworkFactory) -> list[str]:
    """Which built-in network each view gets; "custom" for a network of the user's own."""
    if isinstance(network, NetworkOfViews):
        return network.kinds()
    return [network.kind if isinstance(network, Network) else "custom"]
