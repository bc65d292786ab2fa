"""Data by name, from a file or from a folder, always as a Bunch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.data.named import NAMED, NamedSet
from ddclust.data.named.agnews import load_agnews, load_agnews_texts
from ddclust.data.named.cifar10 import load_cifar10
from ddclust.data.named.circles import load_circles
from ddclust.data.named.digits import load_digits
from ddclust.data.named.manuals import load_manuals
from ddclust.data.named.mnist import load_mnist
from ddclust.data.named.rcv1 import load_rcv1_subset, load_reuters
from ddclust.data.named.reuters21578 import load_reuters21578
from ddclust.data.named.seals import load_seals
from ddclust.data.named.tiles import load_tiles
from ddclust.data.named.wine import load_wine
from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.files import read_path
from ddclust.data.readers.formats import ReadOptions
from ddclust.data.readers.labels import read_labels
from ddclust.data.readers.links import ItemPlaces, read_pairs

__all__ = [
    "NAMED",
    "DataError",
    "ItemPlaces",
    "NamedSet",
    "load",
    "load_agnews",
    "load_agnews_texts",
    "load_cifar10",
    "load_circles",
    "load_data",
    "load_digits",
    "load_manuals",
    "load_mnist",
    "load_rcv1_subset",
    "load_reuters",
    "load_reuters21578",
    "load_seals",
    "load_tiles",
    "load_wine",
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
    drop_columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    max_bytes: float | None = None,
    photo_side: int | None = None,
    likely_id: str | None = None,
    encoding: str | None = None,
    verbose: bool = False,
) -> Bunch:
    """Load a named data set, a file or a folder.

    Parameters
    ----------
    data : str or path-like
        One of the names in ``NAMED``, or a path. A file may be ``.npy`` (memory-mapped), ``.npz`` (``X`` and
        optionally ``y``, or a sparse matrix), ``.csv``, ``.tsv``, ``.parquet``, ``.txt`` (a document per line) or
        ``.jsonl`` (an object per line); text formats may also end in ``.gz``. A folder holds images or ``.txt``
        files.
    text_column : str, optional
        The column (or field) of a table whose texts are clustered; several are separated by commas.
    id_column : str, optional
        The column with the items' names; by default "id", if there is one.
    truth_column : str, optional
        The column with the known classes.
    image_size : int or (int, int), optional
        The side, or the height and width, to which images are cropped and resized. By default images keep their
        size if they all have the same one, up to 64 pixels; else the side is 32.
    colour : {"auto", "grey", "rgb"}, default="auto"
        The colour of images; with "auto" they are grey if every file is.
    value_columns : sequence of str, optional
        The only columns of a table to cluster, in this order.
    drop_columns : sequence of str, optional
        Columns of a table that are not clustered.
    kinds : mapping of str to str, optional
        What some columns of a table are, where the guess is wrong: see :class:`ddclust.Table`.
    max_bytes : float, optional
        The most memory that the data of a file or folder may take, so that a small file that unpacks to a huge one does
        no harm. By default 4 GiB, or half of the machine's memory if that is less. A ``.npy`` file may be of any size.
    photo_side : int, optional
        The side for images in colour instead of 32, if an encoder will see them.
    likely_id : str, optional
        The column with the items' names, if there is one of that name and ``id_column`` is not given.
    encoding : str, optional
        That of a file or folder of texts, or of a ``.csv`` or ``.tsv`` file, such as "windows-1251" or "shift-jis". By default
        UTF-8, UTF-16 and Windows-1252 are told apart, and what may be in another one is refused.
    verbose : bool, default=False
        Show progress if reading takes more than two seconds.

    Returns
    -------
    Bunch
        ``data``: an array, a CSR matrix, a Table or a list of texts; ``target``: the known classes as codes, or None;
        ``target_names``: the names of the classes; ``item_names``: a name for each item; ``feature_names``: the
        columns of a table, or None; ``name``: the data set's name; ``about``: one sentence; ``notes``: what the
        reader decided by itself; ``skipped``: the files that could not be read, each with the reason.

    Examples
    --------
    >>> load("digits").data.shape
    (1797, 8, 8)
    """
    columns = None if value_columns is None else tuple(value_columns)
    options = ReadOptions(
        text_column,
        id_column,
        truth_column,
        columns,
        tuple(drop_columns or ()),
        image_size,
        colour,
        verbose,
        max_bytes,
        kinds or None,
        photo_side,
        likely_id,
        encoding,
    )
    if str(data) in NAMED:
        options.refuse_all_but(set(), f"the named data set {str(data)!r}")
        bunch = NAMED[str(data)].load()
        if Path(data).exists():
            bunch.notes.append(f"{str(data)!r} is the named data set, not the file; for that say './{data}'.")
        return bunch
    if not Path(data).exists():
        raise DataError(
            f"There is no file, folder or data set {str(data)!r};{_alike(Path(data))} 'ddclust datasets' lists the data sets."
        )
    return read_path(Path(data), options)


def _alike(missing: Path) -> str:
    """A question whether something else is meant that has nearly the name of what is missing."""
    with suppress(OSError):  # a folder that is missing, too, or may not be read
        beside = {entry.name: str(missing.with_name(entry.name)) for entry in missing.parent.iterdir()}
        known = {**beside, **{name: name for name in NAMED}}
        for match in get_close_matches(missing.name, known, n=1, cutoff=0.75):
            return f" did you mean {known[match]!r}?"
    return ""


load_data = load
