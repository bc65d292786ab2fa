"""Clusters of the graph of nearest neighbours, without a network: rings, bands and other shapes that gaps separate.

1. Every item is joined to its 15 nearest neighbours. The weights fall with the distance beyond the nearest one, at a rate of its own for
   each item, so that sparse and dense regions count alike; an edge is there if either of its ends says so (McInnes et al., UMAP, 2018).
2. The items are divided into small cells by k-means, and the cells are grouped so that the graph is cut little
   (:mod:`ddclust.choosing.grouping`).
3. Single items move to the cluster of a neighbour as long as the cost of the cuts falls.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ddclust.choosing.grouping import merged_by_pairs, parted_cost
from ddclust.data.neighbors import Neighbors, nearest_neighbors

NEAREST = 15
CELL_ITEMS, MOST_CELLS = 10, 300  # items of a cell on average, and cells at most
CELL_ROUNDS = 50  # of k-means; cells need not be perfect
HALVINGS = 48  # of the interval of a scale
ROUNDS, FEW_MOVES = 20, 1e-3  # passes over all items at most, and the share of moves that ends them


def graph_clusters(X: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    """The clusters of the rows, numbered from 0.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(600, factor=0.5, noise=0.05, random_state=0)
    >>> labels = graph_clusters(X, 2)
    >>> bool((labels == y).all() or (labels != y).all())
    True
    """
    if len(X) <= n_clusters + 1:
        return np.arange(len(X)) % n_clusters
    W = neighbor_graph(nearest_neighbors(X, min(NEAREST, len(X) - 1)))
    cells = _cells(X, n_clusters)
    member = _members(cells, cells.max() + 1)
    P = (member.T @ W @ member).toarray()
    return _moved(W, merged_by_pairs(P, P, n_clusters)[cells], n_clusters)


def neighbor_graph(near: Neighbors) -> scipy.sparse.csr_array:
    """The symmetric graph of an item's neighbours, with weights between 0 and 1.

    Examples
    --------
    >>> near = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 2)
    >>> neighbor_graph(near).toarray().round(2)
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    distances = near.distances
    n, k = distances.shape
    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)  # duplicates are at no distance
    beyond = np.maximum(distances - np.where(np.isfinite(nearest), nearest, 0)[:, None], 0)
    weights = np.exp(-beyond / _scales(beyond)[:, None])
    one_way = scipy.sparse.csr_array(
        (weights.ravel(), near.indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n)
    )
    other_way = one_way.T.tocsr()
    return scipy.sparse.csr_array(one_way + other_way - one_way.multiply(other_way))


def _scales(beyond: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scale of each row at which exp(-beyond / scale) sums to log2(k), by halving an interval."""
    target = np.log2(max(beyond.shape[1], 2))
    scale = np.maximum(beyond.mean(axis=1), 1e-12)
    low, high = np.zeros(len(beyond)), np.full(len(beyond), np.inf)
    for _ in range(HALVINGS):
        is_large = np.exp(-beyond / scale[:, None]).sum(axis=1) > target
        low, high = np.where(is_large, low, scale), np.where(is_large, scale, high)
        scale = np.where(np.isinf(high), 2 * scale, (low + high) / 2)
    return np.maximum(scale, 1e-3 * max(float(beyond.mean()), 1e-9))


def _cells(X: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    """The cell of each row, numbered without gaps."""
    from sklearn.cluster import KMeans

    n_cells = min(max(len(X) // CELL_ITEMS, n_clusters + 1), MOST_CELLS)
    n_cells = max(n_cells, min(3 * n_clusters, len(X) // 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal rows
        found = KMeans(n_cells, n_init=1, max_iter=CELL_ROUNDS, random_state=0).fit_predict(X)
    return np.unique(found, return_inverse=True)[1]


def _members(labels: NDArray[np.int64], n_groups: int) -> scipy.sparse.csr_array:
    """Rows of zeros with a one at the group, (n, n_groups)."""
    n = len(labels)
    return scipy.sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, n_groups))


def _moved(W: Any, labels: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    """The groups after single items have moved to groups of neighbours as long as the cost of the cuts falls."""
    labels, W = labels.copy(), scipy.sparse.csr_array(W / W.sum())
    member = _members(labels, n_groups)
    within = (member.T @ W @ member).toarray()
    volumes, insides = within.sum(axis=1), within.diagonal().copy()
    degrees = np.asarray(W.sum(axis=1)).ravel()
    order = np.random.default_rng(0).permutation(len(labels))
    for _ in range(ROUNDS):
        n_moves = 0
        for item in order:
            here, edges = labels[item], slice(W.indptr[item], W.indptr[item + 1])
            others = labels[W.indices[edges]]
            if (others == here).all():
                continue
            links = np.bincount(others, W.data[edges], n_groups)
            left = volumes[here] - degrees[item], insides[here] - 2 * links[here]
            if left[0] <= 1e-12:  # it is alone
                continue
            joined = volumes + degrees[item], insides + 2 * links
            change = parted_cost(*joined) - parted_cost(volumes, insides)
            change[(links == 0) | (np.arange(n_groups) == here)] = np.inf
            change += parted_cost(*left) - parted_cost(volumes[here], insides[here])
            there = int(change.argmin())
            if change[there] < -1e-12:
                volumes[here], insides[here] = left
                volumes[there], insides[there] = joined[0][there], joined[1][there]
                labels[item] = there
                n_moves += 1
        if n_moves <= FEW_MOVES * len(labels):
            break
    return labels
