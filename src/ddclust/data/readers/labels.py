"""Labels of items, from a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.arrays import TARGET_KEYS, checked_labels, one_of, open_npy, open_npz
from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.delimited import csv_rows, is_number
from ddclust.data.readers.formats import budget_of
from ddclust.storage.limits import Budget
from ddclust.storage.tables import name_in

CLUSTER_COLUMN, CONFIDENCE_COLUMN = "cluster", "confidence"
ITEM_COLUMNS = ("item", "id")


class NamedLabels(NamedTuple):
    """A label for each item, the items' names if they have any, and the column if it was the reader's choice.

    ``confidence`` is that of clusters, if the table has it.
    """

    labels: NDArray
    item_names: list[str] | None
    guessed_column: str | None = None
    confidence: NDArray[np.float64] | None = None


def read_labels(
    path: str | os.PathLike[str], column: str | None = None, *, max_bytes: float | None = None
) -> NamedLabels:
    """One label per item, from an array or a table.

    Parameters
    ----------
    path : str or path-like
        A ``.npy`` array, an ``.npz`` archive with an array ``y``, or a table (``.csv``, ``.tsv``).
    column : str, optional
        The column of a table to take; by default "cluster" if there is one, else the last. A column "item" or
        "id" names the items.
    max_bytes : float, optional
        The most memory that reading may take, as for :func:`ddclust.datasets.load`.

    Returns
    -------
    NamedLabels
    """
    path = Path(path)
    suffixes = {suffix.lower() for suffix in path.suffixes[-2:]}
    budget = budget_of(path, max_bytes)
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    if suffixes & {".csv", ".tsv"}:
        return _label_column(path, column, budget)
    if ".npy" in suffixes:
        labels = open_npy(path)
    elif ".npz" in suffixes:
        arrays = open_npz(path, budget)
        key = one_of(arrays, TARGET_KEYS)
        if key is None:
            raise DataError(
                f"{str(path)!r} holds no labels: none of its arrays is called y, target or labels."
            )
        labels = arrays[key]
    else:
        raise DataError(f"Labels are read from .csv, .tsv, .npy or .npz files, not from {str(path)!r}.")
    labels = checked_labels(labels, path)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"{str(path)!r} holds NaN or infinity in row {int((~np.isfinite(labels)).argmax())}.")
    return NamedLabels(labels, None)


def _label_column(path: Path, name: str | None, budget: Budget) -> NamedLabels:
    """The column of that name, by default "cluster" if there is one, else the last."""
    rows = [row for _, row in csv_rows(path, budget)]
    header = [cell.strip() for cell in rows[0]]
    if name is not None and name not in header:
        raise DataError(f"{str(path)!r} has no column {name!r}; its columns are {', '.join(header)}.")
    is_guess = name is None and CLUSTER_COLUMN not in header and len(header) > 1
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
    names = None if items is None else [name_in(row[items]) for row in rows[1:]]
    confidence = None
    if name == CLUSTER_COLUMN and CONFIDENCE_COLUMN in header:
        confidence = _shares([row[header.index(CONFIDENCE_COLUMN)] for row in rows[1:]])
    return NamedLabels(np.array(rest), names, header[column] if is_guess else None, confidence)


def _shares(cells: list[str]) -> NDArray[np.float64] | None:
    """Numbers from 0 to 1, NaN where a cell is blank; None if they are something else."""
    filled = [cell if cell.strip() else "nan" for cell in cells]
    if not all(map(is_number, filled)):
        return None
    shares = np.array(filled, dtype=np.float64)
    return shares if (np.isnan(shares) | ((shares >= 0) & (shares <= 1))).all() else None
