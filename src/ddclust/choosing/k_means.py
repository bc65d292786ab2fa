"""k-means, the simple method that a result is compared with."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ddclust.data.batches import BatchSource, random_items
from ddclust.data.items import SparseItems

COMPARED_ITEMS = 10_000
AS_WELL = "k-means explains these data as well"
FAR = 0.2  # share of items in clusters of other sizes from which on these are called far apart; a guess
SAME = 0.9  # adjusted Rand index from which on two divisions count as the same


def k_means_labels(vectors: Any, n_clusters: int) -> NDArray[np.int32]:
    """The clusters of the best of four runs of k-means.

    Examples
    --------
    >>> sorted(np.bincount(k_means_labels(np.array([[0.0], [0.1], [5.0]]), 2)).tolist())
    [1, 2]
    """
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=4, random_state=0).fit_predict(vectors)


def k_means_start(source: BatchSource, n_clusters: int, seed: int) -> NDArray[np.float32]:
    """The assignments by the best of four runs of k-means on at most 10,000 items, (n, n_clusters).

    Examples
    --------
    >>> from ddclust.data.batches import Scaling
    >>> X = np.array([[0.0], [0.1], [5.0]])
    >>> k_means_start(BatchSource(X, Scaling.none(X)), 2, seed=0).sum(axis=1)
    array([1., 1., 1.], dtype=float32)
    """
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters, n_init=4, random_state=seed)
    some = source.batch(random_items(len(source), COMPARED_ITEMS, seed)).flatten(1).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different items than clusters
        model.fit(some)
    blocks = [slice(start, start + COMPARED_ITEMS) for start in range(0, len(source), COMPARED_ITEMS)]
    labels = np.concatenate([model.predict(source.batch(rows).flatten(1).numpy()) for rows in blocks])
    return np.eye(n_clusters, dtype=np.float32)[labels]


class BesideKMeans(NamedTuple):
    """Two divisions of the same items: ours, and that of k-means into as many clusters."""

    labels: NDArray[np.int64]
    simple: NDArray[np.int32]

    @property
    def rand_index(self) -> float:
        """The adjusted Rand index of the two."""
        from sklearn.metrics import adjusted_rand_score

        return float(adjusted_rand_score(self.labels, self.simple))

    @property
    def are_the_same(self) -> bool:
        return self.rand_index >= SAME

    @property
    def are_far_apart(self) -> bool:
        """Whether the sizes of the clusters differ much."""
        return self.moved >= FAR

    @property
    def moved(self) -> float:
        """The least share of items that would have to change clusters for both divisions to have the same sizes.

        Examples
        --------
        >>> BesideKMeans(np.array([0, 0, 0, 1]), np.array([1, 1, 0, 0])).moved
        0.25
        """
        n_clusters = max(found.max() for found in self) + 1
        ours, other = (np.sort(np.bincount(found, minlength=n_clusters)) for found in self)
        return float(np.abs(ours - other).sum() / 2 / len(self.labels))

    def __str__(self) -> str:
        if self.are_the_same:
            return f"{AS_WELL}: adjusted Rand index {self.rand_index:.2f}."
        ours, other = (
            ", ".join(f"{size:,}" for size in np.sort(np.bincount(found))[::-1] if size) for found in self
        )
        doubt = (
            " The sizes are far apart: look at both before you trust either." if self.are_far_apart else ""
        )
        return (
            f"k-means divides these data differently: adjusted Rand index {self.rand_index:.2f},"
            f" clusters of {other} items instead of {ours}.{doubt}"
        )


def beside_k_means(labels: NDArray[np.int64], vectors: Any) -> BesideKMeans:
    """What k-means makes of the items of ``labels``, rows of ``vectors``; ``str`` says it in one sentence.

    Examples
    --------
    >>> print(beside_k_means(np.array([1, 1, 0]), np.array([[0.0], [0.1], [5.0]])))
    k-means explains these data as well: adjusted Rand index 1.00.
    """
    return BesideKMeans(labels, k_means_labels(vectors, len(np.unique(labels))))


def sampled_vectors(source: BatchSource) -> tuple[NDArray[np.intp], Any]:
    """At most 10,000 items to compare on: their positions, and their rows."""
    some = random_items(len(source), COMPARED_ITEMS, seed=0)
    is_sparse = isinstance(source.items, SparseItems)
    return some, source.vectors()[some] if is_sparse else source.batch(some).flatten(1).numpy()
