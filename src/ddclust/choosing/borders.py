"""Whether a border between two clusters runs through dense data, where the data do not decide for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import BatchSource

OPEN = 1.0  # openness from which on clusters are no better than those in noise
# Share of the neighbours of a cluster's items that are in one other cluster. Chosen on digits, in equal and unequal numbers.
CROSSED = 0.1
DOUBT = "The data do not decide for these clusters"


def crossings(
    labels: NDArray[np.int64], neighbors: NDArray[np.integer], n_clusters: int
) -> NDArray[np.float64]:
    """For each two clusters, the share of the smaller one's pairs of neighbours that the border between them parts.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    neighbors : ndarray of shape (n, m)
        Positions of the nearest neighbours of each item; an item that is its own has none.
    n_clusters : int

    Returns
    -------
    ndarray of shape (n_clusters, n_clusters), symmetric, with zeros on the diagonal

    Examples
    --------
    >>> crossings(np.array([0, 0, 0, 1]), np.array([[1], [0], [1], [2]]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    P = np.zeros((n_clusters, n_clusters))
    items, places = np.nonzero(neighbors != np.arange(len(labels))[:, None])
    np.add.at(P, (labels[items], labels[neighbors[items, places]]), 1)
    P = (P + P.T) / 2
    volume = P.sum(axis=1)
    shares = P / np.maximum(
        np.minimum.outer(volume, volume), 0.5
    )  # one pair of two clusters counts half in each
    np.fill_diagonal(shares, 0)
    return shares


def doubtful_border(labels: NDArray[np.int64], neighbors: NDArray[np.integer], n_clusters: int) -> str | None:
    """A sentence about the two clusters whose border parts most neighbours, if these are many.

    Examples
    --------
    >>> halves = np.array([0, 1] * 50)
    >>> next_to = (np.arange(100)[:, None] + 1) % 100
    >>> doubtful_border(halves, next_to, 2)[:75]
    'The data do not decide for these clusters: the border between 0 and 1 runs '
    >>> doubtful_border(np.sort(halves), next_to, 2) is None
    True
    """
    shares = crossings(labels, neighbors, n_clusters)
    first, second = sorted(map(int, np.unravel_index(shares.argmax(), shares.shape)))
    if shares[first, second] < CROSSED:
        return None
    return (
        f"{DOUBT}: the border between {first} and {second} runs through dense data and parts"
        f" {shares[first, second]:.0%} of the smaller one's nearest neighbours. They may be one kind of item; compare with"
        f" n_clusters={n_clusters - 1}, or give links or cluster_sizes."
    )


def doubtful_clusters(labels: NDArray[np.int64], source: BatchSource) -> str | None:
    """A sentence, if the clusters of vectors are as open as those that k-means finds in noise.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ddclust.data.batches import Scaling
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> source = BatchSource(X, Scaling.of(X))
    >>> doubtful_clusters(y, source) is None, doubtful_clusters(X[:, 0] > 0, source) is None
    (True, False)
    """
    from ddclust.choosing.openness import landscape_of

    openness = landscape_of(source).openness(labels)
    if openness < OPEN:
        return None
    return (
        f"{DOUBT}: borders are no clearer, or clusters no more of one piece, than in a cloud without clusters (openness"
        f" {openness:.2g}; up to 0.3 is clear). Compare numbers of clusters by a scan, and look at items of low confidence."
    )
