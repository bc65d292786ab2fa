"""Which simple method a network is to learn, if any: decided before training, and without labels.

Of tables a network can learn anything by heart, and where neighbours say nothing its clusters are worse than those of simple
methods. So these are asked first:

1. A Gaussian mixture, where it explains the data (:mod:`ddclust.choosing.mixtures`).
2. Neighbours, if they point to other clusters than k-means finds, and say so again on other items
   (:func:`neighbors_decide`). Then there is no anchor, and the network finds the clusters.
3. Otherwise k-means.

Neighbours are not asked about levels: a category, a yes or no, a gap. Items of one level are each other's neighbours however
little it matters, and divisions along levels part none of them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from ddclust.choosing.grouping import merged_by_pairs
from ddclust.choosing.mixtures import COVARIANCES, believed_mixture
from ddclust.data.batches import BatchSource, random_items
from ddclust.data.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

K_MEANS = "k-means"
ASKED_ITEMS = 5000  # simple methods are fitted to at most so many
BLOCK = 10_000
# Chosen on development tables, see docs/defaults.md. In tables with categories levels have at least .31 of the variance, in
# others at most .08.
FEW_VALUES, SHARE_OF_LEVELS = 3, 0.1  # values of a level at most, with one for gaps
CELLS, CELL_ITEMS = 2, 20  # cells for each fine cluster, and items of a cell on average at least
STARTS, STARTS_ON_HALVES, SPLITS = 10, 4, 5
NEAREST = 10
# Share of what k-means parts, and adjusted Rand index of two halves. Of development tables digits have a share of .67, and
# breast cancer has .97; of the others that are below, R's leafshape has an index of .2 and digits have .7.
PARTED, FOUND_AGAIN = 0.85, 0.5


class Anchor(Protocol):
    """A simple method that was fitted."""

    @property
    def name(self) -> str:
        """What ``setup_.anchor`` says: "k-means", or the covariances of a mixture."""

    def probabilities(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Soft assignments of rows, (n, k)."""


class FoundCentres(NamedTuple):
    """What k-means finds: centres, and the mean squared distance of an item from its own, by feature."""

    centres: NDArray[np.float64]
    variance: float

    @property
    def name(self) -> str:
        return K_MEANS

    @classmethod
    def of(cls, X: NDArray[np.float64], n_clusters: int) -> Self:
        """The best of ten runs of k-means."""
        model = _k_means(X, n_clusters, STARTS)
        return cls(model.cluster_centers_, float(model.inertia_) / X.size)

    def probabilities(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each cluster if all are balls of one size.

        Examples
        --------
        >>> FoundCentres(np.array([[0.0], [2.0]]), 0.5).probabilities(np.array([[0.0], [1.0]])).round(2)
        array([[0.98, 0.02],
               [0.5 , 0.5 ]])
        """
        from sklearn.metrics.pairwise import euclidean_distances

        squares = euclidean_distances(X, self.centres, squared=True)
        return np.asarray(softmax(-squares / (2 * max(self.variance, 1e-12)), axis=1))


def found_anchor(source: BatchSource, n_clusters: int, n_fine: int) -> Anchor | None:
    """The simple method that a network is to learn, None if it is to find the clusters from neighbours.

    ``n_fine`` is the number of clusters that are merged otherwise.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs, make_circles
    >>> from ddclust.data.batches import Scaling
    >>> for X in (make_blobs(600, random_state=0)[0], make_circles(600, factor=0.3, random_state=0)[0]):
    ...     found = found_anchor(BatchSource(X, Scaling.of(X)), 2, 8)
    ...     print(None if found is None else found.name)
    k-means
    None
    """
    some = random_items(len(source), ASKED_ITEMS, seed=0)
    X = source.batch(some).numpy().astype(np.float64)
    if not np.isfinite(X).all() or len(np.unique(X, axis=0)) <= n_clusters:
        return None
    mixture = believed_mixture(X, n_clusters, n_fine)
    if mixture is not None:
        return mixture
    return None if neighbors_decide(X, n_clusters, n_fine) else FoundCentres.of(X, n_clusters)


def soft_assignments(anchor: Anchor, source: BatchSource) -> NDArray[np.float32]:
    """The soft assignments of all items, (n, k)."""
    blocks = [slice(start, start + BLOCK) for start in range(0, len(source), BLOCK)]
    found = [anchor.probabilities(source.batch(rows).numpy().astype(np.float64)) for rows in blocks]
    return np.concatenate(found).astype(np.float32)


def in_words(anchor: str) -> str:
    """What is chosen, as a sentence.

    Examples
    --------
    >>> in_words("k-means")
    'k-means explains these data as well: the network learns its clusters.'
    """
    how = COVARIANCES.get(anchor)
    method = "k-means explains these data as well"
    if how is not None:
        method = f"A Gaussian mixture explains these data ({how})"
    return f"{method}: the network learns its clusters."


def share_of_levels(X: NDArray[np.float64]) -> float:
    """The share of the variance of features with at most three values.

    Examples
    --------
    >>> share_of_levels(np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0], [1.0, 4.0]])).__round__(2)
    0.17
    """
    variances = X.var(axis=0)
    has_few = np.array([len(np.unique(values)) <= FEW_VALUES for values in X.T])
    return float(variances[has_few].sum() / variances.sum())


def neighbors_decide(X: NDArray[np.float64], n_clusters: int, n_fine: int) -> bool:
    """Whether neighbours point to other clusters than k-means finds.

    What a network would find from neighbours is found roughly and fast: small cells of k-means, grouped so that few
    neighbours are parted. The rows are halved at random, five times. Each half is divided by cells and by k-means, and both
    divisions are judged on the other half. Neighbours decide if cells part at most .85 of the neighbours that k-means parts
    there, and if the divisions of both halves agree, with an adjusted Rand index of at least .5. Both are medians.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> X, _ = make_circles(600, factor=0.3, random_state=0)
    >>> neighbors_decide(X, 2, 8), neighbors_decide(X > 0, 2, 8)
    (True, False)
    """
    from sklearn.metrics import adjusted_rand_score

    n_cells = min(CELLS * n_fine, len(X) // CELL_ITEMS)
    if n_cells <= n_clusters or share_of_levels(X) > SHARE_OF_LEVELS:
        return False
    near = nearest_neighbors(X, NEAREST).indices
    ratios, agreements = [], []
    for seed in range(SPLITS):
        halves = np.array_split(np.random.default_rng(seed).permutation(len(X)), 2)
        by_cells = [_by_cells(X[half], n_cells, n_clusters).predict(X) for half in halves]
        by_k_means = [_k_means(X[half], n_clusters, STARTS_ON_HALVES).predict(X) for half in halves]
        parted = _parted_elsewhere(by_cells, halves, near)
        parted_simply = _parted_elsewhere(by_k_means, halves, near)
        ratios.append(parted / parted_simply if parted_simply > 0 else 1.0)
        agreements.append(adjusted_rand_score(*by_cells))
    return bool(np.median(ratios) <= PARTED and np.median(agreements) >= FOUND_AGAIN)


def _parted_elsewhere(
    divisions: list[NDArray[Any]], halves: list[NDArray[np.intp]], near: NDArray[np.int64]
) -> float:
    """The share of neighbours that a half's division parts in the other half; 1 is that of random labels of the same sizes."""
    found = []
    for labels, others in zip(divisions, halves[::-1], strict=True):
        at_random = 1 - np.square(np.bincount(labels[others]) / len(others)).sum()
        found.append((labels[others, None] != labels[near[others]]).mean() / max(at_random, 1e-12))
    return float(np.mean(found))


class _Cells(NamedTuple):
    """Small cells of k-means, and the cluster that each is a part of."""

    model: KMeans
    groups: NDArray[np.int64]

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.groups[self.model.predict(X)]


def _by_cells(X: NDArray[np.float64], n_cells: int, n_clusters: int) -> _Cells:
    """Cells grouped so that few neighbours are parted."""
    model = _k_means(X, n_cells, STARTS_ON_HALVES)
    cells, near = model.labels_, nearest_neighbors(X, NEAREST).indices
    P = np.zeros((n_cells, n_cells))
    np.add.at(P, (np.repeat(cells, NEAREST), cells[near].ravel()), 1)
    P = (P + P.T) / 2
    return _Cells(model, merged_by_pairs(P, P, n_clusters))


def _k_means(X: NDArray[np.float64], n_clusters: int, n_init: int) -> KMeans:
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal rows
        return KMeans(n_clusters, n_init=n_init, random_state=0).fit(X)
