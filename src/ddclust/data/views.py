"""Several views of the same items as one: an item is the values of all its views, one after the other.

The code that reads, scales, saves or predicts items need not know about views. Only the network separates them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import Scaling
from ddclust.data.items import Items, refuse_shrunken

# A list of so few arrays is a list of views: nobody clusters so few images.
MOST_VIEWS = 9


class ViewItems:
    """Items made of several views, flattened and joined.

    Examples
    --------
    >>> items = ViewItems([np.ones((3, 2)), np.zeros((3, 2, 2), dtype=np.uint8)])
    >>> items.shape, items[np.array([0])].tolist()
    ((3, 6), [[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    """

    def __init__(self, views: Sequence[Items]) -> None:
        self.views = list(views)
        self.view_shapes = [tuple(view.shape[1:]) for view in views]
        self.shape = (len(views[0]), sum(math.prod(shape) for shape in self.view_shapes))
        self.dtype = np.result_type(np.float32, *(view.dtype for view in views))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any) -> NDArray:
        for view in self.views:
            refuse_shrunken(view)
        parts = [view[indices] for view in self.views]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1, dtype=self.dtype)


def is_views(X: Any) -> bool:
    """Whether X is a list of views: two to nine arrays or sparse matrices, with None for a view that is missing.

    Examples
    --------
    >>> is_views([np.ones((5, 2)), np.ones((5, 3))]), is_views([[1, 2], [3, 4]]), is_views(np.ones((2, 5, 2)))
    (True, False, False)
    """
    if not isinstance(X, (list, tuple)) or not 2 <= len(X) <= MOST_VIEWS:
        return False
    given = [view for view in X if view is not None]
    return bool(given) and all(len(getattr(view, "shape", ())) >= 2 for view in given)


def check_views(X: Sequence[Any]) -> None:
    """Refuse views that are missing or that have different numbers of items."""
    for number, view in enumerate(X):
        if view is None:
            raise ValueError(
                f"View {number} of X is missing; every item needs all {len(X)} views. Leave this view out, or fill it in."
            )
    lengths = [view.shape[0] for view in X]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"The views of X have {', '.join(map(str, lengths))} items; every view must have one row per item."
        )


def scaling_of_views(items: ViewItems) -> Scaling:
    """The scaling that gives each view the scaling it would have by itself."""
    shift, scale = [], []
    for view, shape in zip(items.views, items.view_shapes, strict=True):
        own = Scaling.of(view)
        shift.append(np.broadcast_to(own.shift, shape).ravel())
        scale.append(np.broadcast_to(own.scale, shape).ravel())
    return Scaling(items.shape[1:], np.concatenate(shift), np.concatenate(scale))
