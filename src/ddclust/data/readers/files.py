"""Which reader reads which file or folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.readers.arrays import TARGET_KEYS, one_of, open_npy, open_npz, read_npy, read_npz
from ddclust.data.readers.bunch import DataError, Reading
from ddclust.data.readers.folders import files_of
from ddclust.data.readers.images import IMAGE_SUFFIXES, read_image_folder
from ddclust.data.readers.tables import csv_rows, is_number, read_csv, read_parquet
from ddclust.data.readers.texts import TEXT_SUFFIXES, read_jsonl, read_text_folder, read_txt

Reader = Callable[[Path, Reading], Bunch]
READERS: dict[str, Reader] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".txt": read_txt,
    ".jsonl": read_jsonl,
}
COLUMNS = {"text_column", "id_column", "truth_column"}
APPLICABLE: dict[Reader, set[str]] = {
    read_csv: COLUMNS,
    read_parquet: COLUMNS,
    read_jsonl: COLUMNS,
    read_image_folder: {"image_size", "colour"},
}
COMPRESSED = (".csv", ".tsv", ".txt", ".jsonl")  # may also end in .gz
CLUSTER_COLUMN = "cluster"
ITEM_COLUMNS = ("item", "id")
FEW = 0.1  # so many images for each text are taken for illustrations


def read_path(path: Path, reading: Reading) -> Bunch:
    """Data from a file or a folder; options that say nothing about it are refused."""
    reader = _reader(path)
    reading.refuse_all_but(APPLICABLE.get(reader, set()), f"{str(path)!r}")
    return reader(path, reading)


class NamedLabels(NamedTuple):
    """A label for each item, and the items' names if they have any."""

    labels: NDArray
    item_names: list[str] | None


def read_labels(path: str | os.PathLike[str], column: str | None = None) -> NamedLabels:
    """One label per item: from a .npy array, ``y`` of an .npz, or a table (.csv, .tsv).

    Of the latter ``column`` is taken, by default "cluster", else the last one; "item" or "id" names the items.
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
        raise DataError(
            f"The labels in {str(path)!r} must be one-dimensional, they have shape {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"{str(path)!r} holds NaN or infinity in row {int((~np.isfinite(labels)).argmax())}.")
    return NamedLabels(labels, None)


def _reader(path: Path) -> Reader:
    if path.is_dir():
        return _folder_reader(path)
    suffix = path.suffix.lower()
    if suffix == ".gz":
        inner = Path(path.stem).suffix.lower()
        suffix = inner if inner in COMPRESSED else suffix
    if suffix not in READERS:
        raise DataError(
            f"{str(path)!r} is not a data file; it must end in {', '.join(READERS)}, or be a folder of images or"
            " .txt files."
        )
    return READERS[suffix]


def _folder_reader(folder: Path) -> Reader:
    """Images if there are some: they often have texts beside them. One picture among many texts does not count."""
    n_images, n_texts = (len(files_of(folder, suffixes)) for suffixes in (IMAGE_SUFFIXES, TEXT_SUFFIXES))
    if not n_images and not n_texts:
        kinds = ", ".join(sorted(IMAGE_SUFFIXES | TEXT_SUFFIXES))
        raise DataError(f"The folder {str(folder)!r} holds no images or texts ({kinds}).")
    return read_image_folder if n_images > FEW * n_texts else read_text_folder


def _label_column(path: Path, name: str | None) -> NamedLabels:
    """The column of that name, by default "cluster", else the last one."""
    rows = [row for _, row in csv_rows(path)]
    header = [cell.strip() for cell in rows[0]]
    if name is not None and name not in header:
        raise DataError(f"{str(path)!r} has no column {name!r}; its columns are {', '.join(header)}.")
    name = name or CLUSTER_COLUMN
    column = header.index(name) if name in header else len(header) - 1
    cells = [row[column] for row in rows]
    # A first cell that is no number above numbers is a name, and so is one above words that never occurs again.
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
