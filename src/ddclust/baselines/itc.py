"""ITC: hierarchical information theoretic clustering by the Cauchy-Schwarz divergence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state
from tqdm import tqdm

from ddclust.baselines.vectors import VectorClusterer
from ddclust.choosing.consensus import majority_vote
from ddclust.choosing.metrics import order_by_size
from ddclust.data.neighbors import centred
from ddclust.data.validation import Interval, StrOptions, fit_context
from ddclust.objective.kernels import median_bandwidth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNLABELLED = -1
NEGLIGIBLE = 45.0  # exp(-45) times thousands of terms is less than the rounding of their sum
BLOCK = 1024  # items whose distances to all landmarks are in memory at once


def log_cut(log_overlaps: Floats) -> float:
    """The log of the sum over all pairs of clusters of M_ij / sqrt(M_ii M_jj): small for clusters far apart.

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)
        The log of M, the overlaps of clusters, up to factors of each cluster, which cancel.

    Examples
    --------
    >>> M = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> round(math.exp(log_cut(np.log(M))), 6)
    0.5
    """
    return float(_log_sum(_log_ratios(log_overlaps)[np.triu_indices(len(log_overlaps), 1)]))


def cauchy_schwarz_divergence(log_overlaps: Floats) -> float:
    """-log of the mean over all pairs of clusters of M_ij / sqrt(M_ii M_jj); 0 for a single cluster.

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)
        See :func:`log_cut`.

    Examples
    --------
    >>> cauchy_schwarz_divergence(np.log([[4.0, 2.0], [2.0, 1.0]]))
    0.0
    """
    n_clusters = len(log_overlaps)
    if n_clusters == 1:
        return 0.0
    return math.log(math.comb(n_clusters, 2)) - log_cut(log_overlaps)


def _log_ratios(log_overlaps: Floats) -> Floats:
    """The log of M_ij / sqrt(M_ii M_jj)."""
    own = log_overlaps.diagonal()
    return log_overlaps - (own[:, None] + own) / 2


def _log_sum(logs: Floats) -> Floats:
    """The log of the sum of the last axis, for values and numbers of any size, without scipy's overhead."""
    if logs.shape[-1] == 0:
        return np.full(logs.shape[:-1], -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]


def _grouped_log_sum(logs: Floats, groups: Ints, n_groups: int) -> Floats:
    """The log of the sum of each group; -inf for a group of none."""
    top = np.full(n_groups, -np.inf)
    np.maximum.at(top, groups, logs)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(groups, np.exp(logs - top[groups]), n_groups)) + top


def _log_sums_by_label(logs: Floats, labels: Ints, n_labels: int) -> Floats:
    """The log of the sums of each row's values with each label, of shape (rows, n_labels)."""
    groups = np.arange(len(logs))[:, None] * n_labels + labels
    return _grouped_log_sum(logs.ravel(), groups.ravel(), len(logs) * n_labels).reshape(-1, n_labels)


def log_cuts_without_each(log_overlaps: Floats) -> Floats:
    """:func:`log_cut` of the other clusters, for each cluster.

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)

    Returns
    -------
    ndarray of shape (n_clusters,)

    Examples
    --------
    >>> M = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]])
    >>> np.exp(log_cuts_without_each(np.log(M))).round(6)
    array([0.2, 0.1, 0.5])
    """
    n_clusters = len(log_overlaps)
    i, j = np.triu_indices(n_clusters, 1)
    each = np.arange(n_clusters)[:, None]
    pairs = np.where((i == each) | (j == each), -np.inf, _log_ratios(log_overlaps)[i, j])
    return _log_sum(
        pairs
    )  # summed anew for each: a difference of sums would lose all digits of the small ones


def log_cuts_if_joined(log_overlaps: Floats, joined: Floats) -> Floats:
    """:func:`log_cut` of all clusters after one more point has joined the first, the second, ...

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)
        Without the point.
    joined : ndarray of shape (n_points, n_clusters, n_clusters)
        For each of some points that may do so: row t holds the log overlaps of cluster t with all, if it joins t.

    Returns
    -------
    ndarray of shape (n_points, n_clusters)
    """
    own = joined.diagonal(axis1=1, axis2=2)
    ratios = joined - (own[:, :, None] + log_overlaps.diagonal()) / 2
    _set_diagonals(ratios, -np.inf)
    return np.logaddexp(log_cuts_without_each(log_overlaps), _log_sum(ratios))


def _set_diagonals(matrices: Floats, values: Floats | float) -> None:
    """Write values of shape (n, k), or one, to the diagonals of matrices of shape (n, k, k)."""
    diagonal = np.arange(matrices.shape[1])
    matrices[:, diagonal, diagonal] = values


class Clusters(Protocol):
    """What the search needs to know of growing clusters, whatever the estimate of their densities."""

    labels: Ints

    @property
    def n_clusters(self) -> int: ...

    @property
    def log_overlaps(self) -> Floats:
        """Of the clusters as they are, for the choice of a cluster for a point."""

    def log_overlaps_to_judge(self) -> Floats:
        """The same, for the choice of the worst cluster and the divergence."""

    def row(self, point: int) -> Floats:
        """What :meth:`joined` needs to know of a point, of shape (1, n)."""

    def joined(self, rows: Floats) -> _Joined:
        """The overlaps if each of some points, by itself, joined each of the clusters."""

    def add(self, point: int, cluster: int, joined: _Joined) -> None: ...

    def dissolve(self, cluster: int) -> None: ...


class _Joined(NamedTuple):
    """The clusters' overlaps if a point joined each of them, for some points."""

    log_overlaps: Floats  # (n, k, k): row t is that of cluster t, if the point joins it
    outward: Floats  # (n, k, k): the same before the two directions are averaged, seen from cluster t
    inward: Floats  # (n, k, k): in column t, and seen from the others


class ParzenClusters:
    """Clusters with Parzen densities: M_ij is the sum of the kernel over all pairs of a point of i and one of j.

    Parameters
    ----------
    log_kernel : ndarray of shape (n, n)
        Of the Gaussian with variance 2 sigma^2, up to a constant factor: -|x - y|^2 / (4 sigma^2).
    labels : ndarray of shape (n,)
        0 to n_clusters - 1; -1 for points that have none yet.

    Examples
    --------
    >>> clusters = ParzenClusters(np.log([[1.0, 0.5], [0.5, 1.0]]), np.array([0, 1]))
    >>> np.exp(clusters.log_overlaps)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, log_kernel: Floats, labels: Ints) -> None:
        self.log_kernel = log_kernel
        self.labels = labels.copy()
        n_clusters = labels.max() + 1
        self.log_overlaps = np.empty((n_clusters, n_clusters))
        members = [labels == cluster for cluster in range(n_clusters)]
        for i, of_i in enumerate(members):
            for j, of_j in enumerate(members):
                self.log_overlaps[i, j] = _log_sum(log_kernel[of_i][:, of_j].ravel())

    @property
    def n_clusters(self) -> int:
        return len(self.log_overlaps)

    def log_overlaps_to_judge(self) -> Floats:
        return self.log_overlaps

    def row(self, point: int) -> Floats:
        return self.log_kernel[point, None]

    def joined(self, rows: Floats) -> _Joined:
        members = np.flatnonzero(self.labels >= 0)
        sums = _log_sums_by_label(rows[:, members], self.labels[members], self.n_clusters)  # (n, k)
        log_overlaps = np.logaddexp(self.log_overlaps, sums[:, None])
        # Within its cluster the point meets each of the others twice and itself once.
        own = np.logaddexp(np.logaddexp(self.log_overlaps.diagonal(), np.log(2) + sums), 0.0)
        _set_diagonals(log_overlaps, own)
        return _Joined(log_overlaps, log_overlaps, log_overlaps)

    def add(self, point: int, cluster: int, joined: _Joined) -> None:
        self.labels[point] = cluster
        self.log_overlaps[cluster] = self.log_overlaps[:, cluster] = joined.log_overlaps[0, cluster]

    def dissolve(self, cluster: int) -> None:
        self.labels = _labels_without(self.labels, cluster)
        self.log_overlaps = _without(self.log_overlaps, cluster)


class NeighborClusters:
    """Clusters with k-nearest-neighbour densities: M_ij is the sum over the points of i of 1 / V^alpha.

    V is the volume of the ball that reaches the k-th neighbour in j. Between clusters k is small; within one,
    the ball reaches the farthest point when a point is placed, and the k-th neighbour when clusters are judged.

    Parameters
    ----------
    log_distances : ndarray of shape (n, n)
        Finite, also on the diagonal.
    labels : ndarray of shape (n,)
        0 to n_clusters - 1; -1 for points that have none yet.
    n_neighbors : int
        k. Every cluster has that many members.
    power : float
        Of the distance: V^alpha is r^power, up to a factor that cancels.
    """

    def __init__(self, log_distances: Floats, labels: Ints, n_neighbors: int, power: float) -> None:
        self.log_distances = log_distances
        self.labels = labels.copy()
        self.power = power
        n, n_clusters = len(labels), labels.max() + 1
        # Log distances to the nearest points of each cluster, in order, oneself left out.
        self.nearest = np.full((n_neighbors, n_clusters, n), np.inf)
        self.farthest = np.empty((n_clusters, n))
        self._directed = np.empty((n_clusters, n_clusters))  # M_ij seen from i: its points' balls into j
        labelled = np.flatnonzero(labels >= 0)
        for cluster in range(n_clusters):
            members = np.flatnonzero(labels == cluster)
            to_members = log_distances[members]  # (size, n)
            self.farthest[cluster] = to_members.max(axis=0)
            to_members[np.arange(len(members)), members] = np.inf
            to_members.sort(axis=0)
            size = min(n_neighbors, len(members))
            self.nearest[:size, cluster] = to_members[:size]
            self._directed[:, cluster] = _grouped_log_sum(
                -power * self.nearest[-1, cluster, labelled], labels[labelled], n_clusters
            )
        own = self.farthest[labels[labelled], labelled]
        np.fill_diagonal(self._directed, _grouped_log_sum(-power * own, labels[labelled], n_clusters))

    @property
    def n_clusters(self) -> int:
        return len(self._directed)

    @property
    def log_overlaps(self) -> Floats:
        return np.logaddexp(self._directed, self._directed.T) - np.log(2)

    def log_overlaps_to_judge(self) -> Floats:
        labelled = np.flatnonzero(self.labels >= 0)
        own = self.nearest[-1, self.labels[labelled], labelled]
        # A cluster of one has no neighbour within; the smallest distance that there is stands for it.
        own = np.where(np.isposinf(own), self.log_distances[labelled, labelled], own)
        log_overlaps = self.log_overlaps
        within = _grouped_log_sum(-self.power * own, self.labels[labelled], self.n_clusters)
        np.fill_diagonal(log_overlaps, within)
        return log_overlaps

    def row(self, point: int) -> Floats:
        return self.log_distances[point, None]

    def joined(self, rows: Floats) -> _Joined:
        k, power = self.n_clusters, self.power
        members = np.flatnonzero(self.labels >= 0)
        labels, to_members = self.labels[members], rows[:, members]
        nearest, farthest = self._reaches(to_members, labels)  # (n, k)
        outward = np.logaddexp(self._directed, -power * nearest[:, None])
        inward = np.logaddexp(self._directed, self._gains(rows))
        reach = np.maximum(self.farthest[labels, members], to_members)
        own = np.logaddexp(_log_sums_by_label(-power * reach, labels, k), -power * farthest)
        _set_diagonals(outward, own)
        _set_diagonals(inward, own)
        return _Joined(np.logaddexp(outward, inward.transpose(0, 2, 1)) - np.log(2), outward, inward)

    def _reaches(self, to_members: Floats, labels: Ints) -> tuple[Floats, Floats]:
        """The log distances of points to their k-th neighbour in each cluster, and to the farthest point."""
        n_neighbors = len(self.nearest)
        nearest, farthest = np.empty((2, len(to_members), self.n_clusters))
        for cluster in range(self.n_clusters):
            to_cluster = to_members[:, labels == cluster]
            farthest[:, cluster] = to_cluster.max(axis=1)
            if n_neighbors == 1:
                nearest[:, cluster] = to_cluster.min(axis=1)
            else:
                nearest[:, cluster] = np.partition(to_cluster, n_neighbors - 1)[:, n_neighbors - 1]
        return nearest, farthest

    def _gains(self, rows: Floats) -> Floats:
        """The log of what M_jt gains where the new point becomes a near neighbour of j's points, (n, j, t)."""
        n, k = len(rows), self.n_clusters
        # Points beyond these distances would add less than rounding does; there are many where volumes count.
        relevant = np.full((k, k + 1), -np.inf)  # (t, j); the last column is for points without a label
        relevant[:, :k] = (NEGLIGIBLE - self._directed.T) / self.power
        np.fill_diagonal(relevant, -np.inf)
        last = self.nearest[-1]  # (k, n)
        new, clusters, points = np.nonzero(rows[:, None] < np.minimum(last, relevant[:, self.labels]))
        labels = self.labels[points]
        before, after = last[clusters, points], rows[new, points]
        if len(self.nearest) > 1:  # the neighbour before the last may move up instead
            after = np.maximum(after, self.nearest[-2, clusters, points])
        with np.errstate(divide="ignore"):  # no gain: the log of zero
            gains = -self.power * after + np.log(-np.expm1(-self.power * (before - after)))
        return _grouped_log_sum(gains, (new * k + labels) * k + clusters, n * k * k).reshape(n, k, k)

    def add(self, point: int, cluster: int, joined: _Joined) -> None:
        self.labels[point] = cluster
        self._directed[cluster] = joined.outward[0, cluster]
        self._directed[:, cluster] = joined.inward[0, :, cluster]
        row = self.log_distances[point].copy()
        np.maximum(self.farthest[cluster], row, out=self.farthest[cluster])
        row[point] = np.inf
        for near in self.nearest[:, cluster]:  # the nearer one stays, the other goes on to the next place
            nearer = np.minimum(near, row)
            np.maximum(near, row, out=row)
            near[:] = nearer

    def dissolve(self, cluster: int) -> None:
        self.labels = _labels_without(self.labels, cluster)
        self._directed = _without(self._directed, cluster)
        self.nearest = np.delete(self.nearest, cluster, axis=1)
        self.farthest = np.delete(self.farthest, cluster, axis=0)


def _labels_without(labels: Ints, cluster: int) -> Ints:
    """The labels after a cluster's points have lost theirs and the later clusters have moved up."""
    labels = np.where(labels == cluster, UNLABELLED, labels)
    return labels - (labels > cluster)


def _without(matrix: Floats, cluster: int) -> Floats:
    """A square matrix without a row and its column."""
    return np.delete(np.delete(matrix, cluster, axis=0), cluster, axis=1)


def seeded_labels(distances: Floats, n_seeds: int, seed_size: int, rng: np.random.RandomState) -> Ints:
    """Small clusters, each grown from a random free point by adding the free point nearest to any of its points.

    Parameters
    ----------
    distances : ndarray of shape (n, n)
        Or anything that grows with them.
    n_seeds : int
    seed_size : int
        Points per cluster; n_seeds * seed_size is at most n.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n,)
        0 to n_seeds - 1; -1 for the other points.

    Examples
    --------
    >>> x = np.array([0.0, 5.0, 1.0, 1.1, 5.1])
    >>> seeded_labels(abs(x[:, None] - x), 2, 2, np.random.RandomState(0))
    array([-1,  0,  1,  1,  0])
    """
    labels = np.full(len(distances), UNLABELLED)
    for seed in range(n_seeds):
        free = np.flatnonzero(labels == UNLABELLED)
        point = free[rng.randint(len(free))]
        labels[point] = seed
        reach = distances[point].copy()
        for _ in range(seed_size - 1):
            point = np.where(labels == UNLABELLED, reach, np.inf).argmin()
            labels[point] = seed
            np.minimum(reach, distances[point], out=reach)
    return labels


def place_all(clusters: Clusters, distances: Floats) -> Iterator[int]:
    """Give every free point a cluster, always the one nearest to any labelled point; the point, each time."""
    labelled = clusters.labels >= 0
    reach = distances[labelled].min(axis=0)
    taken = np.where(labelled, np.inf, 0.0)
    for _ in range(len(labelled) - labelled.sum()):
        point = int(np.maximum(reach, taken).argmin())
        joined = clusters.joined(clusters.row(point))
        cuts = log_cuts_if_joined(clusters.log_overlaps, joined.log_overlaps)
        clusters.add(point, int(cuts.argmin()), joined)
        np.minimum(reach, distances[point], out=reach)
        taken[point] = np.inf
        yield point


def clusters_to_join(clusters: Clusters, rows: Floats) -> Ints:
    """The cluster that each of some further points should join, if it were the only one.

    Parameters
    ----------
    clusters : Clusters
    rows : ndarray of shape (n_points, n)
        As :meth:`Clusters.row` gives them.
    """
    blocks = np.array_split(rows, math.ceil(len(rows) / 32))  # small ones, that stay in the processor's cache
    log_overlaps = clusters.log_overlaps
    cuts = [log_cuts_if_joined(log_overlaps, clusters.joined(block).log_overlaps) for block in blocks]
    return np.concatenate(cuts).argmin(axis=1)


class Level(NamedTuple):
    """A level of the hierarchy."""

    labels: Ints
    divergence: float
    dissolved: int | None  # the cluster that makes way for the next level


def reduce_clusters(clusters: Clusters, distances: Floats, n_clusters: int, bar: tqdm) -> list[Level]:
    """Place all points, then dissolve the worst cluster and place its points anew until n_clusters are left."""
    levels: list[Level] = []
    while True:
        for _ in place_all(clusters, distances):
            bar.update()
        log_overlaps = clusters.log_overlaps_to_judge()
        divergence = cauchy_schwarz_divergence(log_overlaps)
        if clusters.n_clusters <= n_clusters:
            return [*levels, Level(clusters.labels, divergence, None)]
        worst = int(log_cuts_without_each(log_overlaps).argmin())
        levels.append(Level(clusters.labels.copy(), divergence, worst))
        clusters.dissolve(worst)


@dataclass(frozen=True)
class ParzenDensity:
    """Parzen windows: Gaussians of one width.

    Parameters
    ----------
    sigma_squared : float
    """

    sigma_squared: float

    def logs(self, squared: Floats) -> Floats:
        """The log kernel of squared distances."""
        return squared / (-4 * self.sigma_squared)

    def clusters(self, logs: Floats, labels: Ints) -> Clusters:
        return ParzenClusters(logs, labels)


@dataclass(frozen=True)
class NeighborDensity:
    """The k-nearest-neighbour estimate.

    Parameters
    ----------
    least_squared : float
        Smaller squared distances count as this one: a ball has a volume.
    n_neighbors, power
        See :class:`NeighborClusters`.
    """

    least_squared: float
    n_neighbors: int
    power: float

    def logs(self, squared: Floats) -> Floats:
        """The log of distances from their squares."""
        return np.log(np.maximum(squared, self.least_squared)) / 2

    def clusters(self, logs: Floats, labels: Ints) -> Clusters:
        return NeighborClusters(logs, labels, self.n_neighbors, self.power)


def _squared_distances(X: Any, Y: Any) -> Floats:
    """Squared Euclidean distances of rows, sparse or dense, exact enough to tell equal rows from near ones.

    Dense rows should be near the origin, where the expansion of the square does not cancel digits.
    """
    squared = euclidean_distances(X, Y, squared=True).astype(np.float64, copy=False)
    return np.maximum(squared, 0.0, out=squared)


def least_distance(squared: Floats) -> float:
    """The squared distance that coinciding points count as: a quarter of the smallest one of distinct points.

    What is zero but for rounding counts as zero.

    Examples
    --------
    >>> least_distance(np.array([[0.0, 1e-17, 2.0], [1e-17, 0.0, 2.0], [2.0, 2.0, 0.0]]))
    0.5
    """
    distinct = squared[squared > 1e-10 * squared.max()]
    return float(distinct.min()) / 4 if len(distinct) else 1.0


def _numbered_by_size(labels: Ints, n_clusters: int) -> Ints:
    """The labels with the largest cluster as 0."""
    return np.argsort(order_by_size(labels, n_clusters))[labels]


class _Run(NamedTuple):
    """One clustering of the landmarks."""

    clusters: Clusters
    levels: list[Level]

    @property
    def divergence(self) -> float:
        return self.levels[-1].divergence


class ITC(VectorClusterer):
    """Information theoretic clustering (Vikjord and Jenssen, Pattern Recognition 47(9):3070-3081, 2014).

    Many small clusters are seeded among neighbours. Every other point, the one nearest to any labelled point
    first, joins the cluster that leaves the clusters farthest apart. Then, again and again, the worst cluster is
    dissolved, that without which the others are farthest apart, and its points join others by the same rule,
    until ``n_clusters`` are left. "Apart" is the Cauchy-Schwarz divergence ::

        -log mean over pairs i < j of  M_ij / sqrt(M_ii M_jj),    M_ij = integral of p_i p_j,

    with the clusters' densities p estimated in one of two ways. Parzen windows: M_ij is the mean of the Gaussian
    of variance 2 sigma^2 over all pairs of a point of i and one of j; -log M_ii is Renyi's quadratic entropy. Nearest
    neighbours: M_ij is the mean over the points of i of 1 / V^alpha, where V is the volume of the ball
    around the point that reaches its k-th neighbour in j, averaged over both directions. Of k there are two
    values: a small one across clusters, while within a cluster the ball holds all of it when points are placed.

    Up to ``n_landmarks`` items this takes O(n^2) memory and O(n^2 n_seeds) time. Of more items a random sample of
    that size is clustered so, and each of the others joins the cluster that the rule gives it, by itself;
    time and memory then grow linearly with the number of items, and no n x n array exists.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters that are left in the end.
    density : {"knn", "parzen"}, default="knn"
        How the clusters' densities are estimated.
    n_neighbors : int, default=1
        Of ``"knn"``: k across clusters, and within them when the worst one is sought. Less than ``seed_size``.
    alpha : float, default=1.0
        Of ``"knn"``: the power of the volume. The volume itself is the distance to the power of the number of
        features, so with hundreds of features the closest pair outweighs all others; a small alpha tempers that.
    bandwidth : float, default=0.15
        Of ``"parzen"``: sigma as a fraction of the median pairwise distance of the landmarks.
    n_seeds : int or "auto", default="auto"
        The number of clusters in the beginning; ``"auto"``: ten more than in the end. Fewer if there are
        too few items.
    seed_size : int, default=3
        Points of a seed. Fewer if there are too few items.
    n_init : int, default=4
        Clusterings from different seeds, of which the one with the largest divergence is kept.
    n_vote : int, default=1
        How many of them, those with the largest divergence, vote on each item; the others are aligned to the
        first one, which also decides ties.
    n_landmarks : int or None, default=3000
        The number of items up to which the method is exact; see above. None: always.
    random_state : int, RandomState instance or None, default=None
        Determines the seeds and the landmarks. The same seed gives the same labels.
    verbose : bool or int, default=False
        Show progress bars, of what takes more than two seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    divergence_ : float
        Of the clusters of the landmarks. Comparable for the same data, density, ``n_neighbors``,
        ``alpha`` and ``bandwidth`` only.
    divergences_ : ndarray of shape (n_init,)
        Of all clusterings.
    hierarchy_ : list of dict
        The levels of the clustering that was kept, from ``n_seeds`` clusters down: ``n_clusters``,
        ``divergence``, ``labels`` of the landmarks (numbered anew at every level) and ``dissolved``, the
        cluster that makes way for the next level, None at the last.
    landmarks_ : ndarray of shape (min(n_samples, n_landmarks),)
        Positions in X of the items that the hierarchy was built of.
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Values per item.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has string column names.

    Notes
    -----
    The full text of the article was not at hand. Seeds, order, rule, worst cluster and the two values of k follow
    the authors' MATLAB class ``ITCDataHandler`` (public, by Vikjord and Jenssen) and the abstracts of the article's
    forerunners (Jenssen et al., "Clustering using Renyi's entropy", IJCNN 2003; Vikjord and Jenssen, MLSP 2013).
    The defaults ``n_neighbors=1``, ``alpha=1``, ``seed_size=3`` and 12 seeds for two clusters are those of its
    tutorial; none was chosen by labels.

    Departs from the paper, or from that class:

    - Parzen windows take the same rule as neighbours, as in Jenssen's own code of the Cauchy-Schwarz form (NORSIG
      2003), because the class has no other; IJCNN 2003 places a point where it raises the within-cluster entropy
      the least. That code takes one ratio of all clusters, the class (and this) the sum of pairs.
    - The bandwidth is 15 % of the median distance, the rule of thumb of the DDC paper, because none is published.
    - Overlaps are kept as logs, because a volume in 784 dimensions has no floating-point number. Factors that
      cancel (sizes, the volume of the unit ball) are left out.
    - Coinciding points count as half as far apart as the closest distinct ones; the class leaves them out or
      divides by zero.
    - ``divergence_`` is the quantity by which the worst cluster is sought, because it is the one that
      decisions are made by; the class reports another one with mean volumes.
    - The vote is over seeds. The article's ensemble could not be looked up in detail.
    - The landmarks, because the authors could not cluster large data at all.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> model = ITC(n_clusters=2, n_init=1, random_state=0).fit(X)
    >>> np.bincount(model.labels_)
    array([100, 100])
    >>> [level["n_clusters"] for level in model.hierarchy_]
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "density": [StrOptions({"knn", "parzen"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "n_seeds": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "seed_size": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_vote": [Interval(Integral, 1, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        density: str = "knn",
        n_neighbors: int = 1,
        alpha: float = 1.0,
        bandwidth: float = 0.15,
        n_seeds: int | str = "auto",
        seed_size: int = 3,
        n_init: int = 4,
        n_vote: int = 1,
        n_landmarks: int | None = 3000,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.density = density
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.n_seeds = n_seeds
        self.seed_size = seed_size
        self.n_init = n_init
        self.n_vote = n_vote
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or images
            Images are flattened. The unit of the values does not matter.
        y : Ignored

        Returns
        -------
        self
        """
        X = centred(self._vectors_to_cluster(X))
        self._check_parameters_agree()
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        n = X.shape[0]
        landmarks = np.arange(n)
        if self.n_landmarks is not None and n > self.n_landmarks:
            landmarks = np.sort(rng.choice(n, self.n_landmarks, replace=False))
        sample = X[landmarks]
        squared = _squared_distances(sample, sample)
        density = self._density(squared)
        logs = density.logs(squared)  # shared by all runs, none of which changes it
        runs = [self._run(squared, logs, density, seed) for seed in seeds.tolist()]
        best_first = sorted(runs, key=lambda run: -run.divergence)
        votes = self._labels_of_all(
            X, landmarks, density, [run.clusters for run in best_first[: self.n_vote]]
        )
        self.labels_ = _numbered_by_size(majority_vote(votes), self.n_clusters)
        self.landmarks_ = landmarks
        self.divergence_ = best_first[0].divergence
        self.divergences_ = np.array([run.divergence for run in runs])
        self.hierarchy_ = [
            {"n_clusters": int(level.labels.max()) + 1, **level._asdict()} for level in best_first[0].levels
        ]
        return self

    def _check_parameters_agree(self) -> None:
        if self.n_vote > self.n_init:
            raise ValueError(
                f"n_vote={self.n_vote} should be <= n_init={self.n_init}: only clusterings that were made can vote."
            )
        if not isinstance(self.n_seeds, str) and self.n_seeds < self.n_clusters:
            raise ValueError(
                f"n_seeds={self.n_seeds} should be >= n_clusters={self.n_clusters}: clusters are dissolved, never"
                " split; ask for more seeds."
            )
        if self.n_landmarks is not None and self.n_landmarks < self.n_clusters:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} should be >= n_clusters={self.n_clusters}: every cluster needs at"
                " least one of them; ask for more."
            )
        if self.density == "knn" and self.n_neighbors >= self.seed_size:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} should be < seed_size={self.seed_size}, so that every point of a"
                " seed has that many neighbours in it; ask for larger seeds or fewer neighbours."
            )

    def _seed_shape(self, n: int) -> tuple[int, int]:
        """Number and size of the seeds, as asked for or as many as n points are enough for."""
        size = max(1, min(self.seed_size, n // self.n_clusters))
        wanted = self.n_clusters + 10 if self.n_seeds == "auto" else int(self.n_seeds)
        return min(wanted, n // size), size

    def _density(self, squared: Floats) -> ParzenDensity | NeighborDensity:
        if self.density == "parzen":
            return ParzenDensity(float(median_bandwidth(torch.from_numpy(squared), self.bandwidth, "median")))
        _, seed_size = self._seed_shape(len(squared))
        n_neighbors = min(self.n_neighbors, max(1, seed_size - 1))
        return NeighborDensity(least_distance(squared), n_neighbors, self.alpha * self.n_features_in_)

    def _run(
        self, squared: Floats, logs: Floats, density: ParzenDensity | NeighborDensity, seed: int
    ) -> _Run:
        """One clustering of the landmarks, from random seeds."""
        labels = seeded_labels(squared, *self._seed_shape(len(squared)), np.random.RandomState(seed))
        clusters = density.clusters(logs, labels)
        with tqdm(unit="item", desc="placing", delay=2, disable=not self.verbose) as bar:
            return _Run(clusters, reduce_clusters(clusters, squared, self.n_clusters, bar))

    def _labels_of_all(
        self, X: Any, landmarks: Ints, density: ParzenDensity | NeighborDensity, voters: list[Clusters]
    ) -> list[Ints]:
        """The labels of all items: those of the landmarks, and of the others the cluster that each should join."""
        votes = [np.full(X.shape[0], UNLABELLED) for _ in voters]
        for vote, clusters in zip(votes, voters, strict=True):
            vote[landmarks] = clusters.labels
        sample = X[landmarks]
        others = np.setdiff1d(np.arange(X.shape[0]), landmarks, assume_unique=True)
        with tqdm(total=len(others), unit="item", desc="assigning", delay=2, disable=not self.verbose) as bar:
            for start in range(0, len(others), BLOCK):
                block = others[start : start + BLOCK]
                rows = density.logs(_squared_distances(X[block], sample))
                for vote, clusters in zip(votes, voters, strict=True):
                    vote[block] = clusters_to_join(clusters, rows)
                bar.update(len(block))
        return votes
