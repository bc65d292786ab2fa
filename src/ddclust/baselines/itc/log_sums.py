"""Logs of sums of exponentials: overlaps of clusters in many dimensions have no floating-point number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_sum(logs: Floats) -> Floats:
    """The log of the sum over the last axis; -inf for an empty one. Faster than scipy's on small arrays."""
    if logs.shape[-1] == 0:
        return np.full(logs.shape[:-1], -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]


def grouped_log_sum(logs: Floats, groups: Ints, n_groups: int) -> Floats:
    """The log of the sum of each group; -inf for an empty group."""
    top = np.full(n_groups, -np.inf)
    np.maximum.at(top, groups, logs)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(groups, np.exp(logs - top[groups]), n_groups)) + top


def log_sums_by_label(logs: Floats, labels: Ints, n_labels: int) -> Floats:
    """The log of the sum of each row's values per label, of shape (rows, n_labels)."""
    groups = np.arange(len(logs))[:, None] * n_labels + labels
    return grouped_log_sum(logs.ravel(), groups.ravel(), len(logs) * n_labels).reshape(-1, n_labels)
