"""Merging clusters by the Cauchy-Schwarz divergence between them.

Letters are those of :mod:`ddclust.objective.loss`: ``A`` soft assignments (n, k), ``H`` hidden representation (n, d), ``K`` its
kernel matrix, and ``S`` = A^T K A (k, k) the overlaps of the clusters. The assignments of a merged cluster are the sum of
those of its parts, and S is bilinear in them: its row and column are the sums of theirs. So all merging is exact on S.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ddclust.data.batches import BatchSource, Sample, random_items
from ddclust.objective.divergences import EMPTY_CLUSTER
from ddclust.objective.kernels import BandwidthRule, centred, median_bandwidth, squared_distances
from ddclust.objective.loss import DDCLoss
from ddclust.training.inference import outputs

# Overlaps are computed on at most so many items, in blocks of rows of the kernel matrix; the median on fewer.
MERGED_ITEMS = 5_000
BLOCK = 1024
MEDIAN_ITEMS = 2000
# The least similarity, so that divergences are finite: exp(-700) is about the least number of float64.
LEAST_SIMILARITY = np.exp(-700.0)


class NetworkOverlaps(NamedTuple):
    """``S`` of a network's clusters, and their ``sizes``."""

    S: NDArray[np.float64]
    sizes: NDArray[np.int64]


def network_overlaps(module: nn.Module, source: BatchSource, loss: DDCLoss) -> NetworkOverlaps:
    """The overlaps and sizes of a trained network's clusters, by the kernel of the loss.

    A random sample is used if there are more than 5,000 items.
    """
    some = Sample(source, random_items(len(source), MERGED_ITEMS, seed=0))
    found = [(hidden, logits.softmax(dim=1)) for _, hidden, logits in outputs(module, some)]
    H, A = (torch.cat(parts) for parts in zip(*found, strict=True))
    S = cluster_overlaps(H, A, bandwidth=loss.bandwidth, bandwidth_rule=loss.bandwidth_rule)
    return NetworkOverlaps(S, np.bincount(A.argmax(dim=1), minlength=A.shape[1]))


def cluster_overlaps(
    H: Tensor, A: Tensor, *, bandwidth: float = 0.15, bandwidth_rule: BandwidthRule = "squared_median"
) -> NDArray[np.float64]:
    """S = A^T K A of all items, with a Gaussian kernel of one bandwidth; K is never in memory as a whole.

    Parameters
    ----------
    H : Tensor of shape (n, d)
        Representation on which the kernel is computed.
    A : Tensor of shape (n, k)
        Soft assignments.
    bandwidth, bandwidth_rule
        See :func:`ddclust.objective.kernels.gaussian_kernel`; the median is that of 2,000 items spread over the data.

    Returns
    -------
    ndarray of shape (k, k)

    Examples
    --------
    >>> H = torch.tensor([[0.0], [0.0], [9.0]])
    >>> cluster_overlaps(H, torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(3)
    array([[4.   , 0.071],
           [0.071, 1.   ]])
    """
    H = centred(H)
    spread = np.linspace(0, len(H) - 1, min(len(H), MEDIAN_ITEMS)).astype(np.intp)
    sigma_squared = median_bandwidth(squared_distances(H[spread]), bandwidth, bandwidth_rule).item()
    norms = H.square().sum(dim=1)  # (n,)
    S = np.zeros((A.shape[1], A.shape[1]))
    for start in range(0, len(H), BLOCK):
        rows = slice(start, start + BLOCK)
        squared = (norms[rows, None] + norms).sub_(H[rows] @ H.T, alpha=2).clamp_min_(0)  # (b, n)
        KA = squared.mul_(-0.5 / sigma_squared).exp_() @ A  # (b, k)
        S += (A[rows].T.double() @ KA.double()).numpy()
    return (S + S.T) / 2


def cluster_similarities(S: ArrayLike) -> NDArray[np.float64]:
    """S_ij / sqrt(S_ii S_jj): 1 for clusters of the same density, 0 for clusters that do not overlap.

    Parameters
    ----------
    S : array-like of shape (k, k)
        See :func:`cluster_overlaps`.

    Examples
    --------
    >>> cluster_similarities([[4.0, 1.0], [1.0, 1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    S = np.asarray(S, dtype=np.float64)
    scale = 1 / np.sqrt(np.maximum(S.diagonal(), EMPTY_CLUSTER))
    return S * scale[:, None] * scale


def merge_tree(
    S: ArrayLike, sizes: ArrayLike | None = None, groups: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Merge the two most similar clusters, again and again, down to a single one.

    Parameters
    ----------
    S : array-like of shape (k, k)
        See :func:`cluster_overlaps`.
    sizes : array-like of shape (k,), optional
        Number of items in each cluster. Empty clusters are merged first, so that none is left over.
    groups : array-like of int of shape (k,), optional
        Clusters of one group are merged before those of different ones.

    Returns
    -------
    ndarray of shape (k - 1, 4)
        A row for each merge, in the linkage format of :mod:`scipy.cluster.hierarchy`: the two clusters (those from k on
        are results of earlier merges), their Cauchy-Schwarz divergence, -log of the similarity, and how many of the k
        are in them. Divergences need not grow from row to row: a merged cluster can be nearer to a third one than its
        parts were to each other.

    Examples
    --------
    >>> merge_tree([[4.0, 0.1, 2.0], [0.1, 1.0, 0.0], [2.0, 0.0, 4.0]]).round(2)
    array([[0.  , 2.  , 0.69, 2.  ],
           [1.  , 3.  , 3.55, 3.  ]])
    """
    S = np.array(S, dtype=np.float64)
    k = len(S)
    has_items = np.ones(k, dtype=bool) if sizes is None else np.asarray(sizes) > 0
    owners = np.zeros(k, dtype=np.int64) if groups is None else np.asarray(groups)
    names, counts = np.arange(k), np.ones(k, dtype=np.int64)
    tree = np.zeros((k - 1, 4))
    for row in range(k - 1):
        C = cluster_similarities(S)
        urgency = C + ~(has_items[:, None] & has_items) + 2.0 * (owners[:, None] == owners)
        urgency[np.tril_indices(len(C))] = -np.inf
        i, j = map(int, np.unravel_index(urgency.argmax(), C.shape))  # i < j
        divergence = max(-np.log(max(C[i, j], LEAST_SIMILARITY)), 0.0)
        tree[row] = (*sorted((names[i], names[j])), divergence, counts[i] + counts[j])
        # The merged cluster takes the place of the first.
        S[i] += S[j]
        S[:, i] += S[:, j]
        names[i], counts[i], has_items[i] = k + row, counts[i] + counts[j], has_items[i] | has_items[j]
        S = np.delete(np.delete(S, j, axis=0), j, axis=1)
        names, counts, has_items, owners = (
            np.delete(values, j) for values in (names, counts, has_items, owners)
        )
    return tree


def merged_groups(tree: NDArray[np.float64], n_final: int) -> NDArray[np.int64]:
    """The merged cluster, from 0 to n_final - 1, that each of the k clusters goes into by the first merges of the tree.

    Parameters
    ----------
    tree : ndarray of shape (k - 1, 4)
        See :func:`merge_tree`.
    n_final : int

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> merged_groups(np.array([[0.0, 2.0, 0.69, 2.0], [1.0, 3.0, 3.55, 3.0]]), 2)
    array([0, 1, 0])
    """
    k = len(tree) + 1
    if not 1 <= n_final <= k:
        raise ValueError(f"n_final={n_final} should be from 1 to the number of clusters, {k}.")
    owner = np.arange(k)
    for row, (first, second) in enumerate(tree[: k - n_final, :2]):
        owner[(owner == first) | (owner == second)] = k + row
    # Numbered in the order in which they first occur.
    _, firsts, groups = np.unique(owner, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[groups]


def renumbered_tree(tree: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """The tree of clusters in another order: the new i-th cluster is the old ``order[i]``-th.

    Examples
    --------
    >>> renumbered_tree(np.array([[0.0, 2.0, 0.5, 2.0], [1.0, 3.0, 0.7, 3.0]]), np.array([1, 0, 2]))
    array([[1. , 2. , 0.5, 2. ],
           [0. , 3. , 0.7, 3. ]])
    """
    place = np.arange(2 * len(order), dtype=np.float64)
    place[order] = np.arange(len(order))
    result = tree.copy()
    result[:, :2] = np.sort(place[tree[:, :2].astype(np.intp)], axis=1)
    return result


def merged_assignments(A: NDArray[np.float32], groups: NDArray[np.int64]) -> NDArray[np.float32]:
    """Soft assignments to merged clusters: the sums of those to their parts.

    Parameters
    ----------
    A : ndarray of shape (..., k)
    groups : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (..., n_groups)

    Examples
    --------
    >>> merged_assignments(np.array([[0.5, 0.25, 0.25]]), np.array([1, 0, 1]))
    array([[0.25, 0.75]])
    """
    result = np.zeros((*A.shape[:-1], int(groups.max()) + 1), dtype=A.dtype)
    for cluster, group in enumerate(groups):
        result[..., group] += A[..., cluster]
    return result


def node_groups(tree: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each node of the tree the merged cluster that all of it belongs to, -1 where there are several.

    Parameters
    ----------
    tree : ndarray of shape (k - 1, 4)
    groups : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (2 k - 1,)
        First the k clusters, then the results of the merges.

    Examples
    --------
    >>> node_groups(np.array([[0.0, 2.0, 0.69, 2.0], [1.0, 3.0, 3.55, 3.0]]), np.array([0, 1, 0]))
    array([ 0,  1,  0,  0, -1])
    """
    found = list(groups)
    for first, second in tree[:, :2].astype(np.intp):
        found.append(found[first] if found[first] == found[second] else -1)
    return np.array(found, dtype=np.int64)
