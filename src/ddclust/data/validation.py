"""The only door to scikit-learn's private validation helpers, and the checks of our own on top."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, validate_data
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ddclust.data.items import (
    BlockItems,
    DatasetItems,
    Items,
    SparseItems,
    all_equal,
    as_array,
    blocks,
    described_place,
    first_non_finite,
    with_short_indices,
)
from ddclust.data.text import is_text
from ddclust.data.views import ViewItems, check_views

__all__ = [
    "Interval",
    "StrOptions",
    "check_items",
    "check_items_can_be_clustered",
    "check_vectors",
    "check_view_items",
    "fit_context",
    "resolve_device",
]


# Values beyond these overflow when they are squared and summed.
LARGEST_SINGLE = 1e15
LARGEST_DOUBLE = 1e120


def check_items(estimator: BaseEstimator, X: Any, *, reset: bool) -> Items:
    """X as items: numeric, finite vectors (n, d) or images (n, h, w), (n, h, w, c), (n, c, h, w).

    Their dtype is kept. With ``reset`` the shape of an item is remembered, else it is compared. Arrays are
    checked here in full; what is computed or stored elsewhere is checked as it is read.
    """
    X = _as_items(X)
    if len(X.shape) <= 2 and not isinstance(X, (DatasetItems, BlockItems)):
        if not reset and len(estimator.item_shape_) > 1:
            raise ValueError(_wrong_shape(estimator, X.shape))
        try:
            X = validate_data(
                estimator,
                X,
                reset=reset,
                dtype="numeric",
                accept_sparse="csr",
                ensure_all_finite=False,
                ensure_min_samples=2 if reset else 1,
            )
        except ValueError as error:
            _refuse_words(X, error)
            raise
        if scipy.sparse.issparse(X):
            _check_sparse(X)
            X = SparseItems(X)
        elif X.dtype.kind not in "biuf":
            raise ValueError(f"X holds values of type {X.dtype}, not numbers.")
        if reset:
            estimator.item_shape_ = (X.shape[1],)
    else:
        if not isinstance(X, (DatasetItems, BlockItems)):
            X = check_array(X, dtype="numeric", allow_nd=True, ensure_all_finite=False, ensure_min_samples=0)
        _check_shape(estimator, X, reset)
    if not isinstance(X, (DatasetItems, BlockItems)):
        _check_finite(X, getattr(estimator, "feature_names_in_", None))
    return X


def check_view_items(estimator: BaseEstimator, X: Any, *, reset: bool) -> ViewItems:
    """A list of views as items. With ``reset`` the views' shapes are remembered, else they are compared."""
    check_views(X)
    expected = getattr(estimator, "view_shapes_", None)
    if not reset and (expected is None or len(expected) != len(X)):
        views = "items of one view" if expected is None else f"{len(expected)} views"
        raise ValueError(f"X has {len(X)} views, but this {type(estimator).__name__} was fitted on {views}.")
    checked = []
    for number, view in enumerate(X):
        one = _OneView()
        if not reset and expected is not None:
            one.item_shape_, one.n_features_in_ = expected[number], math.prod(expected[number])
        try:
            checked.append(check_items(one, view, reset=reset))
        except (TypeError, ValueError) as error:
            raise type(error)(f"View {number}: {error}") from error
    items = ViewItems(checked)
    if reset:
        estimator.view_shapes_ = items.view_shapes
        estimator.item_shape_ = items.shape[1:]
        estimator.n_features_in_ = items.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    return items


class _OneView(BaseEstimator):
    """What remembers the shape of a single view."""


def check_vectors(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as one row of float32 or float64 per item: an array, images flattened, or a CSR matrix of sparse data.

    For methods that need the whole data in memory. float64 and wide integers stay exact; the rest is float32.
    """
    if is_text(X):
        raise ValueError(
            f"{type(estimator).__name__} takes vectors, not texts; give it"
            " ddclust.data.text.StemVectorizer().fit_transform(X)."
        )
    items = check_items(estimator, X, reset=reset)
    _refuse_extremes(items)
    kind = np.float32 if items.dtype.itemsize <= 2 or items.dtype == np.float32 else np.float64
    if isinstance(items, SparseItems):
        return with_short_indices(items.matrix.astype(kind, copy=False))
    return np.ascontiguousarray(items[:], dtype=kind).reshape(len(items), -1)


def _refuse_extremes(items: Items) -> None:
    """Refuse values whose squares overflow, or vanish, in sums over the features."""
    values = items.matrix.data if isinstance(items, SparseItems) else items
    if values.dtype.kind != "f":
        return
    limit = LARGEST_SINGLE if values.dtype.itemsize < 8 else LARGEST_DOUBLE
    largest = max((float(np.abs(block).max()) for block in blocks(values) if block.size), default=0.0)
    if not (largest == 0 or 1 / limit < largest < limit):
        size = "large" if largest >= limit else "small"
        raise ValueError(
            f"The values of X, up to {largest:.3g}, are too {size} to compute distances; scale them, to a standard deviation"
            " of 1 for example."
        )


def _as_items(X: Any) -> Any:
    """An array or sparse matrix as it is; anything that has to be read piece by piece as a class that does."""
    if isinstance(X, (DatasetItems, BlockItems)):
        return X
    if isinstance(X, torch.Tensor):
        return as_array(X)
    if isinstance(X, IterableDataset):
        raise TypeError(
            "X is an IterableDataset, which has no length and no order; give a map-style Dataset, one with __len__"
            " and __getitem__."
        )
    if isinstance(X, TensorDataset) and X.tensors:
        return _as_items(X.tensors[0])
    if isinstance(X, Dataset):
        return DatasetItems(X)
    if scipy.sparse.issparse(X) or hasattr(X, "__dataframe__"):
        return X
    if np.ma.is_masked(X):
        raise ValueError("X is an array with masked values; fill them first (X.filled(...)).")
    if not hasattr(X, "ndim") and not (hasattr(X, "shape") and hasattr(X, "dtype")):
        return _as_array(X)
    is_stored = hasattr(X, "chunks") or not hasattr(X, "__array__")  # zarr, h5py; sliceables of one's own
    return BlockItems(X) if is_stored and hasattr(X, "dtype") else X


def _as_array(X: Any) -> NDArray:
    """An array of nested sequences; ragged ones are refused with the place."""
    try:
        return np.asarray(X)
    except ValueError as error:
        shapes = [np.shape(item) for item in X]
        odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is None:
            raise
        raise ValueError(
            f"Item {odd} of X has shape {shapes[odd]}, the first one has {shapes[0]}; all must have one shape."
        ) from error


def _refuse_words(X: Any, error: ValueError) -> None:
    """A sentence with the place of the first text among numbers, if that is what is wrong."""
    if "string" not in str(error) or scipy.sparse.issparse(X) or len(X.shape) != 2:
        return
    for place, cell in np.ndenumerate(np.asarray(X, dtype=object)):
        if isinstance(cell, str):
            try:
                float(cell)
            except ValueError:
                names = getattr(X, "columns", None)
                raise ValueError(
                    f"X holds the text {cell!r:.60} in {described_place(place, names)}; encode or remove such columns."
                    " Texts to be clustered are given as a list."
                ) from error


def _check_shape(estimator: BaseEstimator, X: Items, reset: bool) -> None:
    """Remember or compare the shape of items that scikit-learn's checks do not cover."""
    item_shape = tuple(X.shape[1:])
    if not 1 <= len(item_shape) <= 3:
        raise ValueError(
            "X must be vectors of shape (n, d) or images of shape (n, h, w), (n, h, w, c) or (n, c, h, w),"
            f" got shape {tuple(X.shape)}."
        )
    if np.dtype(X.dtype).kind not in "biuf":
        raise ValueError(f"X holds values of type {X.dtype}, not numbers.")
    least = 2 if reset else 1
    if len(X) < least:
        raise ValueError(
            f"Found array with {len(X)} sample(s) (shape={tuple(X.shape)}) while a minimum of {least} is required."
        )
    if reset:
        if 0 in item_shape:
            kind = "images of no pixels" if len(item_shape) > 1 else "vectors of no features"
            raise ValueError(f"X holds {kind}: its shape is {tuple(X.shape)}.")
        estimator.item_shape_ = item_shape
        estimator.n_features_in_ = int(np.prod(item_shape))
        vars(estimator).pop("feature_names_in_", None)
    elif item_shape != estimator.item_shape_:
        raise ValueError(_wrong_shape(estimator, X.shape))


def _check_sparse(X: Any) -> None:
    """Refuse a CSR matrix with indices outside of it, which would be read from and written to beyond its memory."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}.") from error


def _check_finite(X: Items, column_names: Any) -> None:
    found = first_non_finite(X)
    if found is not None:
        place, value = found
        raise ValueError(
            f"X holds {value} in {described_place(place, column_names)}; remove or fill such values first."
        )


def _wrong_shape(estimator: BaseEstimator, shape: tuple[int, ...]) -> str:
    expected = ", ".join(map(str, ("n", *estimator.item_shape_)))
    return (
        f"X has shape {shape}, but this {type(estimator).__name__} was fitted on items of shape"
        f" {estimator.item_shape_}; give it an array of shape ({expected})."
    )


def check_items_can_be_clustered(X: Items, n_clusters: int) -> None:
    """Refuse fewer items than clusters, and items that are all the same."""
    if len(X) < n_clusters:
        raise ValueError(f"n_samples={len(X)} should be >= n_clusters={n_clusters}; ask for fewer clusters.")
    if n_clusters > 1 and all_equal(X):
        raise ValueError(
            f"All {len(X)} samples of X are identical: there is nothing to tell {n_clusters} clusters apart."
        )


def resolve_device(device: str | torch.device) -> torch.device:
    """The torch device of a name; ``"auto"`` is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.zeros(1, device=resolved).item()
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={str(device)!r} is not available here; use 'auto' or 'cpu'.") from error
    return resolved
