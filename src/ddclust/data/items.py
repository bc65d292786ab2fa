"""Items: data with a shape and a dtype that gives a dense array for a slice or an array of indices.

An array is items already. The classes here do the same for data that is sparse, computed or stored in chunks. The
data is never copied as a whole: each batch is read on its own.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 64 * 2**20
NO_VALUES = "X is a meta tensor, which has a shape but no values; give one on a device that stores them."


class ShrunkenFileError(OSError):
    """A file became shorter while it was in use as a memory map."""


class Items(Protocol):
    """``items[indices]`` is a dense array of the items asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Any, /) -> Any: ...


class SparseItems:
    """The rows of a CSR matrix, made dense only when asked for.

    Examples
    --------
    >>> import scipy.sparse
    >>> SparseItems(scipy.sparse.csr_array([[0, 2], [3, 0], [0, 0]]))[np.array([1, 0])]
    array([[3, 0],
           [0, 2]])
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = tuple(matrix.shape)
        self.dtype = matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any) -> NDArray:
        return self.matrix[indices].toarray()


class DatasetItems:
    """The inputs of a map-style torch ``Dataset``; labels in (input, label) pairs are ignored.

    Every value is checked as it is read, since there is no array to check beforehand. A fit reads each item many
    times: with random transforms it cannot be repeated exactly, nor resumed from a checkpoint.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._n = len(dataset)
        first = self._input(0, dataset[0]) if self._n else np.empty(0)
        self.shape = (self._n, *first.shape)
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, indices: Any) -> NDArray:
        numbers = _numbers(indices, self._n)
        get_many = getattr(self.dataset, "__getitems__", None)
        samples = get_many(numbers) if get_many is not None else map(self.dataset.__getitem__, numbers)
        batch = np.empty((len(numbers), *self.shape[1:]), dtype=self.dtype)
        for row, (number, sample) in enumerate(zip(numbers, samples, strict=True)):
            value = self._input(number, sample)
            if value.shape != self.shape[1:]:
                raise ValueError(
                    f"Item {number} of the Dataset has shape {value.shape}, the first one has {self.shape[1:]};"
                    " resize or crop all to the same shape."
                )
            if not np.can_cast(value.dtype, self.dtype, "same_kind"):
                raise ValueError(
                    f"Item {number} of the Dataset is of type {value.dtype}, the first one of {self.dtype}; convert"
                    " all to the same type."
                )
            batch[row] = value
        refuse_non_finite(batch, numbers)
        return batch

    @staticmethod
    def _input(number: int, sample: Any) -> NDArray:
        is_pair = isinstance(sample, tuple) or (isinstance(sample, list) and hasattr(sample[0], "shape"))
        value = as_array(sample[0] if is_pair else sample)
        if not is_numeric(value.dtype):
            raise ValueError(
                f"Item {number} of the Dataset is a {type(sample).__name__}; it must be an array of numbers, a"
                " tensor or an image, or a pair (input, label) whose input is one."
            )
        return value


class BlockItems:
    """Items that are read and shuffled in blocks, for zarr, HDF5, and compressed or slow storage.

    A random order visits a few blocks at a time, so that each block is read once per epoch.

    Parameters
    ----------
    stored : object with ``shape`` and ``dtype`` that can be sliced
        A zarr array, an h5py data set or a memory map on a slow disk, for example.
    block_length : int, optional
        Items per block; by default whole chunks of the storage, about 4 MB.

    Examples
    --------
    >>> items = BlockItems(np.arange(12).reshape(6, 2), block_length=2)
    >>> items[np.array([5, 0])]
    array([[10, 11],
           [ 0,  1]])
    """

    block_bytes = 4 * 2**20
    window_blocks = 8

    def __init__(self, stored: Any, block_length: int | None = None) -> None:
        if not (hasattr(stored, "shape") and hasattr(stored, "dtype")) or hasattr(stored, "indptr"):
            raise TypeError(
                f"BlockItems takes an array, or storage that behaves like one, not a {type(stored).__name__}."
            )
        if block_length is not None and (int(block_length) != block_length or block_length < 1):
            raise ValueError(f"block_length={block_length} must be a whole number of at least 1.")
        self.stored = stored
        self.shape = tuple(stored.shape)
        self.dtype = np.dtype(stored.dtype)
        if not self.shape:
            raise ValueError("X is a single value; it must have a row for each item.")
        if block_length is None:
            chunk = (getattr(stored, "chunks", None) or (1,))[0]
            chunk = chunk[0] if isinstance(chunk, tuple) else chunk
            item_bytes = max(math.prod(self.shape[1:]) * self.dtype.itemsize, 1)
            block_length = chunk * max(self.block_bytes // (item_bytes * chunk), 1)
        self.block_length = int(block_length)
        self._cache: OrderedDict[int, NDArray] = OrderedDict()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any) -> NDArray:
        numbers = np.asarray(_numbers(indices, len(self)), dtype=np.intp)
        batch = np.empty((len(numbers), *self.shape[1:]), dtype=self.dtype)
        block_of = numbers // self.block_length
        for block in np.unique(block_of).tolist():
            rows = block_of == block
            batch[rows] = self._block(block)[numbers[rows] - block * self.block_length]
        return batch

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_cache": OrderedDict()}
        if _is_hdf5(self.stored):  # its objects cannot be pickled, their names can
            state["stored"] = (self.stored.file.filename, self.stored.name)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.stored, tuple):
            import h5py

            path, name = self.stored
            self.stored = h5py.File(path, "r")[name]

    def order(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """All indices in a random order that stays within a few blocks at a time."""
        n_blocks = math.ceil(len(self) / self.block_length)
        starts = rng.permutation(n_blocks) * self.block_length
        order = np.empty(len(self), dtype=np.intp)
        filled = 0
        for first in range(0, n_blocks, self.window_blocks):
            window = np.concatenate(
                [
                    np.arange(start, min(start + self.block_length, len(self)))
                    for start in starts[first : first + self.window_blocks]
                ]
            )
            order[filled : filled + len(window)] = rng.permutation(window)
            filled += len(window)
        return order

    def _block(self, number: int) -> NDArray:
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        start = number * self.block_length
        stop = min(start + self.block_length, len(self))
        refuse_shrunken(self.stored)
        block = np.array(self.stored[start:stop])  # a copy: the rest of a memory map can be released
        refuse_non_finite(block, range(start, stop))
        self._cache[number] = block
        if len(self._cache) > self.window_blocks + 1:
            self._cache.popitem(last=False)
        release_pages(self.stored)
        return block


def with_short_indices(matrix: Any) -> Any:
    """A CSR matrix with 32-bit indices where they suffice: much of scikit-learn accepts no others.

    Examples
    --------
    >>> import scipy.sparse
    >>> matrix = scipy.sparse.csr_array(([1.0], np.array([1]), np.array([0, 1])), shape=(1, 2))
    >>> matrix.indices.dtype, with_short_indices(matrix).indices.dtype
    (dtype('int64'), dtype('int32'))
    """
    if max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max:
        return matrix
    parts = (
        matrix.data,
        matrix.indices.astype(np.int32, copy=False),
        matrix.indptr.astype(np.int32, copy=False),
    )
    return type(matrix)(parts, shape=matrix.shape)


def is_numeric(dtype: Any) -> bool:
    """Whether values of this type are numbers; booleans are."""
    return np.dtype(dtype).kind in "biuf"


def exact_float(dtype: Any) -> type[np.floating]:
    """The floating type to compute in: float32 where it holds all values exactly, else float64.

    Examples
    --------
    >>> exact_float("uint8").__name__, exact_float("int64").__name__
    ('float32', 'float64')
    """
    dtype = np.dtype(dtype)
    return np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64


def shuffled(items: Items, rng: np.random.Generator) -> NDArray[np.intp]:
    """The indices of all items in a random order that suits their storage."""
    return items.order(rng) if isinstance(items, BlockItems) else rng.permutation(len(items))


def blocks(items: Items) -> Iterator[NDArray]:
    """All items in consecutive blocks of about 64 MB in float64."""
    step = max(BLOCK_BYTES // (8 * max(math.prod(items.shape[1:]), 1)), 1)
    for start in range(0, len(items), step):
        refuse_shrunken(items)
        yield items[start : start + step]
        release_pages(items)


def all_equal(items: Items) -> bool:
    """Whether every item is the same."""
    refuse_shrunken(items)
    first = items[:1]
    if (items[:100] != first).any():  # usually true, and then the rest need not be read
        return False
    return all((block == first).all() for block in blocks(items))


def first_non_finite(items: Items) -> tuple[tuple[int, ...], str] | None:
    """The place and value of the first NaN or infinity in an array or CSR matrix, or None."""
    if items.dtype.kind != "f":
        return None
    if isinstance(items, SparseItems):
        found = first_non_finite(items.matrix.data)
        if found is None:
            return None
        (position,), value = found
        row = int(np.searchsorted(items.matrix.indptr, position, side="right")) - 1
        return (row, int(items.matrix.indices[position])), value
    before = 0
    for block in blocks(items):
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(block.sum(dtype=np.float64))  # several times faster than checking every value
        if not fine and not np.isfinite(block).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(block))[0])
            value = "NaN" if np.isnan(block[place]) else str(float(block[place]))
            return (before + place[0], *place[1:]), value
        before += len(block)
    return None


def described_place(place: Sequence[int], column_names: Sequence[str] | None = None) -> str:
    """A place in an array in words, counted from 0.

    Examples
    --------
    >>> described_place((4, 2)), described_place((4, 2), ["mass", "age", "cost"]), described_place((4, 0, 7))
    ('row 4, column 2', "row 4, column 2 ('cost')", 'item 4 at (0, 7)')
    """
    row, *rest = place
    if not rest:
        return f"row {row}"
    if len(rest) > 1:
        return f"item {row} at {tuple(rest)}"
    return f"row {row}, column {described_column(rest[0], column_names)}"


def described_column(column: int, names: Sequence[str] | None = None) -> str:
    """The number of a column, counted from 0, with its name if there are names.

    Examples
    --------
    >>> described_column(2), described_column(2, ["mass", "age", "cost"])
    ('2', "2 ('cost')")
    """
    return str(column) if names is None else f"{column} ({names[column]!r})"


# An array whose fingerprint is known, and that fingerprint.
_KNOWN: ContextVar[tuple[Any, str] | None] = ContextVar("known fingerprint", default=None)


@contextmanager
def known_fingerprint(data: Any, digest: str) -> Iterator[None]:
    """Within the block data do not change, and this is their fingerprint: they are not read for it again."""
    before = _KNOWN.set((data, digest))
    try:
        yield
    finally:
        _KNOWN.reset(before)


def _are_the_same(first: Any, second: Any) -> bool:
    """Whether two objects are one, or arrays of the same place in memory."""
    if first is second:
        return True
    are_arrays = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    return are_arrays and first.__array_interface__ == second.__array_interface__


def fingerprint(data: Any) -> str:
    """SHA-256 of the shape, dtype and values of items or a sparse matrix, of a table or of a list of texts."""
    known = _KNOWN.get()
    if known is not None and _are_the_same(known[0], data):
        return known[1]
    if hasattr(data, "sha256"):  # a table
        return data.sha256()
    if isinstance(data, list):
        digest = hashlib.sha256(f"{len(data)} texts".encode())
        for text in data:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(f" {len(encoded)} ".encode() + encoded)
        return digest.hexdigest()
    digest = hashlib.sha256(f"{tuple(data.shape)} {np.dtype(data.dtype).str}".encode())
    matrix: Any = data.matrix if isinstance(data, SparseItems) else data
    parts: Any = blocks(data)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
        parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def refuse_shrunken(items: Any) -> None:
    """Refuse to read on in a memory map whose file has become shorter: that would end the process by SIGBUS."""
    mapped = _memmap_under(items)
    mapping = getattr(mapped, "_mmap", None)
    if mapped is None or mapping is None:
        return
    # A map begins at a multiple of the granularity, at or before the array's first byte.
    end = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY + len(mapping)
    size = mapping.size()
    if size < end:
        raise ShrunkenFileError(
            f"{str(mapped.filename)!r} shrank from {end:,} to {size:,} bytes while it was in use; restore it and start"
            " again."
        )


def release_pages(items: Any) -> None:
    """Release the pages of a memory map: they stay in the system's cache but no longer count as ours."""
    mapping = memory_map(items)
    if mapping is not None:
        mapping.madvise(mmap.MADV_DONTNEED)


def resident_file_bytes() -> int:
    """How many bytes of mapped files count as this process's memory; 0 where the system does not tell.

    A page fault may map from 4 KB to 2 MB around the place that was read, so this cannot be computed from the reads.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


def memory_map(items: Any) -> mmap.mmap | None:
    """The map under an array that is one or a view of one, if its pages can be released without loss."""
    mapped = _memmap_under(items)
    # Private pages ("c", copy on write) hold what the user wrote to them.
    if mapped is None or mapped.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return getattr(mapped, "_mmap", None)


def as_array(value: Any) -> NDArray:
    """A tensor, an image or a nested sequence as an array."""
    if hasattr(value, "detach"):  # a tensor, on any device
        if value.is_meta:
            raise ValueError(NO_VALUES)
        value = value.detach().cpu()
        value = value.to_dense() if value.is_sparse else value
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    return np.asarray(value)


def for_other_processes(items: Any) -> Any:
    """The items in a form that other processes see with the same values, or None if there is no such form.

    Memory maps are passed on by the name of their file, so changes that were not written to it would be lost.
    """
    mapped = _memmap_under(items)
    if mapped is not None:
        named = mapped.mode != "c" and mapped.filename is not None and os.path.exists(mapped.filename)
        return items if named else np.array(items)
    stored: Any = getattr(items, "stored", None)
    if _is_hdf5(stored) and (stored.file.mode != "r" or stored.file.driver == "core"):
        return None
    return items


def refuse_non_finite(
    items: Items, numbers: Sequence[int] | None = None, column_names: Sequence[str] | None = None
) -> None:
    """Refuse NaN and infinity, saying where the first one is; ``numbers`` are those of the items, from 0 by default."""
    found = first_non_finite(items)
    if found is not None:
        (row, *rest), value = found
        place = (row if numbers is None else numbers[row], *rest)
        raise ValueError(
            f"X holds {value} in {described_place(place, column_names)}; remove or fill such values first."
        )


def _memmap_under(items: Any) -> np.memmap | None:
    """The memory map that an array is, or is a view of."""
    while isinstance(items, np.ndarray):
        if isinstance(items, np.memmap):
            return items
        items = items.base
    return None


def _is_hdf5(stored: Any) -> bool:
    return type(stored).__module__.startswith("h5py.")


def _numbers(indices: Any, n: int) -> list[int]:
    return list(range(n)[indices]) if isinstance(indices, slice) else np.asarray(indices).tolist()
