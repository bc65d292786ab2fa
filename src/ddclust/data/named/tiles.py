"""Tiles of the two photographs that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.readers.bunch import make_bunch

CUT, STEP = 64, 32  # pixels of a photograph; tiles overlap by half
SIDE = 32


def load_tiles() -> Bunch:
    """456 overlapping tiles of two photographs, a temple in China and a dahlia, in colour and of 32x32 pixels.

    There are no known classes. Six clusters or so show sky, roofs, walls and trees, petals and background.

    Returns
    -------
    Bunch

    Examples
    --------
    >>> load_tiles().data.shape
    (456, 32, 32, 3)
    """
    photographs = load_sample_images()
    tiles, names = [], []
    for file, pixels in zip(photographs.filenames, photographs.images, strict=True):
        photograph = Image.fromarray(pixels)
        for top in range(0, photograph.height - CUT + 1, STEP):
            for left in range(0, photograph.width - CUT + 1, STEP):
                tile = photograph.crop((left, top, left + CUT, top + CUT))
                tiles.append(np.asarray(tile.resize((SIDE, SIDE), Image.Resampling.LANCZOS)))
                names.append(f"{Path(file).stem}-{top:03d}-{left:03d}")
    return make_bunch(
        np.stack(tiles),
        item_names=names,
        name="tiles",
        about="Tiles of two photographs from scikit-learn (china.jpg and flower.jpg, CC BY 2.0).",
    )


SETS = (
    NamedSet(
        "tiles",
        load_tiles,
        size="456 x 32 x 32 x 3",
        classes=0,
        origin="two photographs, come with scikit-learn",
        licence="CC BY 2.0",
    ),
)
