"""Clusters with densities estimated from nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ddclust.baselines.itc.densities import Joined, labels_without, matrix_without
from ddclust.baselines.itc.divergence import set_diagonals
from ddclust.baselines.itc.log_sums import Floats, Ints, grouped_log_sum, log_sums_by_label

NEGLIGIBLE = 45.0  # exp(-45) times thousands of terms is less than the rounding of their sum


@dataclass(frozen=True)
class NeighborDensity:
    """The k-nearest-neighbour estimate.

    Parameters
    ----------
    least_squared : float
        Smaller squared distances are raised to this one, so that every ball has a volume.
    n_neighbors, power
        See :class:`NeighborClusters`.
    """

    least_squared: float
    n_neighbors: int
    power: float

    def logs(self, squared: Floats) -> Floats:
        """The log of the distances, from their squares."""
        return np.log(np.maximum(squared, self.least_squared)) / 2

    def clusters(self, logs: Floats, labels: Ints) -> NeighborClusters:
        return NeighborClusters(logs, labels, self.n_neighbors, self.power)


class NeighborClusters:
    """Clusters with k-nearest-neighbour densities: M_ij is the sum over the points of i of 1 / V^alpha.

    V is the volume of the ball that reaches the k-th neighbour in j. Between clusters k is small; within one,
    the ball reaches the farthest point when a point is placed, and the k-th neighbour when clusters are judged.

    Parameters
    ----------
    log_distances : ndarray of shape (n, n)
        Finite, also on the diagonal.
    labels : ndarray of shape (n,)
        0 to n_clusters - 1; -1 for points without a label.
    n_neighbors : int
        k. Every cluster must have that many members.
    power : float
        Power of the distance r: V^alpha is r^power, up to a factor that cancels.
    """

    def __init__(self, log_distances: Floats, labels: Ints, n_neighbors: int, power: float) -> None:
        self.log_distances = log_distances
        self.labels = labels.copy()
        self.power = power
        n, n_clusters = len(labels), labels.max() + 1
        # Log distances to the nearest points of each cluster, in ascending order, the point itself left out.
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
            self._directed[:, cluster] = grouped_log_sum(
                -power * self.nearest[-1, cluster, labelled], labels[labelled], n_clusters
            )
        own = self.farthest[labels[labelled], labelled]
        np.fill_diagonal(self._directed, grouped_log_sum(-power * own, labels[labelled], n_clusters))

    @property
    def n_clusters(self) -> int:
        return len(self._directed)

    @property
    def log_overlaps(self) -> Floats:
        return np.logaddexp(self._directed, self._directed.T) - np.log(2)

    def log_overlaps_to_judge(self) -> Floats:
        labelled = np.flatnonzero(self.labels >= 0)
        own = self.nearest[-1, self.labels[labelled], labelled]
        # A cluster of one point has no neighbour within; it takes the smallest distance there is.
        own = np.where(np.isposinf(own), self.log_distances[labelled, labelled], own)
        log_overlaps = self.log_overlaps
        within = grouped_log_sum(-self.power * own, self.labels[labelled], self.n_clusters)
        np.fill_diagonal(log_overlaps, within)
        return log_overlaps

    def row(self, point: int) -> Floats:
        return self.log_distances[point, None]

    def joined(self, rows: Floats) -> Joined:
        k, power = self.n_clusters, self.power
        members = np.flatnonzero(self.labels >= 0)
        labels, to_members = self.labels[members], rows[:, members]
        nearest, farthest = self._reaches(to_members, labels)  # (n, k)
        outward = np.logaddexp(self._directed, -power * nearest[:, None])
        inward = np.logaddexp(self._directed, self._gains(rows))
        reach = np.maximum(self.farthest[labels, members], to_members)
        own = np.logaddexp(log_sums_by_label(-power * reach, labels, k), -power * farthest)
        set_diagonals(outward, own)
        set_diagonals(inward, own)
        return Joined(np.logaddexp(outward, inward.transpose(0, 2, 1)) - np.log(2), outward, inward)

    def _reaches(self, to_members: Floats, labels: Ints) -> tuple[Floats, Floats]:
        """The log distances from points to their k-th neighbour in each cluster, and to its farthest point."""
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
        """The log of what M_jt gains if the new point becomes a near neighbour of points of j, (n, j, t)."""
        n, k = len(rows), self.n_clusters
        # Points beyond these distances add less than rounding does. In many dimensions, most points do.
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
        return grouped_log_sum(gains, (new * k + labels) * k + clusters, n * k * k).reshape(n, k, k)

    def add(self, point: int, cluster: int, joined: Joined) -> None:
        self.labels[point] = cluster
        self._directed[cluster] = joined.outward[0, cluster]
        self._directed[:, cluster] = joined.inward[0, :, cluster]
        row = self.log_distances[point].copy()
        np.maximum(self.farthest[cluster], row, out=self.farthest[cluster])
        row[point] = np.inf
        for near in self.nearest[:, cluster]:  # the nearer one stays, the other moves on to the next place
            nearer = np.minimum(near, row)
            np.maximum(near, row, out=row)
            near[:] = nearer

    def dissolve(self, cluster: int) -> None:
        self.labels = labels_without(self.labels, cluster)
        self._directed = matrix_without(self._directed, cluster)
        self.nearest = np.delete(self.nearest, cluster, axis=1)
        self.farthest = np.delete(self.farthest, cluster, axis=0)


def least_distance(squared: Floats) -> float:
    """The squared distance given to coinciding points: a quarter of the smallest one between distinct points.

    Distances that differ from zero only by rounding count as zero.

    Examples
    --------
    >>> least_distance(np.array([[0.0, 1e-17, 2.0], [1e-17, 0.0, 2.0], [2.0, 2.0, 0.0]]))
    0.5
    """
    distinct = squared[squared > 1e-10 * squared.max()]
    return float(distinct.min()) / 4 if len(distinct) else 1.0
