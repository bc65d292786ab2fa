"""The Cauchy-Schwarz divergence of clusters from the logs of their overlaps."""

from __future__ import annotations

import math

import numpy as np

from ddclust.baselines.itc.log_sums import Floats, log_sum


def log_cut(log_overlaps: Floats) -> float:
    """The log of the sum over all pairs of clusters of M_ij / sqrt(M_ii M_jj): small if clusters are far apart.

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)
        The log of M, the overlaps of the clusters. A factor per cluster does not matter: it cancels.

    Examples
    --------
    >>> M = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> round(math.exp(log_cut(np.log(M))), 6)
    0.5
    """
    return float(log_sum(_log_ratios(log_overlaps)[np.triu_indices(len(log_overlaps), 1)]))


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


def log_cuts_without_each(log_overlaps: Floats) -> Floats:
    """For each cluster, :func:`log_cut` of the other clusters.

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
    # Each sum is computed from scratch: a difference of sums would lose all digits of the small ones.
    return log_sum(np.where((i == each) | (j == each), -np.inf, _log_ratios(log_overlaps)[i, j]))


def log_cuts_if_joined(log_overlaps: Floats, joined: Floats) -> Floats:
    """:func:`log_cut` of all clusters after a point has joined the first cluster, the second, and so on.

    Parameters
    ----------
    log_overlaps : ndarray of shape (n_clusters, n_clusters)
        Overlaps without the point.
    joined : ndarray of shape (n_points, n_clusters, n_clusters)
        For each point, row t holds the log overlaps of cluster t with all clusters, if the point joins t.

    Returns
    -------
    ndarray of shape (n_points, n_clusters)
    """
    own = joined.diagonal(axis1=1, axis2=2)
    ratios = joined - (own[:, :, None] + log_overlaps.diagonal()) / 2
    set_diagonals(ratios, -np.inf)
    return np.logaddexp(log_cuts_without_each(log_overlaps), log_sum(ratios))


def set_diagonals(matrices: Floats, values: Floats | float) -> None:
    """Write values of shape (n, k), or a single value, to the diagonals of matrices of shape (n, k, k)."""
    diagonal = np.arange(matrices.shape[1])
    matrices[:, diagonal, diagonal] = values


def _log_ratios(log_overlaps: Floats) -> Floats:
    """The log of M_ij / sqrt(M_ii M_jj)."""
    own = log_overlaps.diagonal()
    return log_overlaps - (own[:, None] + own) / 2
