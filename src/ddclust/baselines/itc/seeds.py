"""The small clusters from which the hierarchy starts."""

from __future__ import annotations

import numpy as np

from ddclust.baselines.itc.densities import UNLABELLED
from ddclust.baselines.itc.log_sums import Floats, Ints


def seeded_labels(distances: Floats, n_seeds: int, seed_size: int, rng: np.random.RandomState) -> Ints:
    """Small clusters, each grown from a random free point by adding the free point nearest to any of its points.

    Parameters
    ----------
    distances : ndarray of shape (n, n)
        Distances, or any increasing function of them.
    n_seeds : int
    seed_size : int
        Points per cluster; n_seeds * seed_size is at most n.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n,)
        0 to n_seeds - 1; -1 for the other points.

    Examples
    --------
    >>> x = np.array([0.0, 5.0, 1.0, 1.1, 5.1])
    >>> seeded_labels(abs(x[:, None] - x), 2, 2, np.random.RandomState(0))
    array([-1,  0,  1,  1,  0])
    """
    labels = np.full(len(distances), UNLABELLED)
    for seed in range(n_seeds):
        free = np.flatnonzero(labels == UNLABELLED)
        point = free[rng.randint(len(free))]
        labels[point] = seed
        reach = distances[point].copy()
        for _ in range(seed_size - 1):
            point = np.where(labels == UNLABELLED, reach, np.inf).argmin()
            labels[point] = seed
            np.minimum(reach, distances[point], out=reach)
    return labels
