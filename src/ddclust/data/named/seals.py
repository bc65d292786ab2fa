"""Aerial photographs of seals, in place of the paper's data, which is not public."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.store import DataFile, need
from ddclust.data.readers.arrays import open_npz
from ddclust.data.readers.bunch import DataError, make_bunch

FILES = {
    32: DataFile("seals_aerial_32.npz", "9516ee036091702f2c02d762d53dec09ffec02ad02add3787f45f14200a37829"),
    64: DataFile("seals_aerial_64.npz", "89a5e16ac072750e0cb5b36bf00a7dff8463ed215a9c4642d34cbac814a7b9d3"),
}
PUPS = ("elephant_seal_pup", "harbor_seal")
THREE = (*PUPS, "background")  # like the paper's SEALS-3: two kinds of seals and background


def load_seals(classes: Sequence[str] | None = None, *, size: int = 32) -> Bunch:
    """RGB crops around seals in aerial survey photographs, in balanced classes.

    Parameters
    ----------
    classes : sequence of str, optional
        Names of the classes to keep: "elephant_seal_pup", "elephant_seal_cow", "elephant_seal_bull",
        "harbor_seal", "background"; by default all that exist in this size.
    size : {32, 64}, default=32
        Pixels along a side. 32: five classes of 1,000 crops of 96x96 pixels, averaged to 32x32. 64: three classes
        of 600 crops of 64x64 pixels.

    Returns
    -------
    Bunch
        It also has ``photo``, the number of the photograph that each crop comes from.
    """
    if size not in FILES:
        raise ValueError(f"size={size} must be 32 or 64.")
    arrays = open_npz(need(FILES[size], "seals"))
    there = arrays["class_names"].tolist()
    names = there if classes is None else list(classes)
    unknown = [name for name in names if name not in there]
    if unknown:
        raise DataError(
            f"There is no class {unknown[0]!r} among the seals of size {size}; there are {', '.join(there)}."
        )
    code = np.full(len(there), -1)
    code[[there.index(name) for name in names]] = np.arange(len(names))
    target = code[arrays["y"]]
    keep = np.flatnonzero(target >= 0)
    bunch = make_bunch(
        arrays["X"][keep],
        target=target[keep],
        target_names=names,
        item_names=[str(i) for i in keep],
        name=f"seals-{len(names)}" if classes is not None else "seals" if size == 32 else "seals-64",
        about=f"Aerial crops of seals, {size}x{size} pixels: {', '.join(names)}.",
    )
    bunch.photo = arrays["photo"][keep]
    return bunch


def _seals_set(
    name: str, n_images: int, n_classes: int, classes: tuple[str, ...] | None = None, side: int = 32
) -> NamedSet:
    return NamedSet(
        name,
        partial(load_seals, classes, size=side),
        size=f"{n_images:,} x {side} x {side} x 3",
        classes=n_classes,
        origin="github.com/pancakereport/seal-computer-vision",
        licence="MIT",
        files=(FILES[side].path,),
    )


SETS = (
    _seals_set("seals", 5000, 5),
    _seals_set("seals-2", 2000, 2, PUPS),
    _seals_set("seals-3", 3000, 3, THREE),
    _seals_set("seals-64", 1800, 3, side=64),
)
