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
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.readers.images import in_layout, is_image_file, read_images
from ddclust.data.tables import Columns, Table
from ddclust.data.tables.guess import is_called_id
from ddclust.data.tables.kinds import LeftOutColumn
from ddclust.data.text import StemVectorizer
from ddclust.datasets import NAMED, DataError, load

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")


def load_for(
    model: NetworkClusterer,
    data: str | os.PathLike[str] | Sequence[str],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    encoding: str | None = None,
    max_bytes: float | None = None,
    verbose: bool = False,
) -> Bunch:
    """Load data in the form that a fitted model expects.

    Images get the size, the colours and the layout of the images that the model was fitted on. The columns of a table
    are found by the names that they had in the fit, in any order and among other columns.

    Parameters
    ----------
    model : fitted DDC or DEC
    data : str or path-like, or a sequence of them
        A name, a file or a folder, as for :func:`ddclust.datasets.load`; one or several image files; for a model of
        texts also one or several texts of at least two words.
    text_column, id_column, truth_column : str, optional
        Columns of a table, as for :func:`ddclust.datasets.load`.
    encoding : str, optional
        That of a file of texts or a table, as for :func:`ddclust.datasets.load`.
    max_bytes : float, optional
        The most memory that reading may take, as for :func:`ddclust.datasets.load`.
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
    given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    if all(map(is_image_file, given)):
        return _single_images(model, given)
    if model.is_of_texts and all(map(_is_itself_a_text, given)):
        names = ["text"] if len(given) == 1 else [f"text {number}" for number in range(1, len(given) + 1)]
        return make_bunch(
            [str(text) for text in given], item_names=names, name="texts", about="Given as they are."
        )
    if len(given) > 1:
        raise DataError(
            f"{str(given[0])!r} and {str(given[1])!r} are not both image files; give one name, file or folder, or several"
            " image files."
        )
    data = given[0]
    image_size, colour = _image_form(model, data)
    bunch = load(
        data,
        text_column=text_column,
        id_column=id_column,
        truth_column=truth_column,
        encoding=encoding,
        image_size=image_size,
        colour=colour,
        value_columns=_value_columns(model, data),
        kinds=_kinds(model, data),
        max_bytes=max_bytes,
        likely_id=_naming_column(model),
        verbose=verbose,
    )
    bunch.data = in_layout(bunch.data, model.raw_shape)
    return bunch


def is_table(data: str | os.PathLike[str]) -> bool:
    """Whether data is a file with columns.

    Examples
    --------
    >>> is_table("news.jsonl.gz"), is_table("digits")
    (True, False)
    """
    return Path(str(data).removesuffix(".gz")).suffix.lower() in TABLE_SUFFIXES


def vectorised(data: Any, language: str = "auto") -> Any:
    """Texts as a sparse matrix of TF-IDF vectors, tables as dense vectors; any other data unchanged.

    Examples
    --------
    >>> vectorised(["a ship sails", "bread bakes"]).shape
    (2, 4)
    """
    if isinstance(data, Table):
        return Columns.of(data, language).encode(data)
    return data if hasattr(data, "shape") else StemVectorizer(language).fit_transform(data)


def scaled_vectors(data: Any) -> Any:
    """Items as rows of numbers, in the scaling that the networks get; sparse matrices stay sparse.

    Examples
    --------
    >>> scaled_vectors(np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    is_encoded = isinstance(data, Table)  # and has its weights already
    data = vectorised(data)
    if is_encoded:
        return data
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


def _single_images(model: NetworkClusterer, paths: Sequence[Any]) -> Bunch:
    """Image files as the images that a model was fitted on."""
    if model.is_of_texts:
        raise DataError(f"{str(paths[0])!r} is an image, but the model was fitted on texts.")
    names = [Path(path).name for path in paths]
    return make_bunch(
        read_images(paths, model.raw_shape),
        item_names=names if len(set(names)) == len(names) else [str(path) for path in paths],
        name=Path(paths[0]).stem,
        about="Single image files.",
    )


def _is_itself_a_text(data: Any) -> bool:
    """Whether an argument is a text rather than the name of data: it has several words, and there is no such file."""
    return isinstance(data, str) and len(data.split()) > 1 and not _exists(data)


def _exists(data: str) -> bool:
    try:
        return Path(data).exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _image_form(model: NetworkClusterer, data: str | os.PathLike[str]) -> tuple[tuple[int, int] | None, str]:
    """Size and colour in which to read the images of a folder."""
    if str(data) in NAMED or len(model.raw_shape) == 1 or not Path(data).is_dir():
        return None, "auto"
    channels, height, width = input_shape(model.raw_shape)
    return (height, width), "grey" if channels == 1 else "rgb"


def _value_columns(model: NetworkClusterer, data: str | os.PathLike[str]) -> list[str] | None:
    """The columns of a table that the model was fitted on."""
    if str(data) in NAMED or not hasattr(model, "feature_names_in_") or not is_table(data):
        return None
    return list(_kinds(model, data) or model.feature_names_in_.tolist())


def _naming_column(model: NetworkClusterer) -> str | None:
    """The column by which the items of a fit on a mixed table were named, if there was one.

    It is the first that is called an id; :func:`ddclust.data.readers.columns.naming_column` chose it.
    """
    columns = model.columns_.described if hasattr(model, "columns_") else ()
    left_out = (column for column in columns if column.kind == LeftOutColumn.kind and not column.gaps)
    return next((column.name for column in left_out if is_called_id(column.name)), None)


def _kinds(model: NetworkClusterer, data: str | os.PathLike[str]) -> dict[str, str] | None:
    """What the columns of a table are, if the model was fitted on more than plain numbers."""
    return model.columns_.kinds if hasattr(model, "columns_") and is_table(data) else None
