"""The nearest neighbours of every item, without the item itself and without an n x n array."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from ddclust.data.batches import BatchSource, random_items
from ddclust.data.cells import COMPONENTS, candidate_neighbors, expected_seconds
from ddclust.data.items import SparseItems
from ddclust.progress import Bar

CHUNK_ROWS = 4096  # queries at a time: enough work for all cores, and a progress bar that moves
DIFFERENCE_BYTES = 64 * 2**20
# Up to so many items all distances, and up to so many features a tree, take a few seconds.
EXACT_ITEMS, TREE_FEATURES = 10_000, 8
MOST_APPROXIMATE = 500  # neighbours
# Of more images than the first number, neighbours are searched among so many: a fit draws few of such numbers more than once.
MANY_IMAGES, SEARCHED_IMAGES = 200_000, 50_000
CANDIDATES, FEWEST_MORE = 3, 8  # for each neighbour that is sought, and more than these
TRIAL_ROWS = 256  # whose neighbours are searched to know how long a search takes
TRIAL_BYTES = 2**26  # of random values, beyond what processors keep near
# Texts are searched by words, reduced to topics, and searched again; in all that takes as long as so many searches by words.
TOPIC_SEARCHES = 2
# Tuned on the classes of AG News: 74 % of ten neighbours by words share the class, and 80 % of ten by topics.
TOPICS, SMOOTHED_OVER = 30, 10


class Neighbors(NamedTuple):
    """``indices`` and ``distances``, both (n, k), nearest first."""

    indices: NDArray[np.int64]
    distances: NDArray[np.float64]


def nearest_neighbors(
    X: Any, n_neighbors: int, *, metric: str = "euclidean", verbose: bool | int = False
) -> Neighbors:
    """The ``n_neighbors`` nearest other items of each item.

    An item is never its own neighbour, but its duplicates may be. Neighbours at the same distance are ordered by
    index. The search is exact up to 10,000 items, and by a tree of up to 8 dimensions. In larger data most of the nearest
    neighbours are found (:mod:`ddclust.data.cells`): 98 % on MNIST, in a tenth of the time.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
    n_neighbors : int
        Less than n_samples.
    metric : {"euclidean", "cosine"}, default="euclidean"
        The cosine distance is 1 - cos. Items with only zeros have no direction: they count as equal to each other
        and as orthogonal to all others.
    verbose : bool or int, default=False
        Show a progress bar if the search takes more than two seconds.

    Returns
    -------
    Neighbors

    Examples
    --------
    >>> nearest_neighbors(np.array([[0.0], [1.0], [3.0], [3.0]]), 2).indices
    array([[1, 2],
           [0, 2],
           [3, 1],
           [2, 1]])
    """
    n = X.shape[0]
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"metric={metric!r} must be 'euclidean' or 'cosine'.")
    if not 1 <= n_neighbors < n:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be at least 1 and less than n_samples={n}: an item is not its own neighbour."
        )
    if metric == "cosine":
        X = _directions(X)
    is_large = _is_large(n, X.shape[1], n_neighbors)
    found = _candidates(X, n_neighbors, verbose) if is_large else _found(X, n_neighbors, verbose)
    distances = _distances(X, found, verbose)
    order = np.lexsort((found, distances))[
        :, :n_neighbors
    ]  # exact distances may differ in order from the rounded ones
    indices = np.take_along_axis(found, order, axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    return Neighbors(indices, distances**2 / 2 if metric == "cosine" else distances)


def _is_large(n: int, n_features: int, n_neighbors: int) -> bool:
    """Whether exact neighbours would take too long."""
    return n > EXACT_ITEMS and n_features > TREE_FEATURES and n_neighbors <= MOST_APPROXIMATE


def neighbors_of(
    source: BatchSource, n_neighbors: int, *, by_topics: bool = False, verbose: bool | int = False
) -> NDArray[np.int32]:
    """The nearest neighbours of all items of a source, (n, n_neighbors).

    Sparse items are compared by the cosine of their topics (:func:`topic_vectors`), and so are others with ``by_topics``;
    else by the Euclidean distance of their scaled values. Of very many images, a random sample is searched; the others, which can
    still be paired with copies of themselves, are their own neighbours.
    """
    if _is_sampled(source) and not by_topics:
        some = random_items(len(source), SEARCHED_IMAGES, seed=0)
        near = nearest_neighbors(source.batch(some).flatten(1).numpy(), n_neighbors, verbose=verbose).indices
        neighbors = np.repeat(np.arange(len(source), dtype=np.int32)[:, None], n_neighbors, axis=1)
        neighbors[some] = some[near]
        return neighbors
    vectors = source.vectors()
    if by_topics or isinstance(source.items, SparseItems):
        topics = topic_vectors(vectors, verbose=verbose)
        found = nearest_neighbors(topics, n_neighbors, metric="cosine", verbose=verbose)
    else:
        found = nearest_neighbors(vectors, n_neighbors, verbose=verbose)
    return found.indices.astype(np.int32)


def seconds_to_find(source: BatchSource, n_neighbors: int, *, by_topics: bool = False) -> float:
    """About how long :func:`neighbors_of` will take, from the search for the neighbours of a few items."""
    n, is_sparse = len(source), isinstance(source.items, SparseItems)
    n = SEARCHED_IMAGES if _is_sampled(source) and not by_topics else n
    n_features = math.prod(source.items.shape[1:])
    if n <= TRIAL_ROWS:
        return 0.0
    if _is_large(n, n_features, n_neighbors):
        if is_sparse:
            return TOPIC_SEARCHES * expected_seconds(n, COMPONENTS, _n_candidates(n_neighbors))
        if by_topics:
            return _seconds_among_many(n, n_features, SMOOTHED_OVER) + _seconds_among_many(
                n, min(TOPICS, n_features), n_neighbors
            )
        return _seconds_among_many(n, n_features, n_neighbors)
    from sklearn.neighbors import NearestNeighbors

    X = source.vectors()
    begun = time.perf_counter()
    search = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(X)
    built = time.perf_counter()
    search.kneighbors(X[:TRIAL_ROWS], return_distance=False)
    seconds = built - begun + (time.perf_counter() - built) * n / TRIAL_ROWS
    return seconds * TOPIC_SEARCHES if by_topics or is_sparse else seconds


def _is_sampled(source: BatchSource) -> bool:
    """Whether neighbours are searched in a part of the items."""
    return len(source) > MANY_IMAGES and len(source.items.shape) > 2


def _seconds_among_many(n: int, n_features: int, n_neighbors: int) -> float:
    """How long the search in many dense items takes."""
    n_candidates = _n_candidates(n_neighbors)
    return expected_seconds(n, n_features, n_candidates) + _seconds_to_compare(n, n_features, n_candidates)


def _seconds_to_compare(n: int, n_features: int, n_candidates: int) -> float:
    """How long the exact distances of all candidates take."""
    random = np.random.default_rng(0)
    X = random.random((max(TRIAL_BYTES // (4 * n_features), TRIAL_ROWS), n_features), dtype=np.float32)
    indices = random.integers(len(X), size=(TRIAL_ROWS, n_candidates))
    begun = time.perf_counter()
    _distances(X, indices)
    return (time.perf_counter() - begun) * n / TRIAL_ROWS


def topic_vectors(X: Any, *, verbose: bool | int = False) -> NDArray:
    """Texts, or features of items, as vectors that the cosine compares by topic, even where two of a topic share little.

    The mean direction of its ten nearest rows is added to the direction of each row. Latent semantic analysis (a
    truncated singular value decomposition) then reduces the sums to 30 dimensions, or to all if there are fewer.

    Parameters
    ----------
    X : CSR matrix or ndarray of shape (n_samples, n_features)
        TF-IDF of the texts, or features.
    verbose : bool or int, default=False
        Show progress if the search for neighbours takes more than two seconds.

    Returns
    -------
    ndarray of shape (n_samples, min(30, n_features))

    Examples
    --------
    >>> topic_vectors(scipy.sparse.random(50, 30, 0.2, format="csr", random_state=0)).shape
    (50, 30)
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    n, n_features = X.shape
    n_near = min(SMOOTHED_OVER, n - 1)
    near = nearest_neighbors(X, n_near, metric="cosine", verbose=verbose).indices
    share = np.full(near.size, 1 / n_near, dtype=X.dtype)
    means = scipy.sparse.csr_array((share, near.ravel(), np.arange(0, near.size + 1, n_near)), shape=(n, n))
    directions = normalize(X)
    smooth: Any = normalize(directions + means @ directions)  # as X is, dense or sparse
    if n_features == 1:
        return smooth.toarray() if hasattr(smooth, "toarray") else smooth
    with np.errstate(divide="ignore", invalid="ignore"):  # identical rows explain no variance
        return TruncatedSVD(min(TOPICS, n_features), random_state=0).fit_transform(smooth)


def _candidates(X: Any, n_neighbors: int, verbose: bool | int) -> NDArray[np.int64]:
    """More items than the nearest neighbours, with most of these among them, without the item itself."""
    found = candidate_neighbors(X, _n_candidates(n_neighbors), verbose=verbose)
    return _without_itself(found, np.arange(len(found)))


def _n_candidates(n_neighbors: int) -> int:
    return max(CANDIDATES * n_neighbors, n_neighbors + FEWEST_MORE) + 1


def _directions(X: Any) -> Any:
    """Rows of unit length; rows of zeros share a direction of their own, in one more column."""
    from sklearn.preprocessing import normalize

    X = normalize(X)
    is_empty = row_norms(X) == 0
    if not is_empty.any():
        return X
    column = is_empty[:, None].astype(X.dtype)
    is_sparse: bool = scipy.sparse.issparse(X)
    return scipy.sparse.hstack([X, column], format="csr") if is_sparse else np.hstack([X, column])


def centred(X: Any) -> Any:
    """Dense data minus its mean, so that the quadratic expansion of distances loses no digits.

    Sparse data is left as it is.
    """
    if scipy.sparse.issparse(X):
        return X
    return X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)


def _found(X: Any, n_neighbors: int, verbose: bool | int) -> NDArray[np.int64]:
    """Indices of the nearest neighbours without the item itself, (n, k), in no particular order."""
    from sklearn.neighbors import NearestNeighbors

    n = X.shape[0]
    X = centred(X)
    search = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(X)
    indices = np.empty((n, n_neighbors), dtype=np.int64)
    with Bar(total=n, unit="item", desc="finding neighbours", delay=2, disable=not verbose) as bar:
        for start in range(0, n, CHUNK_ROWS):
            rows = np.arange(start, min(start + CHUNK_ROWS, n))
            found = search.kneighbors(X[rows[0] : rows[-1] + 1], return_distance=False)
            indices[rows] = _without_itself(found, rows)
            bar.update(len(rows))
    return indices


def _without_itself(found: NDArray, rows: NDArray[np.int64]) -> NDArray:
    """Each row's candidates without the row itself or, where duplicates took its place, without the last one."""
    is_itself = found == rows[:, None]
    is_itself[~is_itself.any(axis=1), -1] = True
    return found[~is_itself].reshape(len(found), -1)


def _distances(X: Any, indices: NDArray[np.int64], verbose: bool | int = False) -> NDArray[np.float64]:
    """Distances to the neighbours from differences, so that those of duplicates are exactly zero."""
    n, k = indices.shape
    of_block = _sparse_distances if scipy.sparse.issparse(X) else _dense_distances
    distances = np.empty((n, k))
    step = max(DIFFERENCE_BYTES // (8 * k * X.shape[1]), 1)
    with Bar(total=n, unit="item", desc="comparing neighbours", delay=2, disable=not verbose) as bar:
        for start in range(0, n, step):
            block = indices[start : start + step]
            distances[start : start + step] = of_block(X, np.arange(start, start + len(block)), block)
            bar.update(len(block))
    return distances


def _dense_distances(X: NDArray, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray:
    difference = X[others]  # (rows, k, d)
    difference -= X[rows[0] : rows[-1] + 1, None]
    return np.sqrt(np.einsum("nkd,nkd->nk", difference, difference))


def _sparse_distances(X: Any, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray:
    difference = X[np.repeat(rows, others.shape[1])] - X[others.ravel()]
    squares = np.asarray(difference.astype(np.float64).power(2).sum(axis=1)).ravel()
    return np.sqrt(squares).reshape(others.shape)
