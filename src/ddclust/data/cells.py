"""Most of the nearest neighbours of many items: each is compared with the items of the cells around it only.

k-means divides the items into cells of about 100. The items of a cell are compared with those of the nearest cells, by their
first 64 principal components. The best candidates are left for an exact comparison. The time grows a little faster than the
number of items instead of with its square, and the same data always give the same result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ddclust.data.batches import random_items
from ddclust.progress import Bar

COMPONENTS = 64
CELL_ITEMS = 100
SEEN_ITEMS = 6_000  # at least so many items are compared with each, if there are so many
LARGEST_CELL = 4 * CELL_ITEMS  # larger ones, of many duplicates, are cut into parts
SAMPLE = 50  # items for each cell that k-means sees, and
LARGEST_SAMPLE = 100_000  # in all
BLOCK = 16_384  # items at a time


def candidate_neighbors(X: Any, n_candidates: int, *, verbose: bool | int = False) -> NDArray[np.int64]:
    """Items that are likely to be the nearest of each item by Euclidean distance, (n, n_candidates).

    An item is among its own candidates, unless it has as many duplicates.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
    n_candidates : int
        At most 6,000 and at most n_samples.
    verbose : bool or int, default=False
        Show progress if the search takes more than two seconds.

    Examples
    --------
    >>> candidate_neighbors(np.array([[0.0], [5.0], [1.0], [5.5]]), 2)
    array([[0, 2],
           [1, 3],
           [2, 0],
           [3, 1]])
    """
    n = X.shape[0]
    compact = torch.from_numpy(compact_vectors(X))  # (n, d')
    cells = list(_cells(compact))
    candidates = np.empty((n, n_candidates), dtype=np.int64)
    with Bar(total=n, unit="item", desc="finding neighbours", delay=2, disable=not verbose) as bar:
        for items, around in zip(cells, _around(compact, cells, max(n_candidates, SEEN_ITEMS)), strict=True):
            seen = np.concatenate([cells[cell] for cell in around])
            others = compact[seen]
            far = (
                others.square().sum(dim=1) - 2 * compact[items] @ others.T
            )  # squared distances but for |item|^2
            found = far.topk(n_candidates, largest=False).indices
            candidates[items] = seen[found.numpy()]
            bar.update(len(items))
    return candidates


def compact_vectors(X: Any) -> NDArray[np.float32]:
    """The first 64 principal components of dense data, the first 64 singular vectors of sparse data, or all values."""
    n, n_features = X.shape
    is_sparse = scipy.sparse.issparse(X)
    if n_features <= COMPONENTS:
        dense = X.toarray() if is_sparse else X
        return (dense - dense.mean(axis=0, dtype=np.float64)).astype(np.float32)
    if is_sparse:
        return TruncatedSVD(COMPONENTS, random_state=0).fit_transform(X).astype(np.float32)
    pca = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(X[random_items(n, LARGEST_SAMPLE // 5, seed=0)])
    compact = np.empty((n, COMPONENTS), dtype=np.float32)
    for start in range(0, n, BLOCK):
        compact[start : start + BLOCK] = pca.transform(X[start : start + BLOCK])
    return compact


def _cells(compact: torch.Tensor) -> Iterator[NDArray[np.int64]]:
    """The items of each cell."""
    n = len(compact)
    n_cells = max(n // CELL_ITEMS, 1)
    sample = compact[random_items(n, min(SAMPLE * n_cells, LARGEST_SAMPLE), seed=0)].numpy()
    with warnings.catch_warnings(), threadpool_limits(1):  # threads add up in the order in which they end
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct items than cells
        k_means = KMeans(n_cells, init="random", n_init=1, max_iter=5, random_state=0).fit(sample)
    centres = torch.from_numpy(k_means.cluster_centers_)
    labels = torch.cat([_distances(block, centres).argmin(dim=1) for block in compact.split(BLOCK)]).numpy()
    order = np.argsort(labels, kind="stable")
    for items in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield from np.array_split(items, -(-len(items) // LARGEST_CELL))


def _around(
    compact: torch.Tensor, cells: list[NDArray[np.int64]], n_seen: int
) -> Iterator[NDArray[np.int64]]:
    """For each cell the nearest ones, itself first, that hold ``n_seen`` items, or all."""
    centres = torch.stack([compact[items].mean(dim=0) for items in cells])
    sizes = np.array([len(items) for items in cells])
    for cell, centre in enumerate(centres):
        distances = _distances(centre[None], centres)[0]
        distances[cell] = -torch.inf
        order = distances.argsort(stable=True).numpy()
        yield order[: np.searchsorted(sizes[order].cumsum(), n_seen) + 1]


def _distances(items: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Squared distances, less the squared lengths of the items."""
    return centres.square().sum(dim=1) - 2 * items @ centres.T
