"""Arrays for which there may be no room in memory."""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

IN_MEMORY_BYTES = 2 * 2**30  # a larger array is kept in a temporary file


def scratch_array(
    shape: tuple[int, ...], dtype: Any, *, prefix: str, in_memory_bytes: int | None = None
) -> NDArray:
    """A new array in memory or, if it is large, in a temporary file that is removed with it.

    Examples
    --------
    >>> scratch_array((2, 3), np.uint8, prefix="example-").shape
    (2, 3)
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes <= (IN_MEMORY_BYTES if in_memory_bytes is None else in_memory_bytes):
        return np.empty(shape, dtype=dtype)
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=".raw")
    try:
        if hasattr(
            os, "posix_fallocate"
        ):  # else, on a full disk, writing to the map ends the process by SIGBUS
            os.posix_fallocate(handle, 0, n_bytes)
        else:
            os.ftruncate(handle, n_bytes)
        array = np.memmap(name, dtype=dtype, mode="r+", shape=shape)
    except BaseException:
        os.unlink(name)
        raise
    finally:
        os.close(handle)
    weakref.finalize(array, os.unlink, name)
    return array
