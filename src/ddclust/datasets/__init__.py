"""Data by name, from a file or from a folder, always as a Bunch."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.datasets._bunch import DataError
from ddclust.datasets._circles import load_circles
from ddclust.datasets._digits import load_digits
from ddclust.datasets._files import READERS, load_file, read_labels
from ddclust.datasets._mnist import load_mnist
from ddclust.datasets._named import NAMED, NamedSet
from ddclust.datasets._news import load_agnews, load_rcv1_subset, load_reuters, load_reuters21578
from ddclust.datasets._seals import load_seals

__all__ = [
    "NAMED",
    "DataError",
    "NamedSet",
    "load",
    "load_agnews",
    "load_circles",
    "load_digits",
    "load_file",
    "load_mnist",
    "load_rcv1_subset",
    "load_reuters",
    "load_reuters21578",
    "load_seals",
    "read_labels",
]


def load(
    data: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    truth_column: str | None = None,
    image_size: int | tuple[int, int] | None = None,
    colour: str = "auto",
    verbose: bool = False,
) -> Bunch:
    """A named data set, a file or a folder.

    Parameters
    ----------
    data : str or path-like
        One of the names in ``NAMED``, else a path.
    text_column, id_column, truth_column, image_size, colour, verbose
        How to read a path: see :func:`load_file`.

    Returns
    -------
    Bunch
        ``data``: an array, a CSR matrix or a list of texts; ``target``: the truth or None, and
        ``target_names``; ``item_names``: a name for each item; ``name``: of the data set; ``about``: one
        sentence; ``notes``: what the reader decided on its own; ``skipped``: files that could not be read,
        with the reason.

    Examples
    --------
    >>> load("digits").data.shape
    (1797, 8, 8)
    """
    if str(data) in NAMED:
        return NAMED[str(data)].load()
    if not Path(data).exists():
        raise DataError(
            f"{str(data)!r} is neither a file or folder nor a named data set; there are"
            f" {', '.join(NAMED)}, and files ending in {', '.join(READERS)}."
        )
    return load_file(
        data,
        text_column=text_column,
        id_column=id_column,
        truth_column=truth_column,
        image_size=image_size,
        colour=colour,
        verbose=verbose,
    )
