"""How far two labellings of the same items agree: clusters and known classes, or two runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment


def _checked_pair(first: ArrayLike, second: ArrayLike) -> tuple[NDArray, NDArray]:
    """Both as one-dimensional arrays of one length, at least one item each."""
    a, b = np.asarray(first), np.asarray(second)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"Labels must be one-dimensional, got shapes {a.shape} and {b.shape}.")
    if len(a) != len(b):
        raise ValueError(
            f"The two labellings have {len(a):,} and {len(b):,} items; give labels of the same items."
        )
    if len(a) == 0:
        raise ValueError("There are no labels to compare.")
    return a, b


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of items that agree under the best one-to-one mapping of clusters to classes, Eq. (6).

    Numbers of clusters and classes may differ; items of an unmapped cluster count as wrong.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)

    Returns
    -------
    float

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    return float(are_right(y_true, y_pred).mean())


def are_right(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """Whether each item is of the class that its cluster stands for, by the mapping of :func:`clustering_accuracy`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> are_right(["a", "a", "b", "b"], [1, 1, 0, 1])
    array([ True,  True,  True, False])
    """
    from sklearn.metrics.cluster import contingency_matrix

    y_true, y_pred = _checked_pair(y_true, y_pred)
    codes = np.unique(y_true, return_inverse=True)[1]
    clusters, numbers = np.unique(y_pred, return_inverse=True)
    rows, columns = linear_sum_assignment(contingency_matrix(y_true, y_pred), maximize=True)
    class_of = np.full(len(clusters), -1)
    class_of[columns] = rows
    return class_of[numbers] == codes


def expected_calibration_error(
    y_true: ArrayLike, y_pred: ArrayLike, confidence: ArrayLike, *, n_bins: int = 15
) -> float:
    """How far confidence is from the share of items that are right, on average.

    Items are right if they are of the class that their cluster stands for, as in :func:`clustering_accuracy`. They are
    divided by their confidence into bins of equal width from 0 to 1. In each bin the mean confidence is compared with the
    share of right items; the differences are averaged, each weighted by the items of its bin. 0 is perfect. Known classes
    are needed, so this is for evaluation only.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Known classes and clusters.
    confidence : array-like of shape (n_samples,)
        The largest soft assignment of each item, ``model.predict_proba(X).max(axis=1)``.
    n_bins : int, default=15

    Returns
    -------
    float

    Examples
    --------
    >>> expected_calibration_error(["a", "a", "b", "b"], [1, 1, 0, 1], [1.0, 1.0, 1.0, 0.5])
    0.125
    """
    right = are_right(y_true, y_pred)
    confidence = np.asarray(confidence, dtype=np.float64)
    if confidence.shape != right.shape:
        raise ValueError(f"There must be one confidence for each item, got shape {confidence.shape}.")
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins} must be at least 1.")
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("confidence must be between 0 and 1.")
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(right))


def nmi(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Normalised mutual information, I(l, c) / ((H(l) + H(c)) / 2), Eq. (5).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)

    Returns
    -------
    float

    Examples
    --------
    >>> nmi([0, 0, 1, 1], [5, 5, 3, 3])
    1.0
    """
    from sklearn.metrics import normalized_mutual_info_score

    y_true, y_pred = _checked_pair(y_true, y_pred)
    return float(normalized_mutual_info_score(y_true, y_pred, average_method="arithmetic"))


def known_classes(truth: ArrayLike) -> tuple[NDArray[np.int64], list[str]]:
    """Classes as codes from 0, -1 where the class is not known (None, NaN, "" or -1), and what the codes mean.

    Examples
    --------
    >>> known_classes(["cat", "dog", "", None, "cat"])
    (array([ 0,  1, -1, -1,  0]), ['cat', 'dog'])
    """
    values = np.asarray(truth).tolist() if not isinstance(truth, list) else truth
    is_known = np.array([value is not None and value == value and value not in (-1, "") for value in values])
    names, codes = np.unique(
        [str(v) for v, known in zip(values, is_known, strict=True) if known], return_inverse=True
    )
    result = np.full(len(values), -1, dtype=np.int64)
    result[is_known] = codes
    return result, names.tolist()


def of_known_class(truth: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.int64], NDArray]:
    """Classes, as codes, and labels of the items whose class is known.

    Examples
    --------
    >>> of_known_class(["b", None, "a"], [7, 8, 9])
    (array([1, 0]), array([7, 9]))
    """
    codes, labels = _checked_pair(known_classes(truth)[0], labels)
    return codes[codes >= 0], labels[codes >= 0]


class Scores(NamedTuple):
    """Accuracy and NMI of a clustering; NaN if no class is known."""

    accuracy: float
    nmi: float


def scores(truth: ArrayLike, labels: ArrayLike) -> Scores:
    """Accuracy and NMI on the items whose class is known.

    Parameters
    ----------
    truth : array-like of shape (n_samples,)
        Known classes; None, NaN, "" and -1 mean that the class is not known.
    labels : array-like of shape (n_samples,)

    Returns
    -------
    Scores

    Examples
    --------
    >>> scores(["cat", "cat", "dog", None], [1, 1, 0, 0])
    Scores(accuracy=1.0, nmi=1.0)
    """
    classes, clusters = of_known_class(truth, labels)
    if not len(classes):
        return Scores(float("nan"), float("nan"))
    return Scores(clustering_accuracy(classes, clusters), nmi(classes, clusters))


def order_by_size(labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """The numbers of the clusters, the largest first.

    Examples
    --------
    >>> order_by_size(np.array([0, 2, 2]), 3)
    array([2, 0, 1])
    """
    return np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")


def align_labels(reference: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
    """``labels`` renamed so that they agree with ``reference`` on as many items as possible.

    The mapping is one-to-one (Hungarian method). Where ``labels`` has more clusters than
    ``reference``, those left over get the lowest numbers that the reference does not use.

    Parameters
    ----------
    reference, labels : array-like of int of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> align_labels([0, 0, 1, 1], [7, 7, 4, 9])
    array([0, 0, 1, 2])
    """
    from sklearn.metrics.cluster import contingency_matrix

    reference, labels = _checked_pair(reference, labels)
    for given in (reference, labels):
        if not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"Cluster labels must be integers, got {given.dtype}.")
    names = np.unique(reference)
    old, positions = np.unique(labels, return_inverse=True)
    table = contingency_matrix(reference, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    new = np.full(len(old), -1, dtype=np.int64)
    new[columns] = names[rows]
    left_over = np.setdiff1d(np.arange(len(old)), columns)
    unused = np.setdiff1d(np.arange(len(names) + len(old)), names)
    new[left_over] = unused[: len(left_over)]
    return new[positions]
