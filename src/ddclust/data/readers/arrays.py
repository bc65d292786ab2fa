"""Arrays and sparse matrices from .npy and .npz files."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.items import SparseItems, described_place, first_non_finite
from ddclust.data.readers.bunch import DataError, make_bunch
from ddclust.data.readers.formats import Format, ReadOptions

DATA_KEYS = ("X", "x", "data", "images")
TARGET_KEYS = ("y", "target", "labels")
ZIP_MAGIC, NPY_MAGIC = b"PK\x03\x04", b"\x93NUMPY"
# What numpy and zipfile raise for damaged files.
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    EOFError,
    OSError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
SPARSE_KEYS = {"indices", "indptr", "shape"}


def read_npy(path: Path, options: ReadOptions) -> Bunch:
    """The array as a memory map; its values are not read yet."""
    array = open_npy(path)
    check_shape_and_type(array, path)
    return make_bunch(array, name=path.stem, about=f"Read from {path.name}.")


def read_npz(path: Path, options: ReadOptions) -> Bunch:
    """The array X (or the only one), or the sparse matrix in parts, with the labels y if there are any."""
    arrays = open_npz(path)
    targets = [name for name in arrays if name in TARGET_KEYS]
    target = arrays[targets[0]] if targets else None
    is_sparse = arrays.keys() >= SPARSE_KEYS or (arrays.keys() >= {"format", "shape"} and "X" not in arrays)
    data = _sparse(arrays, path) if is_sparse else _dense(arrays, path)
    check_shape_and_type(data, path)
    check_finite(data, path)
    if target is not None and target.shape != (data.shape[0],):
        raise DataError(
            f"{str(path)!r}: {targets[0]} of shape {target.shape} does not give one label for each of the"
            f" {data.shape[0]} items."
        )
    return make_bunch(data, target=target, name=path.stem, about=f"Read from {path.name}.")


NPY = Format((".npy",), read_npy)
NPZ = Format((".npz",), read_npz)


def open_npy(path: Path) -> NDArray:
    """The array in a .npy file, as a memory map."""
    try:
        if _begins_with(path, ZIP_MAGIC):
            raise DataError(f"{str(path)!r} cannot be read as a .npy file: it is an .npz archive; rename it.")
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"{str(path)!r} cannot be read as a .npy file of numbers: {error}") from error


def open_npz(path: Path) -> dict[str, NDArray]:
    """All arrays of an .npz file by name."""
    try:
        if _begins_with(path, NPY_MAGIC):
            raise DataError(
                f"{str(path)!r} cannot be read as an .npz file: it is a single .npy array; rename it."
            )
        with path.open("rb") as file, zipfile.ZipFile(file), np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"{str(path)!r} cannot be read as an .npz file of numbers: {error}") from error


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def one_of(arrays: dict[str, NDArray], keys: tuple[str, ...]) -> str | None:
    """The first of the keys that is present."""
    return next((key for key in keys if key in arrays), None)


def check_shape_and_type(data: Any, path: Path) -> None:
    """Refuse arrays that do not hold at least one item of numbers."""
    if len(data.shape) < 2:
        raise DataError(
            f"{str(path)!r} holds an array of shape {data.shape}; it must have a row for each item, (n, d),"
            " or be images, (n, h, w), (n, h, w, c) or (n, c, h, w)."
        )
    if data.dtype.kind not in "biuf":
        raise DataError(f"{str(path)!r} holds values of type {data.dtype}, not numbers.")
    if 0 in data.shape:
        raise DataError(f"{str(path)!r} holds no data: its shape is {data.shape}.")


def check_finite(data: Any, path: Path) -> None:
    """Refuse NaN and infinity, saying where they are."""
    found = first_non_finite(SparseItems(data) if scipy.sparse.issparse(data) else data)
    if found is not None:
        place, value = found
        raise DataError(
            f"{str(path)!r} holds {value} in {described_place(place)} (counted from 0); remove or fill such"
            " values first."
        )


def _dense(arrays: dict[str, NDArray], path: Path) -> NDArray:
    others = [name for name in arrays if name not in TARGET_KEYS]
    key = one_of(arrays, DATA_KEYS) or (others[0] if len(others) == 1 else None)
    if key is None:
        raise DataError(
            f"{str(path)!r} holds the arrays {', '.join(arrays) or '(none)'}; call the one to cluster X,"
            " and the labels, if there are any, y."
        )
    return arrays[key]


def _sparse(arrays: dict[str, NDArray], path: Path) -> Any:
    """A CSR matrix from its parts, of ones if there are no values. Files that SciPy saved name their format."""
    try:
        if "format" in arrays:
            stored: Any = scipy.sparse.load_npz(path)
            if hasattr(stored, "check_format"):  # before the conversion, which would follow wrong indices
                stored.check_format(full_check=True)
            return scipy.sparse.csr_array(stored)
        indices, indptr = arrays["indices"].astype(np.int64), arrays["indptr"].astype(np.int64)
        values = arrays.get("data", np.ones(len(indices), dtype=np.float32))
        matrix = scipy.sparse.csr_array((values, indices, indptr), shape=tuple(arrays["shape"].tolist()))
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except (ValueError, TypeError, IndexError, KeyError, OSError) as error:
        raise DataError(f"{str(path)!r} is not a valid sparse matrix: {error}") from error
    return matrix
