"""One clustering from several: they are aligned to the first, then vote on each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ddclust.choosing.metrics import align_labels


class Vote(NamedTuple):
    """The outcome of a vote, item by item."""

    labels: NDArray[np.int64]  # (n,)
    agreement: NDArray[np.float64]  # (n,): the share of voters for that label


def majority_vote(list_of_labels: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """The majority vote of several labellings of the same items, after they are aligned to the first.

    The labels may come from any source, and cluster numbers need not match. Ties are decided by the first labelling.

    Parameters
    ----------
    list_of_labels : sequence of array-like of int of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> majority_vote([[0, 0, 1, 1], [1, 1, 0, 0], [5, 5, 5, 7]])
    array([0, 0, 1, 1])
    """
    if len(list_of_labels) == 0:
        raise ValueError("There are no labels to vote on.")
    reference = np.asarray(list_of_labels[0])
    return count_votes(np.stack([align_labels(reference, labels) for labels in list_of_labels])).labels


def count_votes(aligned: NDArray[np.int64]) -> Vote:
    """The majority in each column of aligned labels; a tie goes to the first row.

    Parameters
    ----------
    aligned : ndarray of shape (n_voters, n_samples)

    Examples
    --------
    >>> count_votes(np.array([[0, 0, 0], [0, 1, 1], [2, 1, 2]]))
    Vote(labels=array([0, 1, 0]), agreement=array([0.66666667, 0.66666667, 0.33333333]))
    """
    n_voters, n = aligned.shape
    supporters = np.stack([(aligned == row).sum(axis=0) for row in aligned])  # (n_voters, n)
    most = supporters.max(axis=0)
    # Every vote with the most supporters is for one label if they are exactly that many votes.
    tied = (supporters == most).sum(axis=0) > most
    winner = np.where(tied, 0, supporters.argmax(axis=0))
    columns = np.arange(n)
    return Vote(aligned[winner, columns], supporters[winner, columns] / n_voters)


def agreement_of(aligned: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of runs that give each item its label; NaN for a single run, which has nobody to agree with.

    Parameters
    ----------
    aligned : ndarray of shape (n_runs, n_samples)
        The labels by each run, in one numbering.
    labels : ndarray of shape (n_samples,)

    Examples
    --------
    >>> agreement_of(np.array([[0, 1], [0, 0]]), np.array([0, 1]))
    array([1. , 0.5])
    >>> agreement_of(np.array([[0, 1]]), np.array([0, 1]))
    array([nan, nan])
    """
    if len(aligned) == 1:
        return np.full(len(labels), np.nan)
    return (aligned == labels).mean(axis=0)


def aligning_order(
    reference: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """The order of clusters that makes a labelling agree best with a reference.

    Parameters
    ----------
    reference, labels : ndarray of shape (n_samples,)
        Values from 0 to n_clusters - 1.

    Returns
    -------
    ndarray of shape (n_clusters,)
        ``probabilities[:, order]`` is aligned.

    Examples
    --------
    >>> aligning_order(np.array([0, 0, 1, 2]), np.array([2, 2, 0, 1]), 3)
    array([2, 0, 1])
    """
    table = np.bincount(reference * n_clusters + labels, minlength=n_clusters**2)
    return linear_sum_assignment(table.reshape(n_clusters, n_clusters), maximize=True)[1]


def averaged_with_neighbors(
    probabilities: NDArray[np.float32], neighbors: NDArray[np.integer]
) -> NDArray[np.float32]:
    """Each item's soft assignment averaged with those of its neighbours.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_clusters)
    neighbors : ndarray of int of shape (n_samples, n_neighbors)
        Positions of items.

    Examples
    --------
    >>> averaged_with_neighbors(np.array([[0.4, 0.6], [1.0, 0.0], [0.7, 0.3]]), np.array([[1, 2], [2, 0], [0, 1]]))
    array([[0.7, 0.3],
           [0.7, 0.3],
           [0.7, 0.3]])
    """
    total = probabilities.copy()
    for nearest in neighbors.T:
        total += probabilities[nearest]
    return total / (1 + neighbors.shape[1])


def combine(probabilities: Sequence[NDArray[np.float32]]) -> tuple[Vote, NDArray[np.float32]]:
    """The vote of aligned soft assignments, and the mean assignment of those who voted for the winner.

    Each of them has its largest value at the winner, so the mean does, too.

    Parameters
    ----------
    probabilities : sequence of ndarray of shape (n_samples, n_clusters)
    """
    aligned = np.stack([member.argmax(axis=1) for member in probabilities])  # (n_voters, n)
    vote = count_votes(aligned)
    mean = np.zeros_like(probabilities[0])
    for member, labels in zip(probabilities, aligned, strict=True):
        mean += member * (labels == vote.labels)[:, None]
    mean /= (aligned == vote.labels).sum(axis=0)[:, None]
    return vote, mean
