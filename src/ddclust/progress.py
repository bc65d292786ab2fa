"""Progress bars and lines on standard error. If nobody reads them any more, a pager was quit say, work goes on."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from typing import Any

from tqdm.auto import tqdm  # a widget in notebooks, text elsewhere

AUTO = "auto"
# What writing to a standard error that is gone, full or closed raises.
OUTPUT_ERRORS = (OSError, ValueError)


class TolerantStream:
    """A text stream whose failing writes are ignored; it may be None, as standard error is if it was closed.

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
        if self._stream is not None:
            with contextlib.suppress(*OUTPUT_ERRORS):
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(*OUTPUT_ERRORS):
                self._stream.flush()


class Bar(tqdm):
    """A progress bar on standard error."""

    def __init__(self, iterable: Any = None, **settings: Any) -> None:
        super().__init__(iterable, file=TolerantStream(sys.stderr), **settings)


def say(message: str) -> None:
    """A line on standard error, beside any progress bar."""
    tqdm.write(wrapped(message), file=TolerantStream(sys.stderr))


def wrapped(message: str) -> str:
    """A message in lines as wide as the terminal, and as it is if standard error is none.

    What is longer than a line, such as the name of a file, stays whole.
    """
    is_terminal = False
    with contextlib.suppress(AttributeError, *OUTPUT_ERRORS):
        is_terminal = sys.stderr.isatty()
    if not is_terminal:
        return message
    width = shutil.get_terminal_size().columns
    return textwrap.fill(message, width, break_long_words=False, break_on_hyphens=False)


def is_watched() -> bool:
    """Whether somebody is likely to look at standard error: it is a terminal, or this is a notebook."""
    with contextlib.suppress(AttributeError, *OUTPUT_ERRORS):  # there may be none
        return sys.stderr.isatty() or _in_notebook()
    return False


def _in_notebook() -> bool:
    """Whether a kernel runs this process, rather than having been imported to start others."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def shows_progress(verbose: bool | int | str) -> bool:
    """Whether work with this ``verbose`` shows its progress; "auto" does so where somebody is likely to look.

    Examples
    --------
    >>> shows_progress(True), shows_progress(0)
    (True, False)
    """
    return is_watched() if verbose == AUTO else bool(verbose)


def in_words(seconds: float) -> str:
    """A duration, roughly.

    Examples
    --------
    >>> in_words(4), in_words(47), in_words(200), in_words(9000)
    ('a few seconds', '50 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 95:
        return f"{max(round(seconds, -1), 10):.0f} seconds"
    if seconds < 95 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
