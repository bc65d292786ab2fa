"""Data for a fitted model: new items read as its own were, and known classes in the order of its items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import SparseItems
from ddclust.data.text import StemVectorizer
from ddclust.datasets import NAMED, DataError, load

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")


def load_for(
    model: NetworkClusterer,
    data: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    verbose: bool = False,
) -> Bunch:
    """Load data in the form that a fitted model expects.

    The images of a folder get the size, the colours and the layout of the images that the model was fitted on. The
    columns of a table are found by the names that they had in the fit, in any order and among other columns.

    Parameters
    ----------
    model : fitted DDC or DEC
    data : str or path-like
        A name, a file or a folder, as for :func:`ddclust.datasets.load`.
    text_column, id_column, truth_column : str, optional
        Columns of a table, as for :func:`ddclust.datasets.load`.
    verbose : bool, default=False
        Show progress when it takes more than two seconds.

    Returns
    -------
    Bunch
        As :func:`ddclust.datasets.load` returns it; ``model.predict(bunch.data)`` works.

    Examples
    --------
    >>> from ddclust import DDC
    >>> from ddclust.datasets import load
    >>> model = DDC(2, n_init=1, max_iter=20, random_state=0).fit(load("circles").data)
    >>> model.predict(load_for(model, "circles").data).shape
    (1000,)
    """
    image_size, colour = _image_form(model, data)
    bunch = load(
        data,
        text_column=text_column,
        id_column=id_column,
        truth_column=truth_column,
        image_size=image_size,
        colour=colour,
        value_columns=_value_columns(model, data),
        verbose=verbose,
    )
    bunch.data = _in_layout(bunch.data, model.item_shape_)
    return bunch


def is_table(data: str | os.PathLike[str]) -> bool:
    """Whether data is a file with columns.

    Examples
    --------
    >>> is_table("news.jsonl.gz"), is_table("digits")
    (True, False)
    """
    return Path(str(data).removesuffix(".gz")).suffix.lower() in TABLE_SUFFIXES


def vectorised(data: Any, language: str = "english") -> Any:
    """Texts as a sparse matrix of TF-IDF vectors; any other data unchanged.

    Examples
    --------
    >>> vectorised(["a ship sails", "bread bakes"]).shape
    (2, 4)
    """
    return data if hasattr(data, "shape") else StemVectorizer(language).fit_transform(data)


def scaled_vectors(data: Any) -> Any:
    """Items as rows of numbers, in the scaling that the networks get; sparse matrices stay sparse.

    Examples
    --------
    >>> scaled_vectors(np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    items = SparseItems(data) if hasattr(data, "indptr") else data
    return BatchSource(items, Scaling.of(items)).vectors()


def truth_of(item_names: Sequence[str], names: Sequence[str], truth: NDArray, source: str) -> NDArray:
    """Known classes in the order of the items.

    Items are matched by their names, or by their positions if the two sides have no name in common.

    Parameters
    ----------
    item_names : sequence of str
        The items that were clustered.
    names : sequence of str
        The items whose classes are known.
    truth : ndarray of shape (n_names,)
        Their classes.
    source : str
        Where the classes come from, for errors.

    Examples
    --------
    >>> truth_of(["a", "b"], ["b", "a", "c"], np.array([1, 2, 3]), "truth.csv")
    array([2, 1])
    """
    classes = dict(zip(names, truth.tolist(), strict=True))
    unknown = [item for item in item_names if item not in classes]
    if len(unknown) == len(item_names) == len(names):
        return truth
    if unknown:
        raise DataError(
            f"{source!r} does not name all items that were clustered: {unknown[0]!r} is missing, for example."
        )
    if len(classes) < len(names):
        raise DataError(f"The names of the items in {source!r} are not unique, so they cannot be matched.")
    return np.array([classes[item] for item in item_names])


def _image_form(model: NetworkClusterer, data: str | os.PathLike[str]) -> tuple[tuple[int, int] | None, str]:
    """Size and colour in which to read the images of a folder."""
    if str(data) in NAMED or len(model.item_shape_) == 1 or not Path(data).is_dir():
        return None, "auto"
    channels, height, width = input_shape(model.item_shape_)
    return (height, width), "grey" if channels == 1 else "rgb"


def _value_columns(model: NetworkClusterer, data: str | os.PathLike[str]) -> list[str] | None:
    """The columns of a table that the model was fitted on."""
    if str(data) in NAMED or not hasattr(model, "feature_names_in_"):
        return None
    return model.feature_names_in_.tolist()


def _in_layout(data: Any, item_shape: tuple[int, ...]) -> Any:
    """Images (n, h, w) or (n, h, w, 3) in the layout of the model's, if they have as many values."""
    if not hasattr(data, "reshape") or len(item_shape) != 3 or tuple(data.shape[1:]) == item_shape:
        return data
    if data.ndim == 4 and (data.shape[3], *data.shape[1:3]) == item_shape:
        return data.transpose(0, 3, 1, 2)
    return data.reshape(-1, *item_shape) if tuple(s for s in item_shape if s > 1) == data.shape[1:] else data
