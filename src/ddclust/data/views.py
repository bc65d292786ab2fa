"""Several views of the same items, taken as one: an item is the values of all its views in a row.

Whatever reads, scales, saves or predicts items need not know of views. Only the network takes them apart again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import Scaling
from ddclust.data.items import Items

# A list of so few arrays is a list of views; nobody clusters so few images.
MOST_VIEWS = 9


class ViewItems:
    """Items whose values are those of several views, flattened, one after the other.

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
        parts = [view[indices] for view in self.views]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1, dtype=self.dtype)


def is_views(X: Any) -> bool:
    """Whether X is a list of views: from two to nine arrays, sparse matrices or Datasets, or None where one is missing.

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
    """Refuse views that are missing, or of different numbers of items."""
    for number, view in enumerate(X):
        if view is None:
            raise ValueError(
                f"View {number} of X is missing; every item needs all {len(X)} views. Leave the view out for all items, or"
                " fill it in."
            )
    lengths = [view.shape[0] for view in X]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"The views of X have {', '.join(map(str, lengths))} items; every view needs a row for each item."
        )


def scaling_of_views(items: ViewItems) -> Scaling:
    """Each view in the scaling that it would have by itself."""
    shift, scale = [], []
    for view, shape in zip(items.views, items.view_shapes, strict=True):
        own = Scaling.of(view)
        shift.append(np.broadcast_to(own.shift, shape).ravel())
        scale.append(np.broadcast_to(own.scale, shape).ravel())
    return Scaling(items.shape[1:], np.concatenate(shift), np.concatenate(scale))
