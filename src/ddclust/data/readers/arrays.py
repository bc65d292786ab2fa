"""Arrays and sparse matrices from .npy and .npz files."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.items import SparseItems, described_place, first_non_finite
from ddclust.data.readers.bunch import DataError, make_bunch
from ddclust.data.readers.formats import Format, ReadOptions, budget_of
from ddclust.storage.limits import Budget, in_words

DATA_KEYS = ("X", "x", "data", "images")
TARGET_KEYS = ("y", "target", "labels")
ZIP_MAGIC, NPY_MAGIC = b"PK\x03\x04", b"\x93NUMPY"
SPARSE_KEYS = {"indices", "indptr", "shape"}


def read_npy(path: Path, options: ReadOptions) -> Bunch:
    """The array as a memory map; its values are not read yet."""
    array = open_npy(path)
    check_shape_and_type(array, path)
    return make_bunch(array, name=path.stem, about=f"Read from {path.name}.")


def read_npz(path: Path, options: ReadOptions) -> Bunch:
    """The array X (or the only one), or the sparse matrix in parts, with the labels y if there are any."""
    budget = options.budget(path)
    arrays = open_npz(path, budget)
    targets = [name for name in arrays if name in TARGET_KEYS]
    target = checked_labels(arrays[targets[0]], path) if targets else None
    is_sparse = arrays.keys() >= SPARSE_KEYS or (arrays.keys() >= {"format", "shape"} and "X" not in arrays)
    data = _sparse(arrays, path, budget) if is_sparse else _dense(arrays, path)
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
    except Exception as error:  # numpy fails in many ways
        raise DataError(
            f"{str(path)!r} cannot be read as a .npy file of numbers ({_reason(error)}); write it again."
        ) from error


def open_npz(path: Path, budget: Budget | None = None) -> dict[str, NDArray]:
    """All arrays of an .npz file by name."""
    budget = budget_of(path) if budget is None else budget
    try:
        if _begins_with(path, NPY_MAGIC):
            raise DataError(
                f"{str(path)!r} cannot be read as an .npz file: it is a single .npy array; rename it."
            )
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            budget.spend(sum(member.file_size for member in members))
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except DataError:
        raise
    except Exception as error:  # numpy and zipfile fail in many ways
        raise DataError(
            f"{str(path)!r} cannot be read as an .npz file of numbers ({_reason(error)}); write it again."
        ) from error


def array_in(content: bytes) -> NDArray:
    """The array of numbers in the content of a .npy file; a ValueError if it is anything else."""
    try:
        file = io.BytesIO(content)
        if _declared_bytes(file) != len(content) - file.tell():
            raise ValueError("the array is not as large as its header says")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # numpy fails in many ways
        raise ValueError(_reason(error)) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray:
    """An array of an archive, which must hold as much as its header declares."""
    with archive.open(member) as file:
        size = _declared_bytes(file)
    if size > member.file_size:
        raise ValueError(
            f"the array {member.filename!r} should take {in_words(size)}, but has {in_words(member.file_size)}"
        )
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _declared_bytes(file: IO[bytes]) -> int:
    """The size of an array by its header."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"an array has the format {version[0]}.{version[1]}, which holds no plain numbers")
    shape, _, dtype = readers[version](file)
    return math.prod(shape) * dtype.itemsize


def _reason(error: Exception) -> str:
    """What went wrong, in a few words."""
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


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


def checked_labels(labels: NDArray, path: Path) -> NDArray:
    """One label for each item: numbers, or names as texts or bytes."""
    if labels.ndim != 1:
        raise DataError(f"The labels in {str(path)!r} must be one-dimensional, got shape {labels.shape}.")
    if labels.dtype.kind == "S":
        return np.char.decode(labels, "utf-8", "backslashreplace")
    if labels.dtype.kind not in "biufU":
        raise DataError(f"The labels in {str(path)!r} are of type {labels.dtype}, not numbers or names.")
    return labels


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


def _sparse(arrays: dict[str, NDArray], path: Path, budget: Budget) -> Any:
    """A CSR matrix from its parts, of ones if there are no values. Files that SciPy saved name their format."""
    try:
        shape = tuple(arrays["shape"].tolist())
        budget.spend(8 * (shape[0] + 1))  # a matrix of many rows that hold nothing
        if "format" in arrays:
            stored: Any = scipy.sparse.load_npz(path)
            if hasattr(stored, "check_format"):  # before the conversion, which would follow wrong indices
                stored.check_format(full_check=True)
            return scipy.sparse.csr_array(stored)
        indices, indptr = arrays["indices"].astype(np.int64), arrays["indptr"].astype(np.int64)
        values = arrays.get("data", np.ones(len(indices), dtype=np.float32))
        matrix = scipy.sparse.csr_array((values, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except DataError:
        raise
    except Exception as error:  # scipy fails in many ways
        raise DataError(
            f"{str(path)!r} is not a valid sparse matrix ({_reason(error)}); write it again."
        ) from error
    return matrix
