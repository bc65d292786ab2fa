"""Images of any layout and type as values that can be drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import channel_axis


def as_fractions(images: NDArray) -> NDArray[np.float64]:
    """Images from black, 0, to white, 1.

    White is 255 for uint8. For other types, black and white are the least and the largest value of all images.

    Examples
    --------
    >>> as_fractions(np.array([[[2.0, 3.0, 6.0]]])).tolist()
    [[[0.0, 0.25, 1.0]]]
    """
    if images.dtype == np.uint8:
        return images / 255
    low, high = float(images.min(initial=np.inf)), float(images.max(initial=-np.inf))
    return (images.astype(np.float64) - low) / ((high - low) or 1.0)


def displayable(images: NDArray) -> NDArray[np.float64]:
    """Images from 0 to 1, as (n, h, w) in grey or (n, h, w, 3) in colour.

    Images with other numbers of channels than 3 are shown as the mean of their channels.

    Examples
    --------
    >>> displayable(np.zeros((5, 3, 8, 8), dtype=np.uint8)).shape
    (5, 8, 8, 3)
    """
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise ValueError(
            "Images must have the shape (n, h, w), (n, h, w, c) or (n, c, h, w), with at least one image; got"
            f" {images.shape}."
        )
    shown = as_fractions(images)
    axis = channel_axis(images.shape[1:])
    if axis is None:
        return shown
    shown = np.moveaxis(shown, axis + 1, -1)
    return shown if shown.shape[-1] == 3 else shown.mean(axis=-1)
