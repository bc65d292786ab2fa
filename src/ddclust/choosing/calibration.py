"""Confidence that can be believed: soft assignments made as certain as other runs, and copies of the items, confirm.

A trained network is nearly certain of everything. Whether it is right cannot be known without labels, but it can be asked
how often another run gives an item the same cluster, and how often the network gives it to a slightly changed copy. A single
number, the temperature T, makes the soft assignments that certain on average: they become softmax(log p / T). The largest
one stays the largest.

Runs share some errors, which makes the confidence too high, and make errors of their own, which makes it too low. A run that
is far from all others is most likely a bad one, and its votes count little. If all runs find the same wrong clusters, nothing
here can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

# A run's votes weigh its mean agreement with the others to this power: with 10 % less agreement, 4 % of the weight.
# Chosen on the classes of digits, the RCV1 subset, AG News and breast cancer.
POWER = 30
HIGHEST = 100.0  # temperature
LEAST = float(np.finfo(np.float32).tiny)  # probabilities below are zero in float32
CERTAIN = 1e-6  # the cross-entropy takes no confidence as nearer to 0 or 1
RUNS, HALVES, COPIES, NOTHING = "runs", "halves", "copies", "nothing"


@dataclass(frozen=True)
class Calibration:
    """How a model's soft assignments are made as certain as they should be.

    Parameters
    ----------
    temperature : float, default=1.0
        At least 1. Assignments are divided by it in the logarithm; 1 leaves them as the network gives them.
    basis : {"runs", "halves", "copies", "nothing"}, default="nothing"
        What they were compared with: the labels of the other runs, or by a simple method that was fitted to halves of the items, and
        those of augmented copies of the items or of their nearest neighbours; these copies alone, if there was a single run; or
        nothing.

    Examples
    --------
    >>> Calibration(2.0, "runs")
    Calibration(temperature=2.0, basis='runs')
    """

    temperature: float = 1.0
    basis: str = NOTHING

    def __post_init__(self) -> None:
        if not 1 <= self.temperature <= HIGHEST:
            raise ValueError(f"temperature={self.temperature} must be between 1 and {HIGHEST:g}.")
        if self.basis not in (RUNS, HALVES, COPIES, NOTHING):
            raise ValueError(f"basis={self.basis!r} must be 'runs', 'halves', 'copies' or 'nothing'.")

    def __call__(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """The calibrated soft assignments."""
        return probabilities if self.temperature == 1 else tempered(probabilities, self.temperature)


def tempered(probabilities: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    """softmax(log p / T), row by row. Each row keeps its first largest value where it was.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_clusters)
    temperature : float
        Above 1 makes them less certain, below 1 more.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)

    Examples
    --------
    >>> tempered(np.array([[0.8, 0.2]], dtype=np.float32), 2.0).round(3)
    array([[0.667, 0.333]], dtype=float32)
    """
    p = np.maximum(probabilities.astype(np.float64), LEAST)
    p = np.exp((np.log(p) - np.log(p.max(axis=1, keepdims=True))) / temperature)
    p /= p.sum(axis=1, keepdims=True)
    result = p.astype(np.float32)
    # Values that differed in the last digit may have become equal.
    rows, largest = np.arange(len(p)), probabilities.argmax(axis=1)
    moved = result.argmax(axis=1) != largest
    result[rows[moved], largest[moved]] = np.nextafter(result[moved].max(axis=1), np.float32(1))
    return result


def run_weights(aligned: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much the votes of each run count: its mean agreement with the other runs, to the 30th power.

    Parameters
    ----------
    aligned : ndarray of shape (n_runs, n_samples)
        The labels of at least two runs, in one numbering.

    Examples
    --------
    >>> labels = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]])
    >>> run_weights(labels).round(4)
    array([0.5, 0.5, 0. ])
    """
    agree = np.array([[(first == second).mean() for second in aligned] for first in aligned])
    weights = ((agree.sum(axis=1) - 1) / (len(aligned) - 1)) ** POWER
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(aligned), 1 / len(aligned))


def confirmed_by_runs(aligned: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The weighted share of the other runs that give each item its label.

    The other runs are all but the first one that gives it this label.

    Parameters
    ----------
    aligned : ndarray of shape (n_runs, n_samples)
        The labels of at least two runs in one numbering, the best run first.
    labels : ndarray of shape (n_samples,)
        Each is that of a run.

    Examples
    --------
    >>> aligned = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 0]])
    >>> confirmed_by_runs(aligned, aligned[0]).round(3)
    array([1., 1., 1., 1.])
    """
    weights = run_weights(aligned)[:, None]
    support = aligned == labels
    own = weights[support.argmax(axis=0), 0]
    others = (weights * support).sum(axis=0) - own
    return np.clip(others / np.maximum(1 - own, CERTAIN), 0, 1)


def confirmed(
    by_runs: NDArray[np.float64] | None, by_copies: NDArray[np.float64] | None, n_runs: int
) -> NDArray[np.float64] | None:
    """How far each item's label is confirmed by all that there is; the copies count like one run.

    Parameters
    ----------
    by_runs, by_copies : ndarray of shape (n_samples,) or None
        The shares of other runs and of copies that give each item its label.
    n_runs : int
        All runs, the item's own one included.

    Examples
    --------
    >>> confirmed(np.array([0.0, 1.0]), np.array([1.0, 1.0]), n_runs=4)
    array([0.25, 1.  ])
    """
    if by_runs is None or by_copies is None:
        return by_copies if by_runs is None else by_runs
    return ((n_runs - 1) * by_runs + by_copies) / n_runs


def fitted_temperature(
    probabilities: NDArray[np.float32], labels: NDArray[np.int64], target: NDArray[np.float64]
) -> float:
    """The temperature, at least 1, that makes the assignments to the labels as large as they are confirmed.

    It minimises the cross-entropy of both. It is never below 1: a network is not made more certain than it is itself,
    however far runs agree, since they may share errors.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_clusters)
    labels : ndarray of shape (n_samples,)
        The position of the largest in each row.
    target : ndarray of shape (n_samples,)
        How far each label is confirmed, from 0 to 1.

    Examples
    --------
    >>> p = np.tile(np.array([[0.99, 0.01]], dtype=np.float32), (10, 1))
    >>> T = fitted_temperature(p, np.zeros(10, dtype=int), np.full(10, 0.8))
    >>> tempered(p, T)[0].round(3)
    array([0.8, 0.2], dtype=float32)
    """
    rows = np.arange(len(labels))

    def cross_entropy(log_temperature: float) -> float:
        own = tempered(probabilities, float(np.exp(log_temperature)))[rows, labels].astype(np.float64)
        own = np.clip(own, CERTAIN, 1 - CERTAIN)
        return -float((target * np.log(own) + (1 - target) * np.log1p(-own)).mean())

    found = minimize_scalar(cross_entropy, bounds=(0, np.log(HIGHEST)), method="bounded")
    return float(np.exp(found.x)) if found.fun < cross_entropy(0.0) else 1.0
