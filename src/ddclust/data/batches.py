"""From items to float32 batches: layout, scaling and access by index."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddclust.data.items import (
    Items,
    SparseItems,
    blocks,
    exact_float,
    memory_map,
    refuse_shrunken,
    release_pages,
    resident_file_bytes,
    shuffled,
    with_short_indices,
)

# The part of a memory map that may stay in memory before its pages are released.
MAPPED_BYTES = 128 * 2**20
ROWS_AT_ONCE = 1024
ALIGNMENT = 64  # bytes


def channel_axis(item_shape: tuple[int, ...]) -> int | None:
    """The axis of an item that holds its channels, or None for vectors and (h, w) images.

    It is the shorter of the first and the last axis, or the last if they are equal.

    Examples
    --------
    >>> channel_axis((32, 32, 3)), channel_axis((3, 32, 32)), channel_axis((28, 28))
    (2, 0, None)
    """
    if len(item_shape) != 3:
        return None
    return 0 if item_shape[0] < item_shape[2] else 2


def input_shape(item_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an item as the network sees it: (d,) for vectors, (channels, height, width) for images.

    Examples
    --------
    >>> input_shape((32, 32, 3)), input_shape((28, 28)), input_shape((7,))
    ((3, 32, 32), (1, 28, 28), (7,))
    """
    if len(item_shape) == 2:
        return (1, *item_shape)
    if channel_axis(item_shape) == 2:
        return (item_shape[2], item_shape[0], item_shape[1])
    return item_shape


def in_network_layout(x: Tensor, item_shape: tuple[int, ...]) -> Tensor:
    """A batch of the user's items in the network's layout, that of :func:`input_shape`.

    Examples
    --------
    >>> in_network_layout(torch.zeros(5, 32, 32, 3), (32, 32, 3)).shape
    torch.Size([5, 3, 32, 32])
    """
    if len(item_shape) == 2:
        return x.unsqueeze(1)
    return x.movedim(-1, 1) if channel_axis(item_shape) == 2 else x


def in_items_layout(x: Tensor, item_shape: tuple[int, ...]) -> Tensor:
    """A batch in the layout of the user's items: the inverse of :func:`in_network_layout`.

    Examples
    --------
    >>> in_items_layout(torch.zeros(5, 3, 32, 32), (32, 32, 3)).shape
    torch.Size([5, 32, 32, 3])
    """
    if len(item_shape) == 2:
        return x.squeeze(1)
    return x.movedim(1, -1) if channel_axis(item_shape) == 2 else x


@dataclass(frozen=True)
class Scaling:
    """``(x - shift) * scale``, per feature of a vector or per channel of an image.

    ``shift`` and ``scale`` broadcast against a batch in the user's layout. They are applied before the conversion
    to float32, so that values far from zero, such as time stamps, keep their digits.
    """

    item_shape: tuple[int, ...]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]

    @property
    def is_of_bytes(self) -> bool:
        """Whether it scales images with values from 0 to 255."""
        return len(self.item_shape) > 1 and self.scale.shape == ()

    @staticmethod
    def shape(item_shape: tuple[int, ...], of_bytes: bool) -> tuple[int, ...]:
        """The shape of ``shift`` and ``scale``."""
        axis = channel_axis(item_shape)
        if of_bytes:
            return ()
        if len(item_shape) == 1:
            return item_shape
        return tuple(side if i == axis else 1 for i, side in enumerate(item_shape))

    @classmethod
    def of(cls, X: Items) -> Scaling:
        """The default scaling of items.

        Vectors get zero mean and unit variance per feature. Sparse vectors are multiplied by one factor that brings
        the mean square to 1, since zeros must stay zeros and rare words rare. uint8 images are scaled from [0, 255]
        to [0, 1], other images from each channel's range to [0, 1].
        """
        item_shape = tuple(X.shape[1:])
        if isinstance(X, SparseItems):
            return cls.to_unit_mean_square(X)
        if len(item_shape) == 1:
            return cls(item_shape, *_standardisation(X))
        if X.dtype == np.uint8:
            return cls(item_shape, np.zeros(()), np.array(1 / 255))
        return cls(item_shape, *_unit_range(X, channel_axis(item_shape)))

    @classmethod
    def none(cls, X: Items) -> Scaling:
        """Vectors as they are: those of tables have their weights already."""
        return cls(tuple(X.shape[1:]), np.zeros(X.shape[1]), np.ones(X.shape[1]))

    @classmethod
    def to_unit_mean_square(cls, X: Items, *, center: bool = False) -> Scaling:
        """One factor that brings the mean square of all values to 1; with ``center``, their common mean is subtracted."""
        item_shape = tuple(X.shape[1:])
        shape = cls.shape(item_shape, of_bytes=False)
        mean, factor = _unit_mean_square(X, center)
        return cls(item_shape, np.full(shape, mean), np.full(shape, factor))

    def __call__(self, batch: NDArray) -> Tensor:
        """The batch as the network takes it: float32, channels before height and width."""
        exact = exact_float(batch.dtype)
        # The user's array is never written to.
        scaled: NDArray[np.floating] = aligned(batch.shape, exact)
        scaled[...] = batch
        with np.errstate(over="ignore"):  # values that overflow are reported where the batch is used
            if self.shift.any():
                scaled -= self.shift.astype(exact)
            scaled *= self.scale.astype(exact)
            values = scaled
            if exact is not np.float32:
                values = aligned(batch.shape, np.float32)
                values[...] = scaled
        x = torch.from_numpy(values)
        return in_network_layout(x, self.item_shape)


def aligned(shape: tuple[int, ...], dtype: type[np.floating]) -> NDArray[np.floating]:
    """An array whose memory begins at a multiple of 64 bytes, as torch's does. Elsewhere matrix products may round differently.

    Examples
    --------
    >>> aligned((3, 5), np.float32).ctypes.data % 64
    0
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + ALIGNMENT, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


class BatchSource:
    """Scaled float32 batches of items, by indices or slice; with ``weights``, items are drawn in proportion to them."""

    def __init__(self, items: Items, scaling: Scaling, weights: NDArray[np.float64] | None = None) -> None:
        self.items = items
        self.scaling = scaling
        self.weights = weights
        mapping = memory_map(items)
        self._is_mapped = mapping is not None and len(mapping) > MAPPED_BYTES
        self._resident_before = resident_file_bytes() if self._is_mapped else 0

    def __len__(self) -> int:
        return len(self.items)

    def batch(self, indices: Any) -> Tensor:
        """The items at ``indices`` (an integer array or a slice), ready for the network."""
        refuse_shrunken(self.items)
        batch = self.scaling(self.items[indices])
        if self._is_mapped and resident_file_bytes() - self._resident_before > MAPPED_BYTES:
            release_pages(self.items)
            self._resident_before = resident_file_bytes()
        return batch

    def vectors(self) -> Any:
        """All items as rows of floats: scaled and flattened, or the unscaled CSR matrix of sparse items."""
        if isinstance(self.items, SparseItems):
            matrix = with_short_indices(self.items.matrix)
            return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float32)
        rows = np.empty((len(self), math.prod(self.items.shape[1:])), dtype=np.float32)
        for start in range(0, len(self), ROWS_AT_ONCE):
            x = self.batch(slice(start, start + ROWS_AT_ONCE))
            rows[start : start + len(x)] = x.flatten(1).numpy()
        return rows

    def order(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """The indices of all items in a random order, or as many drawn by weight."""
        return shuffled(self.items, rng) if self.weights is None else drawn_by_weight(self.weights, rng)


def _standardisation(X: Items) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shift and scale for zero mean and unit variance per column; constant columns are only shifted."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks(X):
            scaler.partial_fit(block)
    overflowing = ~(np.isfinite(scaler.mean_) & np.isfinite(scaler.var_))
    if overflowing.any():
        raise ValueError(
            f"Column {int(overflowing.argmax())} of X holds values too large to scale: their variance"
            " overflows. Divide the column by a large number first."
        )
    return scaler.mean_, 1 / scaler.scale_


def _unit_range(X: Items, axis: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shift and scale from each channel's range to [0, 1]; both broadcast against a batch."""
    over = tuple(i for i in range(len(X.shape)) if axis is None or i != axis + 1)
    ends = [(b.min(axis=over, keepdims=True)[0], b.max(axis=over, keepdims=True)[0]) for b in blocks(X)]
    lowest = np.min([low for low, _ in ends], axis=0)
    highest = np.max([high for _, high in ends], axis=0)
    lowest, span = lowest.astype(np.float64), highest.astype(np.float64) - lowest
    if not np.isfinite(span).all():
        raise ValueError("The range of X's values overflows; divide the images by a large number first.")
    return lowest, 1 / np.where(span > 0, span, 1.0)


def _unit_mean_square(X: Items, center: bool) -> tuple[float, float]:
    """The mean of all values, zeros included (0 without ``center``), and the factor for a unit mean square around it."""
    values = X.matrix.data if isinstance(X, SparseItems) else X
    largest = max((float(np.abs(block.astype(np.float64)).max()) for block in blocks(values)), default=0.0)
    if largest == 0:
        return 0.0, 1.0
    # Values are divided by the largest one, so that no square overflows.
    n = float(np.prod(X.shape))
    mean = (
        sum(float((block / largest).sum(dtype=np.float64)) for block in blocks(values)) / n if center else 0.0
    )
    squares = sum(
        float(np.square(block / largest - mean, dtype=np.float64).sum()) for block in blocks(values)
    )
    return mean * largest, float(np.sqrt(n / squares) / largest) if squares else 1.0


class Sample:
    """Some of the items of a source, as a source of their own."""

    def __init__(self, source: BatchSource, items: NDArray[np.intp]) -> None:
        self.source = source
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def batch(self, indices: Any) -> Tensor:
        return self.source.batch(self.items[indices])

    def order(self, rng: np.random.Generator) -> NDArray[np.intp]:
        return rng.permutation(len(self))


def drawn_by_weight(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """As many indices as there are weights, in a random order: i comes n w_i / sum(w) times, rounded up or down at random.

    Examples
    --------
    >>> np.bincount(drawn_by_weight(np.array([3.0, 0.0, 1.0, 0.0]), np.random.default_rng(0)))
    array([3, 0, 1])
    """
    n = len(weights)
    items = rng.permutation(n)  # so that which of them are rounded up is random
    ends = np.cumsum(weights[items])
    ends *= n / ends[-1]
    ends[-1] = n
    counts = np.diff(np.floor(ends + rng.random()), prepend=0).astype(np.intp)
    counts[-1] += n - counts.sum()
    return rng.permutation(np.repeat(items, counts))


def random_items(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """All positions up to n or, if there are more than ``most``, a sorted random sample of them.

    Examples
    --------
    >>> random_items(3, most=10, seed=0), len(random_items(1000, most=10, seed=0))
    (array([0, 1, 2]), 10)
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=most, replace=False))
