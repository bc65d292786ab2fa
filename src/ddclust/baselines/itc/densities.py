"""What the search needs from an estimate of the clusters' densities; parzen and knn provide it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ddclust.baselines.itc.log_sums import Floats, Ints

UNLABELLED = -1


class Joined(NamedTuple):
    """The overlaps of the clusters if a point joined each of them, for some points."""

    log_overlaps: Floats  # (n, k, k): row t is that of cluster t, if the point joins it
    outward: Floats  # (n, k, k): the same, seen from cluster t, before both directions are averaged
    inward: Floats  # (n, k, k): column t is that of cluster t, seen from the other clusters


class Clusters(Protocol):
    """Growing clusters and their overlaps."""

    labels: Ints

    @property
    def n_clusters(self) -> int: ...

    @property
    def log_overlaps(self) -> Floats:
        """The overlaps by which a point is placed."""

    def log_overlaps_to_judge(self) -> Floats:
        """The overlaps by which the worst cluster and the divergence are determined."""

    def row(self, point: int) -> Floats:
        """What :meth:`joined` needs to know about a point, of shape (1, n)."""

    def joined(self, rows: Floats) -> Joined:
        """The overlaps if each of some points, on its own, joined each of the clusters."""

    def add(self, point: int, cluster: int, joined: Joined) -> None: ...

    def dissolve(self, cluster: int) -> None: ...


class Density(Protocol):
    """An estimate of densities: from squared distances to logs, and from these to clusters."""

    def logs(self, squared: Floats) -> Floats:
        """What the estimate needs of squared distances."""

    def clusters(self, logs: Floats, labels: Ints) -> Clusters:
        """The clusters of points with these labels; -1 for points without one."""


def labels_without(labels: Ints, cluster: int) -> Ints:
    """The labels after a cluster is dissolved: its points have none, later clusters move up."""
    labels = np.where(labels == cluster, UNLABELLED, labels)
    return labels - (labels > cluster)


def matrix_without(matrix: Floats, cluster: int) -> Floats:
    """A square matrix without the row and column of a cluster."""
    return np.delete(np.delete(matrix, cluster, axis=0), cluster, axis=1)
