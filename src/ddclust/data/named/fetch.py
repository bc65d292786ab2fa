"""Data that is downloaded once, then kept as plain arrays with their digest."""

from __future__ import annotations

import hashlib
import io
import secrets
import shutil
import urllib.request
import warnings
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust.data.named.store import DataFile, find, need
from ddclust.data.readers.arrays import open_npz
from ddclust.data.readers.bunch import DataError
from ddclust.storage.atomic import write_file
from ddclust.storage.user_cache import cache_folder

DIGEST = "sha256"  # the array of a kept file that holds the digest of the others
SECONDS = 60  # without an answer


class RemoteFile(NamedTuple):
    """A file on the web: where it belongs in a data folder, the hash of its content, and its address."""

    path: str
    sha256: str
    url: str


def fetched(
    file: str, keys: set[str], fetch: Callable[[Path], dict[str, NDArray]], data_set: str, what_to_put: str
) -> dict[str, NDArray]:
    """The arrays of a kept file, which ``fetch`` makes if it does not exist."""
    path = find(file)
    if path is not None:
        arrays = open_npz(path)
        stored = arrays.pop(DIGEST, None)
        if not keys <= arrays.keys() or stored is None or stored.tolist() != digest_of(arrays):
            raise DataError(
                f"{str(path)!r} is damaged, or was left by an earlier version: its arrays have no digest or another one;"
                " remove it to fetch the data again."
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
    np.savez_compressed(content, allow_pickle=False, **arrays, **{DIGEST: np.array(digest_of(arrays))})
    try:
        write_file(cache / file, content.getvalue())
    except OSError as error:
        warnings.warn(
            f"The data set {data_set!r} could not be kept in {str(cache)!r}: {error}.", stacklevel=3
        )
    return arrays


def digest_of(arrays: dict[str, NDArray]) -> str:
    """The digest of arrays and their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def downloaded(remote: RemoteFile, data_set: str) -> Path:
    """A file with the right content, from a data folder or from the web."""
    wanted = DataFile(remote.path, remote.sha256)
    if find(remote.path) is None:
        target = cache_folder() / remote.path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        try:
            with urllib.request.urlopen(remote.url, timeout=SECONDS) as answer, partial.open("wb") as file:
                shutil.copyfileobj(answer, file)
            with partial.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != remote.sha256:
                    raise OSError(f"what {remote.url} gives has another SHA-256 than {remote.sha256[:12]}...")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    return need(wanted, data_set)
