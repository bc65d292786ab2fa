"""The estimators' checks of their data, and the only door to scikit-learn's private validation helpers."""

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

from ddclust.data.containers import as_items, is_read_in_pieces
from ddclust.data.items import (
    Items,
    SparseItems,
    all_equal,
    blocks,
    described_place,
    exact_float,
    is_numeric,
    refuse_non_finite,
    with_short_indices,
)
from ddclust.data.tables import Table
from ddclust.data.text import is_text
from ddclust.data.views import ViewItems, check_views

__all__ = [
    "Interval",
    "StrOptions",
    "check_items",
    "check_items_can_be_clustered",
    "check_table_rows",
    "check_vectors",
    "check_view_items",
    "fit_context",
    "resolve_device",
]


# Larger values overflow when they are squared and summed.
LARGEST_SINGLE = 1e15
LARGEST_DOUBLE = 1e120


def check_items(estimator: BaseEstimator, X: Any, *, reset: bool) -> Items:
    """X as items: numeric, finite vectors (n, d) or images (n, h, w), (n, h, w, c), (n, c, h, w).

    The dtype is kept. With ``reset`` the estimator remembers the shape of an item, otherwise the shape is compared
    with the one it remembers. Arrays are checked in full; data that is computed or stored elsewhere is checked as
    it is read.
    """
    X = as_items(X)
    if is_read_in_pieces(X):
        _check_shape(estimator, X, reset)
        return X
    try:
        if len(X.shape) <= 2:
            X = _checked_rows(estimator, X, reset)
        else:
            X = check_array(X, dtype="numeric", allow_nd=True, ensure_all_finite=False, ensure_min_samples=0)
            _check_shape(estimator, X, reset)
    except OverflowError as error:
        raise ValueError(
            "X holds an integer that is too large for a float; scale the values first."
        ) from error
    refuse_non_finite(X, column_names=getattr(estimator, "feature_names_in_", None))
    return X


def check_view_items(estimator: BaseEstimator, X: Any, *, reset: bool) -> ViewItems:
    """A list of views as items. With ``reset`` the views' shapes are remembered, otherwise they are compared."""
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
        _remember_shape(estimator, items.shape[1:])
    return items


def check_table_rows(estimator: BaseEstimator, rows: Items, *, reset: bool) -> Items:
    """The encoded rows of a table. With ``reset``, the estimator remembers their shape and the table's own columns."""
    least = 2 if reset else 1
    if len(rows) < least:
        raise ValueError(f"X is a table with {len(rows)} row(s) while a minimum of {least} is required.")
    if reset:
        estimator.item_shape_ = tuple(rows.shape[1:])
        names = estimator.columns_.names
        estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
    return rows


def check_vectors(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as one row of float32 or float64 per item: an array, with images flattened, or a CSR matrix.

    For methods that need all data in memory. float64 and wide integers stay exact; the rest becomes float32.
    """
    if is_text(X):
        raise ValueError(
            f"{type(estimator).__name__} takes vectors, not texts; give it"
            " ddclust.data.text.StemVectorizer().fit_transform(X)."
        )
    if isinstance(X, Table):
        raise ValueError(
            f"{type(estimator).__name__} takes vectors, not a table; give it Columns.of(X).encode(X)."
        )
    items = check_items(estimator, X, reset=reset)
    _refuse_extremes(items)
    kind = exact_float(items.dtype)
    if isinstance(items, SparseItems):
        return with_short_indices(items.matrix.astype(kind, copy=False))
    return np.ascontiguousarray(items[:], dtype=kind).reshape(len(items), -1)


def check_items_can_be_clustered(X: Items, n_clusters: int) -> None:
    """Refuse fewer items than clusters, and items that are all the same."""
    if len(X) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than there are items (n_samples={len(X)}); ask for fewer clusters."
        )
    if n_clusters > 1 and all_equal(X):
        raise ValueError(
            f"All {len(X)} samples of X are identical: there is nothing to tell {n_clusters} clusters apart."
        )


def checked_weights(sample_weight: Any, n_samples: int, n_clusters: int) -> NDArray[np.float64] | None:
    """The weights of items as an array; None if there are none or all are equal.

    Examples
    --------
    >>> checked_weights([1, 2, 2], 3, 2), checked_weights([5, 5, 5], 3, 2)
    (array([0.5, 1. , 1. ]), None)
    """
    if sample_weight is None:
        return None
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("sample_weight must hold a number for each item.") from error
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}: a weight for each item of X."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}; weights must be finite and not negative."
        )
    positive = np.count_nonzero(weights)
    if not positive:
        raise ValueError("Sample weights must contain at least one non-zero number; all are 0.")
    if positive < n_clusters:
        raise ValueError(
            f"{positive} of {n_samples} items have a positive sample_weight, fewer than n_clusters={n_clusters}."
        )
    weights /= weights.max()  # so that no sum overflows
    return None if (weights == weights[0]).all() else weights


class _OneView(BaseEstimator):
    """Remembers the shape of a single view."""


def _checked_rows(estimator: BaseEstimator, X: Any, reset: bool) -> Items:
    """An array of vectors, a sparse matrix or a table, checked by scikit-learn's own rules."""
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
    else:
        _check_numeric(X)
    if reset:
        estimator.item_shape_ = (X.shape[1],)
    return X


def _check_shape(estimator: BaseEstimator, X: Items, reset: bool) -> None:
    """Remember or compare the shape of items that scikit-learn's checks do not cover."""
    item_shape = tuple(X.shape[1:])
    if not 1 <= len(item_shape) <= 3:
        raise ValueError(
            "X must be vectors of shape (n, d) or images of shape (n, h, w), (n, h, w, c) or (n, c, h, w),"
            f" got shape {tuple(X.shape)}."
        )
    _check_numeric(X)
    least = 2 if reset else 1
    if len(X) < least:
        raise ValueError(
            f"Found array with {len(X)} sample(s) (shape={tuple(X.shape)}) while a minimum of {least} is required."
        )
    if reset:
        if 0 in item_shape:
            kind = "images of no pixels" if len(item_shape) > 1 else "vectors of no features"
            raise ValueError(f"X holds {kind}: its shape is {tuple(X.shape)}.")
        _remember_shape(estimator, item_shape)
    elif item_shape != estimator.item_shape_:
        raise ValueError(_wrong_shape(estimator, X.shape))


def _remember_shape(estimator: BaseEstimator, item_shape: tuple[int, ...]) -> None:
    """Set the fitted attributes of items whose features have no names."""
    estimator.item_shape_ = item_shape
    estimator.n_features_in_ = math.prod(item_shape)
    vars(estimator).pop("feature_names_in_", None)


def _check_numeric(X: Items) -> None:
    if not is_numeric(X.dtype):
        raise ValueError(f"X holds values of type {X.dtype}, not numbers.")


def _check_sparse(X: Any) -> None:
    """Refuse a CSR matrix whose indices lie outside of it: reading it would access memory beyond its arrays."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}.") from error


def _refuse_words(X: Any, error: ValueError) -> None:
    """If a text among numbers is what is wrong, raise an error that says where the first one is."""
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
                    " DDC and DEC take words in the columns of a data frame, and a list of texts."
                ) from error


def _refuse_extremes(items: Items) -> None:
    """Refuse values whose squares overflow or vanish in sums over the features."""
    values = items.matrix.data if isinstance(items, SparseItems) else items
    if values.dtype.kind != "f":
        return
    limit = LARGEST_SINGLE if values.dtype.itemsize < 8 else LARGEST_DOUBLE
    largest = max((float(np.abs(block).max()) for block in blocks(values) if block.size), default=0.0)
    if not (largest == 0 or 1 / limit < largest < limit):
        size = "large" if largest >= limit else "small"
        raise ValueError(
            f"The values of X, up to {largest:.3g}, are too {size} to compute distances; scale them, for example to"
            " a standard deviation of 1."
        )


def _wrong_shape(estimator: BaseEstimator, shape: tuple[int, ...]) -> str:
    expected = ", ".join(map(str, ("n", *estimator.item_shape_)))
    return (
        f"X has shape {shape}, but this {type(estimator).__name__} was fitted on items of shape"
        f" {estimator.item_shape_}; give it an array of shape ({expected})."
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
