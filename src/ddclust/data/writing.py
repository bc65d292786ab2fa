"""Data as files that can be read again: images as a folder, texts and tables as CSV."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.storage.atomic import write_file
from ddclust.storage.model_folder import new_folder
from ddclust.storage.tables import csv_text

ID_COLUMN, TEXT_COLUMN, CLASS_COLUMN = "id", "text", "class"


def write_data(bunch: Bunch, path: Path) -> str:
    """Write a data set as a user's own data would be; gives a sentence about what was written.

    Images become a folder of PNG files, in sub-folders by class if there are known classes. Texts and vectors become a
    table with the columns ``id`` and, if there are known classes, ``class``.
    """
    if hasattr(bunch.data, "indptr"):
        raise DataError(f"{bunch.name!r} is a sparse matrix, which is not written as a table.")
    if getattr(bunch.data, "ndim", 1) > 2:
        return _write_images(bunch, path)
    return _write_table(bunch, path)


def file_name(name: str) -> str:
    """The name of an item or class as that of a file, which never leads to another folder.

    Examples
    --------
    >>> file_name("china-000-032"), file_name("/etc/pass wd"), file_name("..")
    ('china-000-032', '_etc_pass_wd', '_')
    """
    return re.sub(r"[^\w.-]", "_", name) if name.strip(".") else "_"


def _write_images(bunch: Bunch, folder: Path) -> str:
    pixels = bunch.data
    if pixels.dtype != np.uint8:
        pixels = np.round(pixels / pixels.max() * 255).astype(np.uint8)
    classes = _classes(bunch)
    with new_folder(folder) as new:
        for number, image in enumerate(pixels):
            place = new if classes is None else new / file_name(classes[number])
            place.mkdir(exist_ok=True)
            file = place / f"{file_name(bunch.item_names[number])}.png"
            if file.exists():
                raise DataError(f"Two items of {bunch.name!r} would both be written as {file.name!r}.")
            Image.fromarray(image).save(file)
    return f"{len(pixels):,} images" + ("" if classes is None else " in a folder for each class")


def _write_table(bunch: Bunch, path: Path) -> str:
    if path.suffix.lower() != ".csv":
        raise DataError(
            f"{bunch.name!r} is written as a table; give a name that ends in .csv, not {str(path)!r}."
        )
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists already; choose another name.")
    is_text = not hasattr(bunch.data, "shape")
    names = [TEXT_COLUMN] if is_text else bunch.feature_names or [f"x{i}" for i in range(bunch.data.shape[1])]
    classes = _classes(bunch)
    header = (ID_COLUMN, *names, *(() if classes is None else (CLASS_COLUMN,)))
    rows: list[tuple[Any, ...]] = []
    for number, values in enumerate(bunch.data):
        cells = (values,) if is_text else tuple(values.tolist())
        rows.append((bunch.item_names[number], *cells, *(() if classes is None else (classes[number],))))
    write_file(path, csv_text(header, rows, exact=True).encode())
    content = "texts" if is_text else f"rows of {len(names)} numbers"
    known = "" if classes is None else f"; the column {CLASS_COLUMN!r} has the known classes"
    return f"{len(rows):,} {content}{known}"


def _classes(bunch: Bunch) -> list[str] | None:
    """The name of each item's class."""
    if bunch.target is None:
        return None
    return [str(bunch.target_names[code]) for code in bunch.target]
