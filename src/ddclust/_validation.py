"""The only door to scikit-learn's private validation helpers, and the checks of our own on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, validate_data

from ddclust.sources import all_items_equal

__all__ = [
    "Interval",
    "StrOptions",
    "check_items",
    "check_items_can_be_clustered",
    "fit_context",
    "resolve_device",
]


def check_items(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray:
    """X as a numeric, finite array of vectors (n, d) or images (n, h, w), (n, h, w, c), (n, c, h, w).

    Its dtype is kept. With ``reset`` the shape of an item is remembered, else it is compared.
    """
    if not hasattr(X, "ndim"):
        X = np.asarray(X)
    if X.ndim <= 2:
        if not reset and len(estimator.item_shape_) > 1:
            raise ValueError(_wrong_shape(estimator, X.shape))
        X = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_min_samples=2 if reset else 1)
        if reset:
            estimator.item_shape_ = (X.shape[1],)
        return X
    X = check_array(
        X,
        dtype="numeric",
        allow_nd=True,
        ensure_min_samples=2 if reset else 1,
        input_name="X",
        estimator=estimator,
    )
    item_shape = tuple(X.shape[1:])
    if len(item_shape) > 3:
        raise ValueError(
            "X must be vectors of shape (n, d) or images of shape (n, h, w), (n, h, w, c) or (n, c, h, w),"
            f" got shape {X.shape}."
        )
    if reset:
        if 0 in item_shape:
            raise ValueError(f"X holds images of no pixels: its shape is {X.shape}.")
        estimator.item_shape_ = item_shape
        estimator.n_features_in_ = int(np.prod(item_shape))
        vars(estimator).pop("feature_names_in_", None)
    elif item_shape != estimator.item_shape_:
        raise ValueError(_wrong_shape(estimator, X.shape))
    return X


def _wrong_shape(estimator: BaseEstimator, shape: tuple[int, ...]) -> str:
    expected = ", ".join(map(str, ("n", *estimator.item_shape_)))
    return (
        f"X has shape {shape}, but this {type(estimator).__name__} was fitted on items of shape"
        f" {estimator.item_shape_}; give it an array of shape ({expected})."
    )


def check_items_can_be_clustered(X: NDArray, n_clusters: int) -> None:
    """Refuse fewer items than clusters, and items that are all the same."""
    if len(X) < n_clusters:
        raise ValueError(f"n_samples={len(X)} should be >= n_clusters={n_clusters}; ask for fewer clusters.")
    if n_clusters > 1 and all_items_equal(X):
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
