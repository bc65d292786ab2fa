"""Clusters with densities estimated by Parzen windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ddclust.baselines.itc.densities import Joined, labels_without, matrix_without
from ddclust.baselines.itc.divergence import set_diagonals
from ddclust.baselines.itc.log_sums import Floats, Ints, log_sum, log_sums_by_label


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

    def clusters(self, logs: Floats, labels: Ints) -> ParzenClusters:
        return ParzenClusters(logs, labels)


class ParzenClusters:
    """Clusters with Parzen densities: M_ij is the sum of the kernel over all pairs of a point of i and one of j.

    Parameters
    ----------
    log_kernel : ndarray of shape (n, n)
        Log of the Gaussian with variance 2 sigma^2, up to a constant factor: -|x - y|^2 / (4 sigma^2).
    labels : ndarray of shape (n,)
        0 to n_clusters - 1; -1 for points without a label.

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
                self.log_overlaps[i, j] = log_sum(log_kernel[of_i][:, of_j].ravel())

    @property
    def n_clusters(self) -> int:
        return len(self.log_overlaps)

    def log_overlaps_to_judge(self) -> Floats:
        return self.log_overlaps

    def row(self, point: int) -> Floats:
        return self.log_kernel[point, None]

    def joined(self, rows: Floats) -> Joined:
        members = np.flatnonzero(self.labels >= 0)
        sums = log_sums_by_label(rows[:, members], self.labels[members], self.n_clusters)  # (n, k)
        log_overlaps = np.logaddexp(self.log_overlaps, sums[:, None])
        # Within its cluster the point meets each of the others twice and itself once.
        own = np.logaddexp(np.logaddexp(self.log_overlaps.diagonal(), np.log(2) + sums), 0.0)
        set_diagonals(log_overlaps, own)
        return Joined(log_overlaps, log_overlaps, log_overlaps)

    def add(self, point: int, cluster: int, joined: Joined) -> None:
        self.labels[point] = cluster
        self.log_overlaps[cluster] = self.log_overlaps[:, cluster] = joined.log_overlaps[0, cluster]

    def dissolve(self, cluster: int) -> None:
        self.labels = labels_without(self.labels, cluster)
        self.log_overlaps = matrix_without(self.log_overlaps, cluster)
