"""Most of the nearest neighbours of many items: each is compared with the items of the cells around it only.

k-means divides the items into cells of about 100, or 200 if there are very many. The items of a cell are compared with
those of the nearest cells, by their first 64 principal components. The best candidates are left for an exact comparison. The time grows a little faster than the
number of items instead of with its square, and the same data always give the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from ddclust.data.batches import random_items
from ddclust.progress import Bar

COMPONENTS = 64
CELL_ITEMS = 100
SEEN_ITEMS = 6_000  # at least so many items are compared with each, if there are so many
MANY_ITEMS = (
    200_000  # beyond so many, cells hold twice as many items, and half as many are compared with each
)
LARGEST_CELL = 4 * CELL_ITEMS  # larger ones, of many duplicates, are cut into parts
SAMPLE = 50  # items for each cell that k-means sees, and
LARGEST_SAMPLE = 50_000  # in all
PCA_SAMPLE = 20_000
ITERATIONS = 4  # of k-means
BLOCK = 4_096  # items at a time


def candidate_neighbors(X: Any, n_candidates: int, *, verbose: bool | int = False) -> NDArray[np.int64]:
    """Items that are likely to be the nearest of each item by Euclidean distance, (n, n_candidates).

    An item is among its own candidates, unless it has as many duplicates.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
    n_candidates : int
        At most 3,000 and at most n_samples.
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
    candidates = np.empty((n, n_candidates), dtype=np.int64)
    with Bar(total=_passes(n), unit="item", desc="finding neighbours", delay=2, disable=not verbose) as bar:
        compact = torch.from_numpy(compact_vectors(X))  # (n, d')
        cells = list(_cells(compact, bar.update))
        for items, around in zip(cells, _around(compact, cells, max(n_candidates, _n_seen(n))), strict=True):
            seen = np.concatenate([cells[cell] for cell in around])
            candidates[items] = seen[_best(compact[items], compact[seen], n_candidates)]
            bar.update(len(items))
    return candidates


def expected_seconds(n: int, n_features: int, n_candidates: int) -> float:
    """How long :func:`candidate_neighbors` of dense data will take, from trials of its steps on random values."""
    d, random = min(n_features, COMPONENTS), np.random.default_rng(0)
    shapes = (BLOCK // 4, n_features), (n_features, d), (_n_cells(n), d), (_n_seen(n), d)
    items, axes, centres, seen = (
        torch.from_numpy(random.random(shape, dtype=np.float32)) for shape in shapes
    )
    compact = items @ axes
    to_compare = _seconds(lambda: _best(compact[:CELL_ITEMS], seen, n_candidates)) / CELL_ITEMS
    to_assign = _seconds(lambda: _nearest(compact, centres)) / len(compact)
    to_project = _seconds(lambda: items @ axes) / len(compact) if n_features > COMPONENTS else 0.0
    covariance = min(n, PCA_SAMPLE) * to_project * n_features / d
    return n * (to_compare + to_project) + (_passes(n) - n) * to_assign + covariance


def _seconds(step: Callable[[], object]) -> float:
    """How long a step takes, once it has been made."""
    step()
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _passes(n: int) -> int:
    """How many items are compared with cells or items in all: by k-means, to find their cells, and in their cells."""
    return ITERATIONS * _sample_size(n) + 2 * n


def _sample_size(n: int) -> int:
    return min(SAMPLE * _n_cells(n), LARGEST_SAMPLE, n)


def _n_cells(n: int) -> int:
    return max(n // (CELL_ITEMS if n <= MANY_ITEMS else 2 * CELL_ITEMS), 1)


def _n_seen(n: int) -> int:
    return SEEN_ITEMS if n <= MANY_ITEMS else SEEN_ITEMS // 2


def _best(items: torch.Tensor, others: torch.Tensor, n_candidates: int) -> NDArray[np.int64]:
    """The places of the nearest of the others for each item."""
    return _distances(items, others).topk(n_candidates, largest=False).indices.numpy()


def compact_vectors(X: Any) -> NDArray[np.float32]:
    """The first 64 principal components of dense data, the first 64 singular vectors of sparse data, or all values."""
    from sklearn.decomposition import PCA, TruncatedSVD

    n, n_features = X.shape
    is_sparse = scipy.sparse.issparse(X)
    if n_features <= COMPONENTS:
        dense = X.toarray() if is_sparse else X
        return (dense - dense.mean(axis=0, dtype=np.float64)).astype(np.float32)
    if is_sparse:
        return TruncatedSVD(COMPONENTS, random_state=0).fit_transform(X).astype(np.float32)
    pca = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(X[random_items(n, PCA_SAMPLE, seed=0)])
    compact = np.empty((n, COMPONENTS), dtype=np.float32)
    for start in range(0, n, BLOCK):
        compact[start : start + BLOCK] = pca.transform(X[start : start + BLOCK])
    return compact


def _cells(compact: torch.Tensor, update: Callable[[int], object]) -> Iterator[NDArray[np.int64]]:
    """The items of each cell; ``update`` is told how many items were compared with all cells."""
    n = len(compact)
    sample = compact[random_items(n, _sample_size(n), seed=0)]
    centres = sample[np.random.default_rng(0).permutation(len(sample))[: _n_cells(n)]]
    for _ in range(ITERATIONS):
        centres = _moved(centres, sample, _nearest(sample, centres, update))
    labels = _nearest(compact, centres, update)
    order = np.argsort(labels, kind="stable")
    for items in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield from np.array_split(items, -(-len(items) // LARGEST_CELL))


def _nearest(
    items: torch.Tensor, centres: torch.Tensor, update: Callable[[int], object] = lambda n: None
) -> NDArray[np.int64]:
    """The nearest centre of each item."""
    labels = np.empty(len(items), dtype=np.int64)
    for start in range(0, len(items), BLOCK):
        block = items[start : start + BLOCK]
        labels[start : start + BLOCK] = _distances(block, centres).argmin(dim=1).numpy()
        update(len(block))
    return labels


def _moved(centres: torch.Tensor, items: torch.Tensor, labels: NDArray[np.int64]) -> torch.Tensor:
    """The mean of the items of each centre, in float64 and one order whatever the threads; without items it stays."""
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    sums = np.add.reduceat(items.numpy()[order], starts, axis=0, dtype=np.float64)
    moved = centres.numpy().copy()
    moved[used] = sums / np.diff(np.append(starts, len(labels)))[:, None]
    return torch.from_numpy(moved)


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
