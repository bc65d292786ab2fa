"""Which items a model is most certain of, and what is gained by keeping only these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


def most_certain_items(probabilities: ArrayLike, n_per_cluster: int = 5) -> list[int]:
    """Positions of the items with the largest soft assignments, cluster by cluster.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_clusters)
        Soft assignments, as ``predict_proba`` returns them.
    n_per_cluster : int, default=5
        Smaller clusters contribute all of their items.

    Returns
    -------
    list of int

    Examples
    --------
    >>> most_certain_items([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8]], n_per_cluster=1)
    [1, 2]
    """
    shares = np.asarray(probabilities)
    labels, confidence = shares.argmax(axis=1), shares.max(axis=1)
    items: list[int] = []
    for cluster in range(shares.shape[1]):
        own = np.flatnonzero(labels == cluster)
        items += own[np.argsort(-confidence[own], kind="stable")[:n_per_cluster]].tolist()
    return items


class RiskCoverage(NamedTuple):
    """For each number of items that are kept, the most certain first, their share of all items and of errors among them."""

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]


def risk_coverage(confidence: ArrayLike, right: ArrayLike | None = None) -> RiskCoverage:
    """The share of errors among the most certain items, against how many are kept.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        The largest soft assignment of each item.
    right : array-like of bool of shape (n_samples,), optional
        Whether each item is right, as :func:`ddclust.choosing.metrics.are_right` says. Without it the share of errors is
        the one that the confidence itself expects, which needs no labels.

    Returns
    -------
    RiskCoverage
        Items of the same confidence are kept together, so there is a point for each different value.

    Examples
    --------
    >>> risk_coverage([0.5, 1.0, 0.5, 0.9]).risk.round(3)
    array([0.   , 0.05 , 0.275])
    >>> risk_coverage([0.5, 1.0, 0.5, 0.9], [False, True, True, True])
    RiskCoverage(coverage=array([0.25, 0.5 , 1.  ]), risk=array([0.  , 0.  , 0.25]))
    """
    confidence = np.asarray(confidence, dtype=np.float64)
    if confidence.ndim != 1 or not len(confidence):
        raise ValueError(f"confidence must hold a value for each item, got shape {confidence.shape}.")
    wrong = 1 - (confidence if right is None else np.asarray(right, dtype=np.float64))
    if wrong.shape != confidence.shape:
        raise ValueError(f"right must have a value for each of {len(confidence)} items, got {len(wrong)}.")
    order = np.argsort(-confidence, kind="stable")
    kept = np.arange(1, len(order) + 1)
    risk = np.cumsum(wrong[order]) / kept
    is_last = np.append(np.diff(confidence[order]) != 0, True)
    return RiskCoverage(kept[is_last] / len(order), risk[is_last])
