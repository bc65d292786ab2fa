"""Data from scikit-learn's fetchers: downloaded once, then cached as plain arrays."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddclust.data.named.store import cache_folder, find
from ddclust.data.readers.arrays import open_npz
from ddclust.data.readers.bunch import DataError
from ddclust.storage.atomic import write_file


def fetched(
    file: str, keys: set[str], fetch: Callable[[Path], dict[str, NDArray]], data_set: str, what_to_put: str
) -> dict[str, NDArray]:
    """The arrays of a cached file, which ``fetch`` makes if it does not exist."""
    path = find(file)
    if path is not None:
        arrays = open_npz(path)
        if not keys <= arrays.keys():
            raise DataError(
                f"{str(path)!r} is damaged: it lacks {', '.join(sorted(keys - arrays.keys()))}; remove it."
            )
        return arrays
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        arrays = fetch(cache)
    except (OSError, HTTPException) as error:  # no network, a wrong checksum, no room
        raise DataError(
            f"The data set {data_set!r} is not at hand and could not be fetched ({error}). Put {what_to_put}."
        ) from error
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    try:
        write_file(cache / file, content.getvalue())
    except OSError as error:
        warnings.warn(
            f"The data set {data_set!r} could not be kept in {str(cache)!r}: {error}.", stacklevel=3
        )
    return arrays
