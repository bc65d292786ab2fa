"""Memory that is freed after a step and allocated again in the next one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# Parameters of glibc's mallopt, and what they are at most if nobody sets them.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
USUAL_TRIM, USUAL_MMAP = 128 * 2**10, 32 * 2**20
KEPT_BYTES = 2**30


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let the C library keep what is freed, up to 1 GiB, instead of giving it back to the system at once.

    A step frees hundreds of megabytes that the next one needs again. The system fills fresh pages with zeros, which took more
    than a quarter of a step with pairs of images, and nearly half of a prediction. Afterwards the memory is given back.
    Without glibc nothing is done.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
    library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    try:
        yield
    finally:
        library.mallopt(M_MMAP_THRESHOLD, USUAL_MMAP)
        library.mallopt(M_TRIM_THRESHOLD, USUAL_TRIM)
        library.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if all(hasattr(library, name) for name in ("mallopt", "malloc_trim")) else None
