"""Images as encoders of photographs take them, and which data are photographs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddclust.data.batches import in_network_layout, input_shape
from ddclust.data.items import refuse_non_finite
from ddclust.encoders.encoder import EncoderError

LEAST_SIDE = 16  # of a photograph, in pixels
SAMPLED = 100


def are_photographs(X: Any) -> bool:
    """Whether items are images in three colours, from 0 to 255 or, as fractions, from 0 to 1.

    Examples
    --------
    >>> are_photographs(np.zeros((5, 32, 32, 3), dtype=np.uint8)), are_photographs(np.zeros((5, 28, 28)))
    (True, False)
    """
    if len(X.shape) != 4:
        return False
    channels, *sides = input_shape(tuple(X.shape[1:]))
    return channels == 3 and min(sides) >= LEAST_SIDE and _have_known_range(X[: min(SAMPLED, len(X))])


def as_photographs(images: NDArray) -> Tensor:
    """Images as float32 from 0 to 255 with three channels, (n, 3, h, w); grey ones get three equal channels.

    Examples
    --------
    >>> as_photographs(np.ones((2, 8, 8), dtype=np.float32))[0, :, 0, 0].tolist()
    [255.0, 255.0, 255.0]
    """
    if images.ndim not in (3, 4):
        raise EncoderError(f"The encoder takes images, and an item of X has the shape {images.shape[1:]}.")
    if not _have_known_range(images):
        refuse_non_finite(images)
        raise EncoderError(
            "The encoder takes images of type uint8, or with values from 0 to 1; those of X reach from"
            f" {images.min():g} to {images.max():g}. Convert them, or set encoder=None."
        )
    scale = 1 if images.dtype == np.uint8 else 255
    x = in_network_layout(torch.from_numpy(images.astype(np.float32)), images.shape[1:]) * scale
    if x.shape[1] not in (1, 3):
        raise EncoderError(
            f"The encoder takes images with 1 or 3 channels, not {x.shape[1]}; set encoder=None."
        )
    return x.expand(-1, 3, -1, -1)


def _have_known_range(images: NDArray) -> bool:
    if images.dtype == np.uint8:
        return True
    return images.dtype.kind == "f" and bool(((images >= 0) & (images <= 1)).all())
