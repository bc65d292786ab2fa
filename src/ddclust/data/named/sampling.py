"""Random subsets of a data set with chosen class sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.bunch import DataError


def sample_of_classes(
    target: NDArray[np.integer], per_class: int | Mapping[int, int], random_state: int
) -> NDArray[np.intp]:
    """Sorted positions of ``per_class`` randomly drawn items of each class.

    Examples
    --------
    >>> sample_of_classes(np.array([0, 0, 1, 1, 1]), {0: 2, 1: 3}, random_state=0)
    array([0, 1, 2, 3, 4])
    """
    rng = np.random.default_rng(random_state)
    chosen = []
    for label in np.unique(target).tolist():
        members = np.flatnonzero(target == label)
        size = per_class if isinstance(per_class, int) else per_class[label]
        if len(members) < size:
            raise DataError(f"Class {label} has {len(members)} items, fewer than the {size} asked for.")
        chosen.append(rng.choice(members, size, replace=False))
    return np.sort(np.concatenate(chosen))
