"""Which items a model is most certain of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


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
