"""Data by name, from a file or from a folder, always as a Bunch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.data.named.circles import load_circles
from ddclust.data.named.digits import load_digits
from ddclust.data.named.mnist import load_mnist
from ddclust.data.named.news import load_agnews, load_rcv1_subset, load_reuters, load_reuters21578
from ddclust.data.named.registry import NAMED, NamedSet
from ddclust.data.named.seals import load_seals
from ddclust.data.readers.bunch import DataError, Reading
from ddclust.data.readers.files import READERS, read_labels, read_path
from ddclust.data.readers.links import ItemPlaces, read_pairs

__all__ = [
    "NAMED",
    "DataError",
    "ItemPlaces",
    "NamedSet",
    "load",
    "load_agnews",
    "load_circles",
    "load_digits",
    "load_mnist",
    "load_rcv1_subset",
    "load_reuters",
    "load_reuters21578",
    "load_seals",
    "read_labels",
    "read_pairs",
]


def load(
    data: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    image_size: int | tuple[int, int] | None = None,
    colour: str = "auto",
    value_columns: Sequence[str] | None = None,
    verbose: bool = False,
) -> Bunch:
    """A named data set, a file or a folder.

    Parameters
    ----------
    data : str or path-like
        One of the names in ``NAMED``; else the path of a file, ``.npy`` (memory-mapped), ``.npz`` (``X``
        and optionally ``y``, or a sparse matrix), ``.csv``, ``.tsv``, ``.parquet``, ``.txt`` (a document
        per line), ``.jsonl`` (an object per line), all text formats also with ``.gz``; or of a folder of
        images or of ``.txt`` files.
    text_column : str, optional
        Of tables and ``.jsonl``: cluster the texts in this column (or several, with commas between).
    id_column, truth_column : str, optional
        Columns with the items' names ("id", if there is one) and with their known classes.
    image_size : int or (int, int), optional
        Side, or height and width, to which images are cropped and resized. By default their own if all
        are of one size up to 64 pixels, else 32.
    colour : {"auto", "grey", "rgb"}, default="auto"
        Of images; "auto" is grey if all are.
    value_columns : sequence of str, optional
        Of tables: cluster these columns only, in this order.
    verbose : bool, default=False
        Show progress when it takes more than two seconds.

    Returns
    -------
    Bunch
        ``data``: an array, a CSR matrix or a list of texts; ``target``: the truth or None, and
        ``target_names``; ``item_names``: a name for each item; ``feature_names`` of a
        table's columns, or None; ``name``: of the data set; ``about``: one
        sentence; ``notes``: what the reader decided on its own; ``skipped``: files that could not be read,
        with the reason.

    Examples
    --------
    >>> load("digits").data.shape
    (1797, 8, 8)
    """
    columns = None if value_columns is None else tuple(value_columns)
    reading = Reading(text_column, id_column, truth_column, columns, image_size, colour, verbose)
    if str(data) in NAMED:
        reading.refuse_all_but(set(), f"the named data set {str(data)!r}")
        bunch = NAMED[str(data)].load()
        if Path(data).exists():
            bunch.notes.append(f"{str(data)!r} is the named data set, not the file; for that say './{data}'.")
        return bunch
    if not Path(data).exists():
        raise DataError(
            f"{str(data)!r} is neither a file or folder nor a named data set; there are"
            f" {', '.join(NAMED)}, and files ending in {', '.join(READERS)}."
        )
    return read_path(Path(data), reading)


load_data = load  # its name at the top of the package
