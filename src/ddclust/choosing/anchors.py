"""Which simple method a network is to learn: decided before training, and without labels.

Of tables a network can learn anything by heart. So simple methods divide the items, and the network learns what one of them found:

1. The graph of nearest neighbours (:mod:`ddclust.choosing.graph`), where gaps part its clusters (:class:`Shown`).
2. A Gaussian mixture, where it explains the data (:mod:`ddclust.choosing.mixtures`).
3. The graph, if it shows other clusters than k-means finds, and shows them again on other items.
4. Otherwise k-means.

The graph is not asked about levels: a category, a yes or no, a gap. Items of one level are each other's neighbours however
little it matters, and divisions along levels part none of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from ddclust.choosing.graph import graph_clusters
from ddclust.choosing.mixtures import COVARIANCES, believed_mixture, mixture_of
from ddclust.data.batches import BatchSource, random_items
from ddclust.data.neighbors import nearest_neighbors
from ddclust.progress import Bar

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

K_MEANS, GRAPH = "k-means", "neighbors"
ASKED_ITEMS = 5000  # simple methods are fitted to at most so many
GRAPH_ITEMS = 10_000  # but the graph that is learnt, to as many as neighbours are found exactly for
BLOCK = 10_000
# Chosen on development tables, see docs/defaults.md. In tables with categories levels have at least .31 of the variance, in
# others at most .08.
FEW_VALUES, SHARE_OF_LEVELS = 3, 0.1  # values of a level at most, with one for gaps
STARTS, STARTS_ON_HALVES, SPLITS = 10, 4, 3
FEWEST_ITEMS = 60  # of which halves have neighbours enough
NEAREST, VOTERS = 10, 10
# Share of what k-means parts, and adjusted Rand index of two halves: so that the graph is learnt instead of k-means, and instead of a
# mixture that would be believed, too.
PARTED, FOUND_AGAIN = 0.85, 0.5
GAPS, SURELY = 0.25, 0.9


class Anchor(Protocol):
    """A simple method that was fitted."""

    @property
    def name(self) -> str:
        """What ``setup_.anchor`` says: "k-means", "neighbors", or the covariances of a mixture."""

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


class FoundGraph(NamedTuple):
    """What the graph of nearest neighbours shows: rows, and their clusters as rows with a single one."""

    X: NDArray[np.float64]
    members: NDArray[np.float64]  # (n, k)

    @property
    def name(self) -> str:
        return GRAPH

    @classmethod
    def of(cls, X: NDArray[np.float64], n_clusters: int) -> Self:
        """The clusters of the graph of the rows."""
        return cls(X, np.eye(n_clusters)[graph_clusters(X, n_clusters)])

    def probabilities(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shares of the clusters among the ten nearest of the known rows.

        Examples
        --------
        >>> known = np.array([[0.0], [0.2], [9.0], [9.2]])
        >>> FoundGraph(known, np.repeat(np.eye(2), 2, axis=0)).probabilities(np.array([[1.0]]))
        array([[0.5, 0.5]])
        """
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=min(VOTERS, len(self.X))).fit(self.X)
        return np.asarray(self.members[search.kneighbors(X, return_distance=False)].mean(axis=1))


def found_anchor(
    source: BatchSource, n_clusters: int, n_fine: int, *, verbose: bool = False
) -> Anchor | None:
    """The simple method that a network is to learn; None if there are hardly more different items than clusters.

    ``n_fine`` is the number of components with which a mixture is compared. With ``verbose`` a bar is shown if this takes more than
    two seconds.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs, make_circles
    >>> from ddclust.data.batches import Scaling
    >>> for X in (make_blobs(600, random_state=0)[0], make_circles(600, factor=0.3, random_state=0)[0]):
    ...     print(found_anchor(BatchSource(X, Scaling.of(X)), 2, 8).name)
    k-means
    neighbors
    """
    X = _rows(source, ASKED_ITEMS)
    if not np.isfinite(X).all() or len(np.unique(X, axis=0)) <= n_clusters:
        return None
    with Bar(
        total=SPLITS + 2, unit="step", desc="asking simple methods", delay=2, disable=not verbose
    ) as bar:
        shown = Shown.by_graph(X, n_clusters, bar.update)
        bar.update(SPLITS - bar.n)
        mixture = None if shown.by_gaps else believed_mixture(X, n_clusters, n_fine)
        bar.update()
        found: Anchor
        if mixture is not None:
            found = mixture
        elif shown.is_found_again:
            found = FoundGraph.of(_rows(source, GRAPH_ITEMS), n_clusters)
        else:
            found = FoundCentres.of(X, n_clusters)
        bar.update()
        return found


def _rows(source: BatchSource, most: int) -> NDArray[np.float64]:
    return source.batch(random_items(len(source), most, seed=0)).numpy().astype(np.float64)


def soft_assignments(anchor: Anchor, source: BatchSource) -> NDArray[np.float32]:
    """The soft assignments of all items, (n, k)."""
    blocks = [slice(start, start + BLOCK) for start in range(0, len(source), BLOCK)]
    found = [anchor.probabilities(source.batch(rows).numpy().astype(np.float64)) for rows in blocks]
    return np.concatenate(found).astype(np.float32)


def labels_by_halves(
    name: str, source: BatchSource, n_clusters: int, *, verbose: bool = False
) -> list[NDArray[np.int64]]:
    """The labels of all items by a simple method that was fitted to half of at most 5,000 items, for three random halvings.

    Networks that learn the same anchor agree whatever it is worth. Whether other items would have given the same clusters says more.
    With ``verbose`` a bar is shown if this takes more than two seconds.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ddclust.data.batches import Scaling
    >>> X, _ = make_blobs(300, random_state=0)
    >>> [labels.shape for labels in labels_by_halves("k-means", BatchSource(X, Scaling.of(X)), 3)][:2]
    [(300,), (300,)]
    """
    X = _rows(source, ASKED_ITEMS)
    halves = [half for seed in range(SPLITS) for half in _halves(len(X), seed)]
    with Bar(halves, unit="half", desc="asking halves of the items", delay=2, disable=not verbose) as bar:
        return [soft_assignments(_fitted(name, X[half], n_clusters), source).argmax(axis=1) for half in bar]


def _fitted(name: str, X: NDArray[np.float64], n_clusters: int) -> Anchor:
    if name == GRAPH:
        return FoundGraph.of(X, n_clusters)
    if name == K_MEANS:
        return FoundCentres.of(X, n_clusters)
    return mixture_of(X, n_clusters, name, STARTS_ON_HALVES)


def _halves(n: int, seed: int) -> list[NDArray[np.intp]]:
    """Random halves of the positions of n rows."""
    return np.array_split(np.random.default_rng(seed).permutation(n), 2)


def in_words(anchor: str) -> str:
    """What is chosen, as a sentence.

    Examples
    --------
    >>> in_words("k-means")
    'k-means explains these data as well: the network learns its clusters.'
    """
    if anchor == GRAPH:
        return "Nearest neighbours show the clusters of these data, and the network learns them."
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


class Shown(NamedTuple):
    """How far the graph of nearest neighbours shows other clusters than k-means finds.

    The rows are halved at random, three times. Each half is divided by its graph and by k-means, and both divisions are judged on the
    other half, whose items join the cluster of most of their ten nearest rows, or of the nearest centre. Both numbers are medians.
    """

    parted: float  # neighbours that the graph's clusters part, by those that k-means parts
    agreement: float  # adjusted Rand index of what two halves say of all rows

    @property
    def by_gaps(self) -> bool:
        """Whether gaps part the clusters, whatever their shapes."""
        return self.parted <= GAPS and self.agreement >= SURELY

    @property
    def is_found_again(self) -> bool:
        """Whether the clusters are others than those of k-means, and those of other items, too."""
        return self.parted <= PARTED and self.agreement >= FOUND_AGAIN

    @classmethod
    def by_graph(
        cls, X: NDArray[np.float64], n_clusters: int, tell: Callable[[], object] = lambda: None
    ) -> Self:
        """What the graph of the rows shows; nothing, if levels make it or the rows are few. ``tell`` is called after each halving.

        Examples
        --------
        >>> from sklearn.datasets import make_circles
        >>> X, _ = make_circles(600, factor=0.3, random_state=0)
        >>> Shown.by_graph(X, 2).by_gaps, Shown.by_graph((X > 0).astype(float), 2).by_gaps
        (True, False)
        """
        from sklearn.metrics import adjusted_rand_score

        nothing = cls(parted=1.0, agreement=0.0)
        if len(X) < max(FEWEST_ITEMS, 6 * n_clusters) or share_of_levels(X) > SHARE_OF_LEVELS:
            return nothing
        near = nearest_neighbors(X, NEAREST).indices
        ratios, agreements = [], []
        for seed in range(SPLITS):
            halves = _halves(len(X), seed)
            by_graph = [FoundGraph.of(X[half], n_clusters).probabilities(X).argmax(axis=1) for half in halves]
            by_k_means = [_k_means(X[half], n_clusters, STARTS_ON_HALVES).predict(X) for half in halves]
            parted = _parted_elsewhere(by_graph, halves, near)
            parted_simply = _parted_elsewhere(by_k_means, halves, near)
            ratios.append(parted / parted_simply if parted_simply > 0 else 1.0)
            agreements.append(adjusted_rand_score(*by_graph))
            tell()
        return cls(float(np.median(ratios)), float(np.median(agreements)))


def _parted_elsewhere(
    divisions: list[NDArray[Any]], halves: list[NDArray[np.intp]], near: NDArray[np.int64]
) -> float:
    """The share of neighbours that a half's division parts in the other half; 1 is that of random labels of the same sizes."""
    found = []
    for labels, others in zip(divisions, halves[::-1], strict=True):
        at_random = 1 - np.square(np.bincount(labels[others]) / len(others)).sum()
        found.append((labels[others, None] != labels[near[others]]).mean() / max(at_random, 1e-12))
    return float(np.mean(found))


def _k_means(X: NDArray[np.float64], n_clusters: int, n_init: int) -> KMeans:
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal rows
        return KMeans(n_clusters, n_init=n_init, random_state=0).fit(X)
