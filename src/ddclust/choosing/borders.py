"""Whether a border between two clusters runs through dense data, where the data do not decide for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Share of the neighbours of a cluster's items that are in one other cluster. Chosen on digits, in equal and unequal numbers.
CROSSED = 0.1


def crossings(
    labels: NDArray[np.int64], neighbors: NDArray[np.integer], n_clusters: int
) -> NDArray[np.float64]:
    """For each two clusters, the share of the smaller one's pairs of neighbours that the border between them parts.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    neighbors : ndarray of shape (n, m)
        Positions of the nearest neighbours of each item.
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
    np.add.at(P, (np.repeat(labels, neighbors.shape[1]), labels[neighbors].ravel()), 1)
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
    >>> doubtful_border(halves, next_to, 2)[:58]
    'The border between clusters 0 and 1 runs through dense dat'
    >>> doubtful_border(np.sort(halves), next_to, 2) is None
    True
    """
    shares = crossings(labels, neighbors, n_clusters)
    first, second = sorted(map(int, np.unravel_index(shares.argmax(), shares.shape)))
    if shares[first, second] < CROSSED:
        return None
    return (
        f"The border between clusters {first} and {second} runs through dense data: it parts"
        f" {shares[first, second]:.0%} of the smaller one's nearest neighbours. They may be one kind of item; compare with"
        f" n_clusters={n_clusters - 1}, or give links or cluster_sizes."
    )
