"""Labels of items, from a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.arrays import TARGET_KEYS, one_of, open_npy, open_npz
from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.delimited import csv_rows, is_number

CLUSTER_COLUMN = "cluster"
ITEM_COLUMNS = ("item", "id")


class NamedLabels(NamedTuple):
    """A label for each item, and the items' names if they have any."""

    labels: NDArray
    item_names: list[str] | None


def read_labels(path: str | os.PathLike[str], column: str | None = None) -> NamedLabels:
    """One label per item, from an array or a table.

    Parameters
    ----------
    path : str or path-like
        A ``.npy`` array, an ``.npz`` archive with an array ``y``, or a table (``.csv``, ``.tsv``).
    column : str, optional
        The column of a table to take; by default "cluster" if there is one, else the last. A column "item" or
        "id" names the items.

    Returns
    -------
    NamedLabels
    """
    path = Path(path)
    suffixes = {suffix.lower() for suffix in path.suffixes[-2:]}
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    if suffixes & {".csv", ".tsv"}:
        return _label_column(path, column)
    if ".npy" in suffixes:
        labels = open_npy(path)
    elif ".npz" in suffixes:
        arrays = open_npz(path)
        key = one_of(arrays, TARGET_KEYS)
        if key is None:
            raise DataError(
                f"{str(path)!r} holds no labels: none of its arrays is called y, target or labels."
            )
        labels = arrays[key]
    else:
        raise DataError(f"Labels are read from .csv, .tsv, .npy or .npz files, not from {str(path)!r}.")
    if labels.ndim != 1:
        raise DataError(f"The labels in {str(path)!r} must be one-dimensional, got shape {labels.shape}.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"{str(path)!r} holds NaN or infinity in row {int((~np.isfinite(labels)).argmax())}.")
    return NamedLabels(labels, None)


def _label_column(path: Path, name: str | None) -> NamedLabels:
    """The column of that name, by default "cluster" if there is one, else the last."""
    rows = [row for _, row in csv_rows(path)]
    header = [cell.strip() for cell in rows[0]]
    if name is not None and name not in header:
        raise DataError(f"{str(path)!r} has no column {name!r}; its columns are {', '.join(header)}.")
    name = name or CLUSTER_COLUMN
    column = header.index(name) if name in header else len(header) - 1
    cells = [row[column] for row in rows]
    # The first cell is a header if it is a word above numbers, or a word that does not occur again.
    rest = cells[1:]
    is_name = name in header or (
        not is_number(cells[0]) and (all(map(is_number, rest)) or cells[0] not in rest)
    )
    if not (is_name and rest):
        return NamedLabels(np.array(cells), None)
    items = next(
        (header.index(key) for key in ITEM_COLUMNS if key in header and header.index(key) != column), None
    )
    return NamedLabels(np.array(rest), None if items is None else [row[items] for row in rows[1:]])
