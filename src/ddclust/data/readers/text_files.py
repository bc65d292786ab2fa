"""Opening text files, plain or compressed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ddclust.data.readers.bunch import DataError


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file in UTF-8, through gzip if its name ends in .gz; errors name the file."""
    try:
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(path)!r} is not a text file in UTF-8: {error.reason}; convert it first."
        ) from error
    except (OSError, EOFError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}") from error


def stem(path: Path) -> str:
    """The file's name without the suffixes of its format.

    Examples
    --------
    >>> stem(Path("data/news.jsonl.gz"))
    'news'
    """
    return path.name.removesuffix(".gz").rpartition(".")[0]
