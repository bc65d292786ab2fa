"""Features that were computed before: on disk, or in memory as long as a function of the user's own lives."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import time
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ddclust.data.items import first_non_finite
from ddclust.data.readers.arrays import array_in
from ddclust.encoders.encoder import Encoder
from ddclust.storage.atomic import write_file
from ddclust.storage.user_cache import cache_folder

FORMAT = "ddclust-features-2"
DIGEST_BYTES = 32
MOST_FILE_BYTES = 256 * 2**20  # of one file, which holds the features of a few hundred items
MOST_BYTES = 8 * 2**30  # of all files; beyond, those that were not used for longest are removed


class Cache(Protocol):
    """Keeps the features of a few hundred items under a key."""

    def read(self, key: str) -> NDArray[np.float32] | None: ...

    def write(self, key: str, features: NDArray[np.float32]) -> None: ...

    def tidy(self) -> None: ...


class FolderCache:
    """A folder of ``.npy`` files, each followed by the SHA-256 of its content. What is damaged counts as absent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, key: str) -> NDArray[np.float32] | None:
        """The features under a key, if they are there and whole."""
        file = self.folder / f"{key}.npy"
        try:
            if not file.is_file() or file.stat().st_size > MOST_FILE_BYTES:
                return None
            content = file.read_bytes()
            body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
            if hashlib.sha256(body).digest() != digest:
                return None
            features = array_in(body)
            os.utime(file)  # it was used now
        except (OSError, ValueError):
            return None
        is_whole = features.ndim == 2 and features.dtype == np.float32 and first_non_finite(features) is None
        return features if is_whole else None

    def write(self, key: str, features: NDArray[np.float32]) -> None:
        """Keep features; a folder that cannot be written to keeps nothing."""
        body = io.BytesIO()
        np.save(body, features, allow_pickle=False)
        content = body.getvalue()
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self.folder / f"{key}.npy", content + hashlib.sha256(content).digest())

    def tidy(self) -> None:
        """Remove the files that were not used for longest, if all together are too large."""
        with contextlib.suppress(OSError):
            found = [(file.stat().st_mtime, file.stat().st_size, file) for file in self.folder.glob("*.npy")]
            too_much = sum(size for _, size, _ in found) - MOST_BYTES
            in_use = time.time() - 3600
            for used, size, file in sorted(found):
                if too_much <= 0 or used > in_use:
                    return
                file.unlink(missing_ok=True)
                too_much -= size


class MemoryCache:
    """A dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, NDArray[np.float32]] = {}

    def read(self, key: str) -> NDArray[np.float32] | None:
        return self.kept.get(key)

    def write(self, key: str, features: NDArray[np.float32]) -> None:
        self.kept[key] = features

    def tidy(self) -> None:
        """Nothing: it ends with the function whose features it keeps."""


_of_functions: WeakKeyDictionary[Any, MemoryCache] = WeakKeyDictionary()


def cache_of(encoder: Encoder) -> Cache:
    """Where the features of an encoder are kept.

    Nothing tells whether a function of the user's own is still the same in another process, so its features are not
    written to disk.
    """
    if encoder.digest is not None:
        return FolderCache(cache_folder() / "features")
    try:
        return _of_functions.setdefault(encoder.encode, MemoryCache())
    except TypeError:  # an object without a hash or without weak references
        return MemoryCache()


def key_of(encoder: Encoder, content: str) -> str:
    """The key of the features of items with a digest."""
    return hashlib.sha256(f"{FORMAT} {encoder.name} {encoder.digest} {content}".encode()).hexdigest()
