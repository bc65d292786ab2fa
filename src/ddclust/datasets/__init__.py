"""Data by name or from a file, always as a Bunch: ``data``, ``target`` or None, ``item_names``, ``name``, ``about``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.datasets._circles import load_circles
from ddclust.datasets._digits import load_digits
from ddclust.datasets._files import READERS, DataError, load_file, read_labels

__all__ = ["NAMED", "DataError", "load", "load_circles", "load_digits", "load_file", "read_labels"]

NAMED: dict[str, Callable[[], Bunch]] = {"circles": load_circles, "digits": load_digits}


def load(data: str | os.PathLike[str]) -> Bunch:
    """A named data set, or a file.

    Parameters
    ----------
    data : str or path-like
        A name ("circles", "digits"), else the path of a .npy, .npz or .csv file.

    Returns
    -------
    Bunch
        ``data``: the array; ``target``: the truth or None; ``item_names``: a name for each row;
        ``name``: of the data set; ``about``: one sentence.

    Examples
    --------
    >>> load("digits").data.shape
    (1797, 8, 8)
    """
    if str(data) in NAMED:
        return NAMED[str(data)]()
    if not Path(data).exists():
        raise DataError(
            f"{str(data)!r} is neither a file nor a named data set; there are {', '.join(sorted(NAMED))},"
            f" and files ending in {', '.join(READERS)}."
        )
    return load_file(data)
