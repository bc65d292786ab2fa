"""What every "auto" stands for, in one place: the parameters of a fit, resolved against the data.

The numbers here were chosen with the classes of development data in sight; docs/defaults.md says of which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ddclust.choosing.selection import Selection
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items, SparseItems
from ddclust.data.validation import resolve_device
from ddclust.data.views import ViewItems
from ddclust.networks import Network, NetworkFactory, NetworkOfViews
from ddclust.objective.augment import BUILT_IN, Affine, Augmentation, Dropout
from ddclust.objective.loss import K_MEANS, TERMS, DDCLoss
from ddclust.objective.objective import ClusteringLoss
from ddclust.objective.pairs import PAIR_TERMS
from ddclust.training.randomness import usual_threads
from ddclust.training.rates import ConstantRate, CosineRate, Rate
from ddclust.training.setup import Setup
from ddclust.training.trainer import EarlyStopping

if TYPE_CHECKING:
    from ddclust.ddc import DDC

AUTO = "auto"
# First learning rates by kind of network: without pairs, with pairs, and with pairs of sparse items.
RATES = {"conv": 1e-3, "mlp": 1e-5}
PAIRS_RATES = {"conv": 3e-3, "mlp": 1e-4}
SPARSE_PAIRS_RATES = {"mlp": 3e-3}
OTHER_RATE = 1e-3
# Weight of orthogonality with pairs: large at the start, so that pairs do not merge clusters, and small once there are
# clusters, whose sizes should then follow the data. Chosen on MNIST.
PAIRS_START_ORTHOGONALITY, PAIRS_ORTHOGONALITY = 50.0, 5.0
# The same with given sizes of clusters, throughout: a stronger start, which draws to equal sizes, would divide large
# classes and merge small ones.
SIZED_ORTHOGONALITY = 25.0
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


def resolve(params: DDC, X: Items, scaling: Scaling) -> Setup:
    """Everything that a fit of X depends on."""
    views = X.view_shapes if isinstance(X, ViewItems) else None
    network = resolved_network(params.network, tuple(X.shape[1:]), views)
    pairs = resolved_pairs(params.augment, params.neighbors, X, loss=params.loss)
    selection = resolved_selection(params.selection)
    rate = resolved_rate(params.learning_rate, network, X, has_pairs=pairs.exist)
    return Setup(
        n_clusters=int(params.n_clusters),
        n_final=params.n_final,
        network=network,
        loss=resolved_loss(params.loss, params.n_clusters, X, scaling, has_pairs=pairs.exist),
        augment=pairs.augment,
        neighbors=pairs.neighbors,
        max_iter=int(params.max_iter),
        batch_size=int(params.batch_size),
        learning_rate=rate,
        early_stopping=resolved_early_stopping(params.early_stopping, rate),
        n_init=int(params.n_init),
        n_vote=int(params.n_vote),
        criterion=selection.criterion,
        halving=selection.halving,
        device=resolve_device(params.device),
        # Several runs train side by side on one thread each; a single one uses all.
        threads=1 if params.n_init > 1 else usual_threads(),
    )


def resolved_network(
    network: Any, item_shape: tuple[int, ...], view_shapes: Sequence[tuple[int, ...]] | None = None
) -> NetworkFactory:
    """The factory of the network for items of a shape, or of several views.

    Examples
    --------
    >>> resolved_network("auto", (28, 28)).kind
    'conv'
    """
    if isinstance(network, str):
        network = Network(network)
    if not isinstance(network, Network):
        return network
    if view_shapes is None:
        return replace(network, kind=network.kind_for(input_shape(item_shape)))
    of_views = NetworkOfViews(network, tuple(view_shapes))
    of_views.kinds()  # refuses views that the network cannot take
    return of_views


def resolved_pairs(augment: Any, neighbors: Any, X: Items, *, loss: Any = AUTO) -> PairsOf:
    """What items are paired with.

    Both parameters must be left at "auto" for the defaults of the kind of data; so must the loss be, or a DDCLoss.
    """
    is_ours = isinstance(loss, (str, DDCLoss))
    if isinstance(augment, str) and augment == AUTO and isinstance(neighbors, str) and is_ours:
        return default_pairs(X)
    if isinstance(neighbors, str):
        neighbors = None
    if isinstance(augment, str):
        augment = None if augment == AUTO else BUILT_IN[augment]
    return PairsOf(augment, neighbors)


def default_pairs(X: Items) -> PairsOf:
    """What items are paired with by default; views are not, and neighbours are only searched in data that fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> default_pairs(np.zeros((50, 28, 28))).neighbors, default_pairs(np.zeros((4, 7))).neighbors
    (2, 3)
    """
    if isinstance(X, ViewItems):
        return PairsOf()
    usual = TEXT_PAIRS if isinstance(X, SparseItems) else IMAGE_PAIRS if len(X.shape) > 2 else VECTOR_PAIRS
    fits_into_memory = isinstance(X, SparseItems) or 4 * math.prod(X.shape) <= MOST_BYTES
    n_neighbors = min(usual.neighbors or 0, len(X) - 1) if fits_into_memory else 0
    return usual._replace(neighbors=n_neighbors or None)


def resolved_loss(
    loss: Any, n_clusters: int, X: Items, scaling: Scaling, *, has_pairs: bool
) -> ClusteringLoss:
    """The loss, with a weight for each term and the sizes that clusters are drawn to."""
    if isinstance(loss, str):
        loss = DDCLoss()
    if not isinstance(loss, DDCLoss):
        return loss
    sizes = loss.cluster_sizes
    if sizes == K_MEANS:
        sizes = k_means_sizes(BatchSource(X, scaling).vectors(), n_clusters)
    if sizes is not None and len(sizes) != n_clusters:
        raise ValueError(f"cluster_sizes holds {len(sizes)} sizes for n_clusters={n_clusters}.")
    weights, start_weights = default_weights(n_clusters, has_pairs=has_pairs, has_sizes=sizes is not None)
    if "orthogonality" in loss.weights:
        start_weights = {}
    return replace(
        loss,
        weights=weights | dict(loss.weights),
        start_weights=dict(loss.start_weights) or start_weights,
        cluster_sizes=sizes,
    )


def default_weights(
    n_clusters: int, *, has_pairs: bool, has_sizes: bool = False
) -> tuple[dict[str, float], dict[str, float]]:
    """Weights of the loss's terms, and those at the start of training.

    With pairs, divergence and corners weigh (k - 1) / 4, half of what they do in the paper's text: with all of it one
    of five runs on MNIST was far behind after 400 iterations, with half of it none was.

    Examples
    --------
    >>> weights, start_weights = default_weights(10, has_pairs=True)
    >>> weights["divergence"], weights["orthogonality"], start_weights
    (2.25, 5.0, {'orthogonality': 50.0})
    """
    weights = dict.fromkeys((*TERMS, *PAIR_TERMS), 1.0)
    if not has_pairs:
        return weights, {}
    weights["divergence"] = weights["corners"] = (n_clusters - 1) / 4
    weights["orthogonality"] = SIZED_ORTHOGONALITY if has_sizes else PAIRS_ORTHOGONALITY
    return weights, {} if has_sizes else {"orthogonality": PAIRS_START_ORTHOGONALITY}


def resolved_selection(selection: Any) -> Selection:
    """How runs are ranked and eliminated."""
    return Selection(selection) if isinstance(selection, str) else selection


def resolved_rate(learning_rate: Any, network: NetworkFactory, X: Items, *, has_pairs: bool) -> Rate:
    """The learning rate; it falls along a cosine if there are pairs, unless an object says otherwise."""
    if isinstance(learning_rate, (ConstantRate, CosineRate)):
        return learning_rate
    if isinstance(learning_rate, str):
        rates = RATES
        if has_pairs:
            rates = SPARSE_PAIRS_RATES if isinstance(X, SparseItems) else PAIRS_RATES
        learning_rate = max(rates.get(kind, OTHER_RATE) for kind in _kinds(network))
    return CosineRate(float(learning_rate)) if has_pairs else ConstantRate(float(learning_rate))


def resolved_early_stopping(early_stopping: Any, rate: Rate) -> EarlyStopping | None:
    """When runs have converged: never by default if the learning rate falls to zero at the end."""
    if isinstance(early_stopping, str):
        return None if isinstance(rate, CosineRate) else EarlyStopping()
    return early_stopping


def k_means_sizes(vectors: Any, n_clusters: int) -> list[int]:
    """Sizes of the clusters that k-means finds, at least 1 each."""
    import numpy as np
    from sklearn.cluster import KMeans

    labels = KMeans(n_clusters, n_init=4, random_state=0).fit_predict(vectors)
    return np.maximum(np.bincount(labels, minlength=n_clusters), 1).tolist()


def _kinds(network: NetworkFactory) -> list[str]:
    """Which built-in network each view gets; "custom" for a network of the user's own."""
    if isinstance(network, NetworkOfViews):
        return network.kinds()
    return [network.kind if isinstance(network, Network) else "custom"]
