"""Whether a network keeps the clusters of items when these are changed a little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ddclust.objective.objective import Objective
from ddclust.training.inference import evaluation_mode
from ddclust.training.randomness import own_randomness

COPIES = 2  # of each item
BATCH = 256


def confirmed_by_copies(
    module: nn.Module,
    objective: Objective,
    items: NDArray[np.intp],
    labels: NDArray[np.int64],
    label_of: Callable[[NDArray[np.float32]], NDArray[np.int64]],
) -> NDArray[np.float64] | None:
    """For each item the share of its augmented copies that keep its label; None if there is nothing to compare with.

    Without an augmentation, they are random ones of its nearest neighbours.

    Parameters
    ----------
    module : nn.Module
        Returns (hidden, logits).
    objective : Objective
        Has the items, and what they are paired with.
    items : ndarray of shape (m,)
        Positions of the items to look at.
    labels : ndarray of shape (m,)
    label_of : callable
        From soft assignments to the network's outputs, (b, n_outputs), to labels, (b,).
    """
    augment = objective.pairs.augment
    if augment is None and objective.pairs.neighbors is None:
        return None
    kept = np.zeros(len(items))
    with evaluation_mode(module) as device, own_randomness(0):
        for _ in range(COPIES):
            for start in range(0, len(items), BATCH):
                rows = slice(start, start + BATCH)
                x = objective.source.batch(items[rows]).to(device)
                other = objective.paired(x, items[rows]) if augment is None else augment(x)
                found = label_of(module(other)[1].softmax(dim=1).cpu().numpy())
                kept[rows] += found == labels[rows]
    return kept / COPIES
