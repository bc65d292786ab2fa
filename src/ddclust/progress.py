"""Progress bars and lines on standard error. If nobody reads them any more, a pager was quit say, work goes on."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from tqdm import tqdm

# What writing to a standard error that is gone, full or closed raises.
OUTPUT_ERRORS = (OSError, ValueError)


class TolerantStream:
    """A text stream whose failing writes are ignored.

    Examples
    --------
    >>> import io
    >>> closed = io.StringIO()
    >>> closed.close()
    >>> TolerantStream(closed).write("nobody reads this")
    17
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with contextlib.suppress(*OUTPUT_ERRORS):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(*OUTPUT_ERRORS):
            self._stream.flush()


class Bar(tqdm):
    """A progress bar on standard error."""

    def __init__(self, iterable: Any = None, **settings: Any) -> None:
        super().__init__(iterable, file=TolerantStream(sys.stderr), **settings)


def say(message: str) -> None:
    """A line on standard error, beside any progress bar."""
    tqdm.write(message, file=TolerantStream(sys.stderr))
