"""Where the files of named data sets are: in the folder DDCLUST_DATA, or in the user's cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from ddclust.data.readers.bunch import DataError
from ddclust.storage.user_cache import cache_folder

DATA_VARIABLE = "DDCLUST_DATA"


class DataFile(NamedTuple):
    """A file: its path in a data folder, and the hash of its content."""

    path: str
    sha256: str


def find(path: str) -> Path | None:
    """The file with that relative path, in the first folder that has it."""
    given = os.environ.get(DATA_VARIABLE)
    places = [*([Path(given)] if given else []), cache_folder()]
    return next((place / path for place in places if (place / path).is_file()), None)


def need(file: DataFile, data_set: str) -> Path:
    """The path of the file; it must exist and have the right content."""
    path = find(file.path)
    if path is None:
        raise DataError(
            f"The data set {data_set!r} is not at hand: put the file {file.path!r} {where_to()}."
            " 'ddclust datasets' lists those that come with the installation."
        )
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{str(path)!r} is not the file that the data set {data_set!r} needs, or is damaged: its SHA-256 is"
            f" {found[:12]}..., expected {file.sha256[:12]}...; put the right one in its place."
        )
    return path


def where_to() -> str:
    """Where a user may put a file, in words."""
    given = os.environ.get(DATA_VARIABLE)
    folder = f"into a folder that the environment variable {DATA_VARIABLE} names"
    if given:
        exists = "" if Path(given).is_dir() else ", which does not exist"
        folder = f"into {given!r}{exists} ({DATA_VARIABLE})"
    return f"into {str(cache_folder())!r}, or {folder}"
