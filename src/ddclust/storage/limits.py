"""How much may be read into memory, whatever a file says or unpacks to."""

from __future__ import annotations

import os
from pathlib import Path


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not on this system
        return 2**62


# Data that take more are usually memory-mapped. A fixed number, so that a file that is read here is read elsewhere, but
# on small machines less.
MAX_BYTES = min(4 * 2**30, _half_of_memory())


class Budget:
    """The bytes that may still be read from one input.

    Parameters
    ----------
    what : str
        Names the input in errors.
    max_bytes : int or None, default=None
        The limit; None is ``MAX_BYTES``.
    error : type, default=ValueError
        What is raised.
    remedy : str
        How a user can raise the limit, as the end of a sentence.

    Examples
    --------
    >>> budget = Budget("'a.csv'", 10)
    >>> budget.spend(10)
    >>> budget.spend(1)
    Traceback (most recent call last):
    ...
    ValueError: 'a.csv' takes at least 11 bytes of memory, more than the limit of 10 bytes; if it is meant to be that large, raise the limit (max_bytes).
    """

    def __init__(
        self,
        what: str,
        max_bytes: float | None = None,
        error: type[ValueError] = ValueError,
        remedy: str = "raise the limit (max_bytes)",
    ) -> None:
        self.what, self.error, self.remedy = what, error, remedy
        self.max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self.spent = 0.0

    def spend(self, n_bytes: float) -> None:
        """Count bytes that are about to be read; raise an error if they are too many."""
        self.check(n_bytes)
        self.spent += n_bytes

    def check(self, n_bytes: float) -> None:
        """Raise an error if so many bytes are too many, without counting them."""
        if self.spent + n_bytes > self.max_bytes:
            raise self.error(
                f"{self.what} takes at least {in_words(self.spent + n_bytes)} of memory, more than the limit of"
                f" {in_words(self.max_bytes)}; if it is meant to be that large, {self.remedy}."
            )


def read_bytes(file: Path, error: type[ValueError] = ValueError) -> bytes:
    """The content of a file of our own, unless it is larger than ``MAX_BYTES``."""
    budget = Budget(repr(str(file)), error=error, remedy=f"raise {__name__}.MAX_BYTES")
    budget.spend(file.stat().st_size)
    return file.read_bytes()


def in_words(n_bytes: float) -> str:
    """A number of bytes for reading.

    Examples
    --------
    >>> in_words(512), in_words(5_000_000_000)
    ('512 bytes', '5.0 GB')
    """
    if n_bytes < 10**6:
        return f"{n_bytes:,.0f} bytes"
    return f"{n_bytes / 10**6:,.1f} MB" if n_bytes < 10**9 else f"{n_bytes / 10**9:,.1f} GB"
