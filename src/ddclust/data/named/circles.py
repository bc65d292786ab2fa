"""The paper's synthetic example: a disc inside a ring."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from ddclust.data.named.declaration import NamedSet
from ddclust.data.readers.bunch import make_bunch


def load_circles(n_samples: int = 1000, *, random_state: int | np.random.RandomState | None = 0) -> Bunch:
    """Points of a disc (class 0) and of a ring around it (class 1), half of the points in each.

    Parameters
    ----------
    n_samples : int, default=1000
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Bunch

    Examples
    --------
    >>> load_circles(10).data.shape
    (10, 2)
    """
    rng = check_random_state(random_state)
    n_disc = n_samples // 2
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    radius = np.concatenate(
        [0.4 * np.sqrt(rng.uniform(size=n_disc)), rng.uniform(0.9, 1.1, n_samples - n_disc)]
    )
    return make_bunch(
        np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]),
        target=(np.arange(n_samples) >= n_disc).astype(np.int64),
        target_names=["disc", "ring"],
        name="circles",
        about="A disc inside a ring, synthetic, two classes.",
    )


SETS = (
    NamedSet(
        "circles",
        load_circles,
        size="1,000 x 2",
        classes=2,
        origin="synthetic, as in the paper",
        licence="none needed",
    ),
)
