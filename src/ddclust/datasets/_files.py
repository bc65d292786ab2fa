"""Arrays from .npy, .npz and .csv files, with errors that name the file and the place."""

from __future__ import annotations

import csv
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

DATA_KEYS = ("X", "x", "data", "images")
TARGET_KEYS = ("y", "target", "labels")
CLUSTER_COLUMN = "cluster"


class DataError(ValueError):
    """A data file that cannot be used; the message names it and the remedy."""


def load_file(path: str | os.PathLike[str]) -> Bunch:
    """The array in a file: .npy (memory-mapped), .npz (``X`` and optionally ``y``) or .csv (numbers)."""
    path = Path(path)
    read = READERS.get(path.suffix.lower())
    if path.is_dir() or read is None:
        raise DataError(f"{str(path)!r} is not a data file; it must end in {', '.join(READERS)}.")
    data, target = read(path)
    _check_numbers(data, path)
    names = [str(i) for i in range(len(data))]
    return Bunch(data=data, target=target, item_names=names, name=path.stem, about=f"Read from {path.name}.")


def read_labels(path: str | os.PathLike[str]) -> NDArray:
    """One label per item: from a .npy array, ``y`` of an .npz, or a .csv (column "cluster", else the last)."""
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    if suffix == ".csv":
        labels = _label_column(path)
    elif suffix == ".npy":
        labels = _read_npy(path)[0]
    elif suffix == ".npz":
        arrays = _open_npz(path)
        key = _one_of(arrays, TARGET_KEYS)
        if key is None:
            raise DataError(
                f"{str(path)!r} holds no labels: none of its arrays is called y, target or labels."
            )
        labels = arrays[key]
    else:
        raise DataError(f"Labels are read from .csv, .npy or .npz files, not from {str(path)!r}.")
    if labels.ndim != 1:
        raise DataError(
            f"The labels in {str(path)!r} must be one-dimensional, they have shape {labels.shape}."
        )
    return labels


def _label_column(path: Path) -> NDArray:
    """The column "cluster" of a table, else the last one."""
    rows = _csv_rows(path)
    column = rows[0].index(CLUSTER_COLUMN) if CLUSTER_COLUMN in rows[0] else len(rows[0]) - 1
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{str(path)!r}: row {number} has {len(row)} columns, the first one has {len(rows[0])}."
            )
    cells = [row[column] for row in rows]
    # A first cell that is no number above numbers is a name, and so is one above words that never occurs again.
    rest = cells[1:]
    is_name = not _is_number(cells[0]) and (all(map(_is_number, rest)) or cells[0] not in rest)
    return np.array(rest if is_name and rest else cells)


def _read_npy(path: Path) -> tuple[NDArray, None]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{str(path)!r} cannot be read as a .npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(f"{str(path)!r} cannot be read as a .npy file: it is an .npz archive; rename it.")
    return array, None


def _read_npz(path: Path) -> tuple[NDArray, NDArray | None]:
    arrays = _open_npz(path)
    targets = [name for name in arrays if name in TARGET_KEYS]
    others = [name for name in arrays if name not in TARGET_KEYS]
    key = _one_of(arrays, DATA_KEYS) or (others[0] if len(others) == 1 else None)
    if key is None:
        raise DataError(
            f"{str(path)!r} holds the arrays {', '.join(arrays) or '(none)'}; call the one to cluster X,"
            " and the truth, if there is one, y."
        )
    data = arrays[key]
    target = arrays[targets[0]] if targets else None
    if target is not None and (target.ndim != 1 or data.ndim == 0 or len(target) != len(data)):
        raise DataError(
            f"{str(path)!r}: {targets[0]} of shape {target.shape} does not give one label for each item of"
            f" {key} of shape {data.shape}."
        )
    return data, target


def _open_npz(path: Path) -> dict[str, NDArray]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(
                f"{str(path)!r} cannot be read as an .npz file: it is a single .npy array; rename it."
            )
        with archive:
            return {name: archive[name] for name in archive.files}
    except DataError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{str(path)!r} cannot be read as an .npz file of numbers: {error}") from error


def _one_of(arrays: dict[str, NDArray], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in arrays), None)


def _read_csv(path: Path) -> tuple[NDArray, None]:
    first = _csv_rows(path, most=1)[0]
    counted = [str(i) for i in range(len(first))]  # the names that pandas gives to nameless columns
    has_header = not all(map(_is_number, first)) or (first == counted and len(first) > 1)
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = (line for line in file if line.strip())
            if has_header:
                next(lines)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "no data" is an error below
                data = np.loadtxt(lines, delimiter=",", ndmin=2, quotechar='"', comments=None)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} is not a table of numbers: {error}") from error
    return data, None


def _csv_rows(path: Path, most: int | None = None) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows: list[list[str]] = []
            for row in csv.reader(file):
                if row:
                    rows.append(row)
                if most is not None and len(rows) == most:
                    break
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{str(path)!r} cannot be read as a .csv file: {error}") from error
    if not rows:
        raise DataError(f"{str(path)!r} is empty.")
    return rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_numbers(data: NDArray, path: Path) -> None:
    """Refuse what is no array of finite numbers with at least one item; say where."""
    if data.ndim < 2:
        raise DataError(
            f"{str(path)!r} holds an array of shape {data.shape}; it must have a row for each item, (n, d),"
            " or be images, (n, h, w), (n, h, w, c) or (n, c, h, w)."
        )
    if not (np.issubdtype(data.dtype, np.number) or data.dtype == bool) or np.iscomplexobj(data):
        raise DataError(f"{str(path)!r} holds values of type {data.dtype}, not numbers.")
    if data.size == 0:
        raise DataError(f"{str(path)!r} holds no data: its shape is {data.shape}.")
    if np.issubdtype(data.dtype, np.floating):
        step = max(2**24 // data[0].size, 1)
        for start in range(0, len(data), step):
            bad = ~np.isfinite(data[start : start + step])
            if bad.any():
                place = np.argwhere(bad)[0]
                row, *rest = (int(i) for i in place)
                value = data[(start + row, *rest)]
                where = f"column {rest[0]}" if len(rest) == 1 else f"position {tuple(rest)}"
                raise DataError(
                    f"{str(path)!r} holds {value} in row {start + row}, {where} (counted from 0); remove or"
                    " fill such values first."
                )


Reader = Callable[[Path], tuple[NDArray, Any]]
READERS: dict[str, Reader] = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}
