"""Opening text files, plain or compressed. Every compressed stream is opened here."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.encodings import BLOCK_BYTES, UTF_8, called, guessed_encoding
from ddclust.storage.limits import Budget, in_words

LONGEST_LINE = 2**27  # bytes; a text may be a book
# What a line and a cell take in memory besides their text: a name and places in lists, or a number.
LINE_BYTES, CELL_BYTES = 128, 8
SEPARATORS = (b",", b";", b"\t")


@contextmanager
def open_text(path: Path, budget: Budget, encoding: str | None = UTF_8) -> Iterator[IO[str]]:
    """Open a text file, through gzip if its name ends in .gz; errors name the file.

    Without an encoding it is guessed, as :func:`guessed_encoding` does. The file is first read to its end without keeping anything. So
    what unpacks to too much, or is torn, is refused before anything is made of it.
    """
    with open_bytes(path, budget) as file:
        _measure(file, path, budget)
    if encoding is None:
        with open_bytes(path, budget) as file:
            encoding = guessed_encoding(file, str(path))
    try:
        with open_bytes(path, budget) as file, io.TextIOWrapper(file, encoding, newline="") as text:
            yield text
    except UnicodeError as error:  # of UTF-16 without its mark, too
        reason = getattr(error, "reason", error)
        raise DataError(
            f"{str(path)!r} is not a text file in {called(encoding)}: {reason}; convert it first."
        ) from error


@contextmanager
def open_bytes(path: Path, budget: Budget) -> Iterator[IO[bytes]]:
    """Open a file, through gzip if its name ends in .gz; errors of reading name the file."""
    is_compressed = path.suffix.lower() == ".gz"
    try:
        budget.check(path.stat().st_size)
        with gzip.open(path) if is_compressed else path.open("rb") as file:
            yield file  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{str(path)!r} is damaged or truncated, or is not compressed by gzip ({error}); get it again."
        ) from error
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error


def _measure(file: IO[bytes], path: Path, budget: Budget) -> None:
    """Count what the file will take."""
    line = 0
    while block := file.read(BLOCK_BYTES):
        n_cells = sum(map(block.count, SEPARATORS))
        budget.spend(len(block) + LINE_BYTES * block.count(b"\n") + CELL_BYTES * n_cells)
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        line = line + len(block) if end < 0 else len(block) - end
        if line > LONGEST_LINE:
            raise DataError(
                f"{str(path)!r} is no text of several lines: one of them is longer than {in_words(LONGEST_LINE)};"
                " divide it."
            )


def stem(path: Path) -> str:
    """The file's name without the suffixes of its format.

    Examples
    --------
    >>> stem(Path("data/news.jsonl.gz"))
    'news'
    """
    return path.name.removesuffix(".gz").rpartition(".")[0]
