"""The files of a folder, and the classes given by its sub-folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.bunch import coded

SHOWN_CLASSES = 5


def files_of(folder: Path, suffixes: Collection[str] | None = None) -> list[Path]:
    """All files below a folder, or those with one of the suffixes, sorted by name; hidden files are left out.

    Links to folders are followed, but no folder is visited twice.
    """
    found = []
    visited = {folder.resolve()}
    for root, folders, files in os.walk(folder, onerror=_fail, followlinks=True):
        ahead = {name: Path(root, name).resolve() for name in sorted(folders) if not name.startswith(".")}
        folders[:] = [name for name, target in ahead.items() if target not in visited]
        visited.update(ahead.values())
        for name in files:
            path = Path(root, name)
            if not name.startswith(".") and (suffixes is None or path.suffix.lower() in suffixes):
                found.append(path)
    return sorted((path for path in found if path.is_file()), key=lambda path: path.relative_to(folder).parts)


def left_out_files(folder: Path, suffixes: Collection[str]) -> list[str]:
    """A note about the files with other suffixes, if there are any."""
    others = Counter(path.suffix.lower() for path in files_of(folder))
    counts = [
        f"{n} {suffix or 'without a suffix'}" for suffix, n in others.most_common() if suffix not in suffixes
    ]
    return [f"Files of other kinds are left out: {', '.join(counts[:10])}."] if counts else []


def classes_note(target_names: list[str] | None) -> list[str]:
    """A note that sub-folders are taken as known classes, if they are.

    Examples
    --------
    >>> classes_note(["cat", "dog"])
    ['The sub-folders (cat, dog) are taken as known classes, only to score the clusters.']
    """
    if not target_names:
        return []
    shown = ", ".join(target_names[:SHOWN_CLASSES]) + (", ..." if len(target_names) > SHOWN_CLASSES else "")
    return [f"The sub-folders ({shown}) are taken as known classes, only to score the clusters."]


def _fail(error: OSError) -> None:
    raise error


def truth_by_subfolder(names: list[str]) -> tuple[NDArray[np.int64], list[str]] | tuple[None, None]:
    """Codes and names of the first-level sub-folders, if every file lies in one and there are at least two.

    Examples
    --------
    >>> truth_by_subfolder(["cat/1.png", "cat/2.png", "dog/1.png"])
    (array([0, 0, 1]), ['cat', 'dog'])
    """
    tops = [name.split("/")[0] for name in names]
    if all("/" in name for name in names) and len(set(tops)) > 1:
        return coded(tops)
    return None, None
