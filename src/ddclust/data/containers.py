"""What holds the user's data, as items: arrays, lists, tensors, Datasets, sparse matrices, tables, stored arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ddclust.data.items import NO_VALUES, BlockItems, DatasetItems, as_array


def as_items(X: Any) -> Any:
    """Arrays, sparse matrices and tables as they are; data that is read piece by piece wrapped in a class that does so.

    Examples
    --------
    >>> as_items(torch.zeros(3, 2)).shape, as_items([[1, 2], [3, 4]]).shape
    ((3, 2), (2, 2))
    """
    if is_read_in_pieces(X):
        return X
    if isinstance(X, torch.Tensor):
        return as_array(X)
    if isinstance(X, IterableDataset):
        raise TypeError(
            "X is an IterableDataset, which has no length and no order; give a map-style Dataset, one with __len__"
            " and __getitem__."
        )
    if isinstance(X, TensorDataset) and X.tensors:
        return as_items(X.tensors[0])
    if isinstance(X, Dataset):
        return DatasetItems(X)
    if scipy.sparse.issparse(X) or hasattr(X, "__dataframe__"):
        return X
    if np.ma.is_masked(X):
        raise ValueError("X is an array with masked values; fill them first (X.filled(...)).")
    if not hasattr(X, "ndim") and not (hasattr(X, "shape") and hasattr(X, "dtype")):
        return _array_of_sequences(X)
    # zarr and h5py have chunks; a user's own storage may offer nothing but slices.
    is_stored = hasattr(X, "chunks") or not hasattr(X, "__array__")
    return BlockItems(X) if is_stored and hasattr(X, "dtype") else X


def items_of_dataset(X: Any) -> Any:
    """What a ``datasets.Dataset`` holds: texts or arrays if it has one column, else an Arrow table; any other X as it is.

    Columns of class labels are left out.
    """
    if not (type(X).__module__.startswith("datasets.") and hasattr(X, "features")):
        return X
    if not hasattr(X, "with_format") or not hasattr(X, "__len__"):
        raise TypeError(
            f"X is a {type(X).__name__}, which has no length and no order; load it without streaming=True, and give one split."
        )
    names = [name for name, kind in X.features.items() if type(kind).__name__ != "ClassLabel"]
    if not names:
        raise ValueError("X is a Dataset without columns other than class labels.")
    if len(names) > 1:
        return X.select_columns(names).with_format("arrow")[:]
    values = X.with_format(None)[:][names[0]]
    return values if values and isinstance(values[0], str) else _array_of_sequences(values)


def is_read_in_pieces(X: Any) -> bool:
    """Whether items are computed or stored elsewhere, so that their values are checked as they are read."""
    return isinstance(X, (DatasetItems, BlockItems))


def _array_of_sequences(X: Any) -> NDArray:
    """Nested sequences as an array; if they are ragged, the error names the first odd item."""
    try:
        return np.asarray(X)
    except TypeError as error:
        if any(getattr(item, "is_meta", False) for item in X):
            raise ValueError(NO_VALUES) from error
        raise
    except ValueError as error:
        shapes = [np.shape(item) for item in X]
        odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is None:
            raise
        raise ValueError(
            f"Item {odd} of X has shape {shapes[odd]}, the first one has {shapes[0]}; all must have the same shape."
        ) from error
