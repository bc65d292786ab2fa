"""How a reader declares its format, and what a user may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, fields
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.encodings import known_encoding
from ddclust.storage.limits import Budget

COLUMN_OPTIONS = frozenset({"text_column", "id_column", "truth_column"})
ENCODING = frozenset({"encoding"})
TABLE_OPTIONS = COLUMN_OPTIONS | {"value_columns", "drop_columns", "kinds"}
GENERAL_OPTIONS = frozenset({"verbose", "max_bytes", "photo_side", "likely_id"})  # never refused


def budget_of(path: Path, max_bytes: float | None = None) -> Budget:
    """The memory that reading a user's file or folder may take."""
    return Budget(repr(str(path)), max_bytes, DataError)


@dataclass(frozen=True)
class ReadOptions:
    """What a user can say about how to read a file or folder; each reader uses what concerns it."""

    text_column: str | None = None
    id_column: str | None = None
    truth_column: str | None = None
    value_columns: tuple[str, ...] | None = None
    drop_columns: tuple[str, ...] = ()
    image_size: int | tuple[int, int] | None = None
    colour: str = "auto"
    verbose: bool = False
    max_bytes: float | None = None
    kinds: Mapping[str, str] | None = None
    photo_side: int | None = None
    likely_id: str | None = None
    encoding: str | None = None

    def budget(self, path: Path) -> Budget:
        """The memory that reading the file or folder may take."""
        return budget_of(path, self.max_bytes)

    @property
    def known_encoding(self) -> str | None:
        """The encoding of a text file, None if it is to be guessed."""
        return None if self.encoding is None else known_encoding(self.encoding)

    def refuse_all_but(self, applicable: Set[str], data: str) -> None:
        """Raise an error if an option is set that does not apply to this kind of data."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default and field.name not in applicable | GENERAL_OPTIONS:
                raise DataError(f"{field.name}={value!r} does not apply to {data}.")


@dataclass(frozen=True)
class Format:
    """A kind of file, or of folder, and how to read it.

    Parameters
    ----------
    suffixes : tuple of str
        The suffixes, in lower case, of such files, or of the files in such a folder.
    read : callable (path, options) -> Bunch
    options : set of str
        The fields of :class:`ReadOptions` that apply.
    may_be_gzipped : bool, default=False
        Whether a suffix may be followed by ``.gz``.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Bunch]
    options: Set[str] = frozenset()
    may_be_gzipped: bool = False
