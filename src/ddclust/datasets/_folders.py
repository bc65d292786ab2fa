"""The files of a folder, and the classes that its sub-folders stand for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddclust.datasets._bunch import coded


def files_of(folder: Path, suffixes: set[str]) -> list[Path]:
    """All files below a folder with one of the suffixes, in order of their names; hidden ones are left out."""
    found = []
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            Path(root, name)
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in suffixes
        ]
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def truth_by_subfolder(names: list[str]) -> tuple[NDArray[np.int64], list[str]] | tuple[None, None]:
    """Codes and names of the first-level sub-folders, if all files lie in such and there are two at least.

    Examples
    --------
    >>> truth_by_subfolder(["cat/1.png", "cat/2.png", "dog/1.png"])
    (array([0, 0, 1]), ['cat', 'dog'])
    """
    tops = [name.split("/")[0] for name in names]
    if all("/" in name for name in names) and len(set(tops)) > 1:
        return coded(tops)
    return None, None
