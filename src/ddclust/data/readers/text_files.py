"""Opening text files, plain or compressed. Every compressed stream is opened here."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ddclust.data.readers.bunch import DataError
from ddclust.storage.limits import Budget, in_words

BLOCK_BYTES = 2**20
LONGEST_LINE = 2**27  # bytes; a text may be a book
# What a line and a cell take in memory besides their text: a name and places in lists, or a number.
LINE_BYTES, CELL_BYTES = 128, 8
SEPARATORS = (b",", b";", b"\t")
UTF_8, UTF_16, WINDOWS = "utf-8-sig", "utf-16", "cp1252"
# What texts in Windows-1252 do not hold: control characters, and the five codes without a meaning.
_NO_TEXT = bytes({*range(0x20), 0x7F, 0x81, 0x8D, 0x8F, 0x90, 0x9D} - set(b"\t\n\f\r"))


@contextmanager
def open_text(path: Path, budget: Budget, *, guess_encoding: bool = False) -> Iterator[IO[str]]:
    """Open a text file in UTF-8, through gzip if its name ends in .gz; errors name the file.

    With ``guess_encoding`` it may also be in UTF-16, as spreadsheets write it, or in Windows-1252. It is first read to its end without keeping anything. So what unpacks to too much, or is torn, is refused before
    anything is made of it.
    """
    with open_bytes(path, budget) as file:
        _measure(file, path, budget)
    encoding = UTF_8
    if guess_encoding:
        with open_bytes(path, budget) as file:
            encoding = _guessed_encoding(file)
    try:
        with open_bytes(path, budget) as file, io.TextIOWrapper(file, encoding, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(path)!r} is not a text file in UTF-8: {error.reason}; convert it first."
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


def _guessed_encoding(file: IO[bytes]) -> str:
    """UTF-8 unless the file begins as UTF-16 does, or is not UTF-8 but may be a text in Windows-1252."""
    block = file.read(BLOCK_BYTES)
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF_16
    decoder, is_utf_8 = codecs.getincrementaldecoder("utf-8")(), True
    while block:
        if block.translate(None, _NO_TEXT) != block:
            return UTF_8  # it is no text; reading it says so
        try:
            if is_utf_8:
                decoder.decode(block)
        except UnicodeDecodeError:
            is_utf_8 = False
        block = file.read(BLOCK_BYTES)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        is_utf_8 = False
    return UTF_8 if is_utf_8 else WINDOWS


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
