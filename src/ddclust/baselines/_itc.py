"""ITC: hierarchical information theoretic clustering by the Cauchy-Schwarz divergence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import euclidean_distances
from sklearn.utils import Tags, check_random_state
from tqdm import tqdm

from ddclust._validation import (
    Interval,
    StrOptions,
    check_items_can_be_clustered,
    check_vectors,
    fit_context,
)
from ddclust.consensus import majority_vote
from ddclust.items import SparseItems
from ddclust.kernels import median_bandwidth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNLABELLED = -1
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
    joined : ndarray of shape (n_clusters, n_clusters)
        Row t holds the log overlaps of cluster t with all, if the point joins it.

    Returns
    -------
    ndarray of shape (n_clusters,)
    """
    own = joined.diagonal()
    ratios = joined - (own[:, None] + log_overlaps.diagonal()) / 2
    np.fill_diagonal(ratios, -np.inf)
    return np.logaddexp(log_cuts_without_each(log_overlaps), _log_sum(ratios))


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

    def row(self, point: int) -> Floats: ...

    def joined(self, row: Floats) -> Any: ...

    def add(self, point: int, cluster: int, joined: Any) -> None: ...

    def dissolve(self, cluster: int) -> None: ...


class _Joined(NamedTuple):
    """The clusters' overlaps if a point joined each of them."""

    log_overlaps: Floats  # (k, k): row t is that of cluster t, if the point joins it
    outward: Floats  # (k, k): the same before the two directions are averaged, seen from cluster t
    inward: Floats  # (k, k): and seen from the others


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
        return self.log_kernel[point]

    def joined(self, row: Floats) -> _Joined:
        """The overlaps if the point with this row of the kernel joined each of the clusters."""
        members = np.flatnonzero(self.labels >= 0)
        sums = _grouped_log_sum(row[members], self.labels[members], self.n_clusters)  # (k,)
        log_overlaps = np.logaddexp(self.log_overlaps, sums)
        # Within its cluster the point meets each of the others twice and itself once.
        own = np.logaddexp(np.logaddexp(self.log_overlaps.diagonal(), np.log(2) + sums), 0.0)
        np.fill_diagonal(log_overlaps, own)
        return _Joined(log_overlaps, log_overlaps, log_overlaps)

    def add(self, point: int, cluster: int, joined: _Joined) -> None:
        self.labels[point] = cluster
        self.log_overlaps[cluster] = self.log_overlaps[:, cluster] = joined.log_overlaps[cluster]

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
        self.nearest = np.full(
            (n_neighbors, n_clusters, n), np.inf
        )  # log distances in order, oneself left out
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
        return self.log_distances[point]

    def joined(self, row: Floats) -> _Joined:
        """The overlaps if the point with these log distances joined each of the clusters."""
        k, power = self.n_clusters, self.power
        members = np.flatnonzero(self.labels >= 0)
        labels, row_of_members = self.labels[members], row[members]
        outward = np.logaddexp(self._directed, -power * self._nearest_of(row_of_members, labels))
        inward = np.logaddexp(self._directed, self._gains(row))  # (k, k): from the others to the new cluster
        farthest = np.full(k, -np.inf)
        np.maximum.at(farthest, labels, row_of_members)
        reach = np.maximum(self.farthest[labels, members], row_of_members)
        own = np.logaddexp(_grouped_log_sum(-power * reach, labels, k), -power * farthest)
        np.fill_diagonal(outward, own)
        np.fill_diagonal(inward, own)
        return _Joined(np.logaddexp(outward, inward.T) - np.log(2), outward, inward)

    def _nearest_of(self, row: Floats, labels: Ints) -> Floats:
        """The log distance of a point to its k-th neighbour in each cluster."""
        n_neighbors = len(self.nearest)
        if n_neighbors == 1:
            nearest = np.full(self.n_clusters, np.inf)
            np.minimum.at(nearest, labels, row)
            return nearest
        clusters = (row[labels == cluster] for cluster in range(self.n_clusters))
        return np.array([np.partition(to, n_neighbors - 1)[n_neighbors - 1] for to in clusters])

    def _gains(self, row: Floats) -> Floats:
        """The log of what the overlap of j with t gains where the new point becomes a near neighbour, (j, t)."""
        last = self.nearest[-1]  # (k, n)
        clusters, points = np.nonzero(row < last)
        labels = self.labels[points]
        others = (labels >= 0) & (labels != clusters)
        points, clusters, labels = points[others], clusters[others], labels[others]
        before, after = last[clusters, points], row[points]
        if len(self.nearest) > 1:  # the neighbour before the last moves up
            after = np.maximum(after, self.nearest[-2, clusters, points])
            nearer = after < before
            points, clusters, labels = points[nearer], clusters[nearer], labels[nearer]
            before, after = before[nearer], after[nearer]
        gains = -self.power * after + np.log(-np.expm1(-self.power * (before - after)))
        k = self.n_clusters
        return _grouped_log_sum(gains, labels * k + clusters, k * k).reshape(k, k)

    def add(self, point: int, cluster: int, joined: _Joined) -> None:
        self.labels[point] = cluster
        self._directed[cluster] = joined.outward[cluster]
        self._directed[:, cluster] = joined.inward[:, cluster]
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


def placed(clusters: Clusters, row: Floats) -> tuple[int, _Joined]:
    """The cluster that a point should join so that the divergence becomes the largest, and what it brings."""
    joined = clusters.joined(row)
    return int(log_cuts_if_joined(clusters.log_overlaps, joined.log_overlaps).argmin()), joined


def place_all(clusters: Clusters, distances: Floats) -> Iterator[int]:
    """Give every free point a cluster, always the one nearest to any labelled point; the point, each time."""
    labelled = clusters.labels >= 0
    reach = distances[labelled].min(axis=0)
    taken = np.where(labelled, np.inf, 0.0)
    for _ in range(len(labelled) - labelled.sum()):
        point = int(np.maximum(reach, taken).argmin())
        cluster, joined = placed(clusters, clusters.row(point))
        clusters.add(point, cluster, joined)
        np.minimum(reach, distances[point], out=reach)
        taken[point] = np.inf
        yield point


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
    """Squared Euclidean distances of rows, sparse or dense, exact enough to tell equal rows from near ones."""
    squared = euclidean_distances(X, Y, squared=True).astype(np.float64, copy=False)
    return np.maximum(squared, 0.0, out=squared)


def least_distance(squared: Floats) -> float:
    """The smallest squared distance of distinct points; what is zero but for rounding counts as zero.

    Examples
    --------
    >>> least_distance(np.array([[0.0, 1e-17, 2.0], [1e-17, 0.0, 2.0], [2.0, 2.0, 0.0]]))
    2.0
    """
    distinct = squared[squared > 1e-10 * squared.max()]
    return float(distinct.min()) if len(distinct) else 1.0


def _numbered_by_size(labels: Ints, n_clusters: int) -> Ints:
    """The labels with the largest cluster as 0."""
    order = np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")
    return np.argsort(order)[labels]


class _Run(NamedTuple):
    """One clustering of the landmarks."""

    clusters: Clusters
    levels: list[Level]

    @property
    def divergence(self) -> float:
        return self.levels[-1].divergence


class ITC(ClusterMixin, BaseEstimator):
    """DOC

    Parameters
    ----------
    n_clusters : int, default=8
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
        X = check_vectors(self, X, reset=True)
        check_items_can_be_clustered(SparseItems(X) if scipy.sparse.issparse(X) else X, self.n_clusters)
        self._check_parameters_agree()
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        n = X.shape[0]
        landmarks = np.arange(n)
        if self.n_landmarks is not None and n > self.n_landmarks:
            landmarks = np.sort(rng.choice(n, self.n_landmarks, replace=False))
        squared = _squared_distances(X[landmarks], X[landmarks])
        density = self._density(squared)
        runs = [self._run(squared, density, seed) for seed in seeds.tolist()]
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

    def _run(self, squared: Floats, density: ParzenDensity | NeighborDensity, seed: int) -> _Run:
        """One clustering of the landmarks, from random seeds."""
        labels = seeded_labels(squared, *self._seed_shape(len(squared)), np.random.RandomState(seed))
        clusters = density.clusters(density.logs(squared), labels)
        with tqdm(unit="item", desc="placing", delay=2, disable=not self.verbose) as bar:
            return _Run(clusters, reduce_clusters(clusters, squared, self.n_clusters, bar))

    def _labels_of_all(
        self, X: Any, landmarks: Ints, density: ParzenDensity | NeighborDensity, voters: list[Clusters]
    ) -> list[Ints]:
        """The labels of all items: those of the landmarks, and of the others the cluster that each should join."""
        votes = [np.full(X.shape[0], UNLABELLED) for _ in voters]
        for vote, clusters in zip(votes, voters, strict=True):
            vote[landmarks] = clusters.labels
        others = np.setdiff1d(np.arange(X.shape[0]), landmarks, assume_unique=True)
        with tqdm(total=len(others), unit="item", desc="assigning", delay=2, disable=not self.verbose) as bar:
            for start in range(0, len(others), BLOCK):
                block = others[start : start + BLOCK]
                rows = density.logs(_squared_distances(X[block], X[landmarks]))
                for vote, clusters in zip(votes, voters, strict=True):
                    vote[block] = [placed(clusters, row)[0] for row in rows]
                bar.update(len(block))
        return votes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags
