"""Items as small pictures inside a page."""

from __future__ import annotations

import base64
import io
import math

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import Scaling

JPEG_QUALITY = 80
EXACT_SIDE = 32


def as_pictures(items: NDArray, scaling: Scaling) -> NDArray[np.uint8]:
    """Images of any layout and type as uint8, (n, h, w) in grey or (n, h, w, 3) in colour.

    Values are scaled to [0, 1], as for the network. Images with other numbers of channels than 3 are shown as the mean
    of their channels.
    """
    x = scaling(items).numpy()  # (n, c, h, w)
    levels = np.clip(np.rint(255 * x), 0, 255).astype(np.uint8)
    if levels.shape[1] == 3:
        return np.ascontiguousarray(levels.transpose(0, 2, 3, 1))
    return np.ascontiguousarray(levels.mean(axis=1).astype(np.uint8))


def shrunk(pictures: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Pictures whose longer side is at most ``side``, in their proportions."""
    from PIL import Image

    height, width = pictures.shape[1:3]
    if max(height, width) <= side or not len(pictures):
        return pictures
    factor = side / max(height, width)
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    return np.stack([np.asarray(Image.fromarray(p).resize(size, Image.Resampling.BOX)) for p in pictures])


def data_uri(picture: NDArray[np.uint8]) -> str:
    """A picture as the address of an <img>: PNG, or JPEG for large colour pictures, where it is much smaller."""
    from PIL import Image

    file = io.BytesIO()
    kind = "jpeg" if picture.ndim == 3 and max(picture.shape[:2]) > EXACT_SIDE else "png"
    # Optimising takes a PNG ten times as long, for a few per cent.
    Image.fromarray(picture).save(file, kind, quality=JPEG_QUALITY, optimize=kind == "jpeg")
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def columns_for(n: int) -> int:
    """The number of pictures in a row of a sheet for n of them."""
    return math.ceil(math.sqrt(n))


def sprite(pictures: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """One sheet with all pictures, row by row."""
    n, height, width = pictures.shape[:3]
    rows = math.ceil(n / columns)
    sheet = np.zeros((rows * columns, *pictures.shape[1:]), dtype=np.uint8)
    sheet[:n] = pictures
    grid = sheet.reshape(rows, columns, height, width, *pictures.shape[3:])
    return grid.swapaxes(1, 2).reshape(rows * height, columns * width, *pictures.shape[3:])
