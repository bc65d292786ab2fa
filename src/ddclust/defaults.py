"""Partners of items: those that the user names, or those that go with images, texts and vectors.

The numbers here were chosen with the classes of development data in sight; docs/defaults.md says of which.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ddclust.data.items import Items, SparseItems
from ddclust.data.views import ViewItems
from ddclust.objective.augment import BUILT_IN, Affine, Augmentation, Dropout

AUTO = "auto"
MOST_BYTES = 2 * 2**30  # of float32, up to which neighbours are looked for in memory


class Partners(NamedTuple):
    """Changed copies, nearest neighbours, both, or nothing: how items get partners, see :mod:`ddclust.objective.pairs`."""

    augment: Augmentation | None = None
    neighbors: int | None = None

    @property
    def exist(self) -> bool:
        return self.augment is not None or self.neighbors is not None

    def __str__(self) -> str:
        """In words.

        Examples
        --------
        >>> print(Partners(Dropout(0.5), 3))
        Dropout(rate=0.5) of the item or one of its 3 nearest neighbours
        """
        near = f"one of its {self.neighbors} nearest neighbours" if self.neighbors is not None else ""
        if self.augment is None:
            return near or "none"
        name = getattr(self.augment, "__name__", None) or repr(self.augment)
        return f"{name} of the item" + (f" or {near}" if near else "")


ALONE = Partners()
OF_IMAGES = Partners(Affine(), 2)
OF_TEXTS = Partners(Dropout(0.8), 20)
OF_VECTORS = Partners(None, 10)


def chosen_partners(augment: Any, neighbors: Any, X: Items, *, has_own_loss: bool) -> Partners:
    """What ``augment`` and ``neighbors`` stand for; the choice is ours only if the user says nothing of either."""
    if augment == AUTO and neighbors == AUTO and not has_own_loss:
        return usual_partners(X)
    augment, neighbors = (None if choice == AUTO else choice for choice in (augment, neighbors))
    return Partners(BUILT_IN[augment] if isinstance(augment, str) else augment, neighbors)


def usual_partners(X: Items) -> Partners:
    """What goes with the kind of data: none for views, and neighbours only of what fits into memory and is not alone.

    Examples
    --------
    >>> import numpy as np
    >>> usual_partners(np.zeros((50, 28, 28))).neighbors, usual_partners(np.zeros((4, 7))).neighbors
    (2, 3)
    """
    if isinstance(X, ViewItems):
        return ALONE
    usual = OF_TEXTS if isinstance(X, SparseItems) else OF_IMAGES if len(X.shape) > 2 else OF_VECTORS
    return usual._replace(
        neighbors=min(usual.neighbors or 0, len(X) - 1) or None if _fits_into_memory(X) else None
    )


def _fits_into_memory(X: Items) -> bool:
    return isinstance(X, SparseItems) or 4 * math.prod(X.shape) <= MOST_BYTES
