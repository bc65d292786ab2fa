"""Tables in .csv and .tsv files: of numbers, of columns of any kind, or of texts."""

from __future__ import annotations

import csv
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.columns import ColumnRoles, mixed_columns, refuse_infinity, table_bunch
from ddclust.data.readers.encodings import UTF_8, called
from ddclust.data.readers.formats import COLUMN_OPTIONS, ENCODING, TABLE_OPTIONS, Format, ReadOptions
from ddclust.data.readers.text_files import LONGEST_LINE, open_text
from ddclust.data.tables.cells import decimal_comma_numbers, is_missing, is_plain
from ddclust.storage.limits import Budget

DELIMITERS = ",;\t"
CHUNK_CELLS = 1_000_000
WORD_BYTES = 150  # what a word takes beside its characters
WORDS_AT_ONCE = 10_000  # after so many new words they are counted


def read_delimited(path: Path, options: ReadOptions) -> Bunch:
    """Numbers without gaps as an array, other columns as a Table, or texts if there is a text column.

    A first row that contains a word is a header.
    """
    file = DelimitedFile(path, options.budget(path), options.known_encoding)
    rows = file.rows()
    first_line, first = next(rows)
    has_header = _is_header(first, options)
    columns = [cell.strip() for cell in first] if has_header else _numbered(first)
    roles = ColumnRoles(columns, options, path)
    lines, ids, truth, texts = array("q"), [], [], []
    chunks, chunk = [], []
    found = _Found(roles)
    for line, row in rows if has_header else chain([(first_line, first)], rows):
        lines.append(line)
        if roles.id is not None:
            ids.append(row[roles.id])
        if roles.truth is not None:
            if not row[roles.truth].strip():
                raise DataError(
                    f"{str(path)!r}: line {line} has no class in column {columns[roles.truth]!r}."
                )
            truth.append(row[roles.truth])
        if roles.text:
            texts.append("\n".join(row[i] for i in roles.text))
            continue
        chunk.append([row[i] for i in roles.values])
        if len(chunk) * len(roles.values) >= CHUNK_CELLS:
            chunks.append(found.numbers(chunk, lines))
            chunk = []
    if not lines:
        raise DataError(f"{str(path)!r} holds no rows below its header.")
    names = [columns[i] for i in roles.values]
    data: Any = texts
    has_decimal_commas = False
    if not roles.text:
        if chunk:
            chunks.append(found.numbers(chunk, lines))
        refuse_infinity(path, found.infinite())
        if found.is_plain and not options.kinds:
            data = np.concatenate(chunks)
        else:
            del chunks
            data, has_decimal_commas = _mixed(path, options, roles, found, has_header)
    return table_bunch(
        path,
        data,
        roles,
        ids=ids,
        truth=truth,
        feature_names=names if has_header else [],
        said=file.in_words(has_decimal_commas),
    )


DELIMITED = Format((".csv", ".tsv"), read_delimited, TABLE_OPTIONS | ENCODING, may_be_gzipped=True)


class DelimitedFile:
    """A file of rows with cells, whose delimiter and, if it is not given, encoding are guessed when it is read."""

    def __init__(self, path: Path, budget: Budget, encoding: str | None = None) -> None:
        self.path, self.budget, self.given = path, budget, encoding
        self.encoding, self.delimiter = UTF_8, ","

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every row that is not empty; all rows must have as many cells as the first."""
        width, line, path = None, 0, self.path
        with open_text(path, self.budget, self.given) as file, _long_cells():
            self.encoding, self.delimiter = str(getattr(file, "encoding", UTF_8)), _delimiter(file, path)
            try:
                reader = csv.reader(file, delimiter=self.delimiter, strict=True)
                for row in reader:
                    line = reader.line_num
                    if not row:
                        continue
                    width = len(row) if width is None else width
                    if len(row) != width:
                        raise DataError(
                            f"{str(path)!r}: line {line} has {len(row)} columns, the first one has {width}."
                        )
                    yield line, row
            except csv.Error as error:
                raise DataError(
                    f"{str(path)!r} cannot be read as a table: line {line + 1}: {error}."
                ) from error
        if width is None:
            raise DataError(f"{str(path)!r} is empty.")

    def in_words(self, has_decimal_commas: bool) -> list[str]:
        """What was guessed of the file, in at most one sentence."""
        parts = [] if self.encoding == UTF_8 else [f"the encoding {called(self.encoding)}"]
        if self.delimiter == ";":
            parts.append("semicolons between the cells")
        if has_decimal_commas:
            parts.append("decimal commas")
        return [f"The table is read with {', '.join(parts)}."] if parts else []


def csv_rows(path: Path, budget: Budget) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every row of a file, as :class:`DelimitedFile` reads it."""
    yield from DelimitedFile(path, budget).rows()


class _Found:
    """What the columns of a file hold besides finite numbers."""

    def __init__(self, roles: ColumnRoles) -> None:
        self.roles = roles
        self.words: set[int] = set()  # places of columns, among those to cluster
        self._has_gaps = False
        self._infinite: dict[int, str] = {}

    @property
    def is_plain(self) -> bool:
        """Whether there are only numbers without gaps."""
        return not self.words and not self._has_gaps

    def numbers(self, chunk: list[list[str]], lines: array) -> NDArray[np.float64]:
        """The cells of the rows last read as numbers, NaN for those that are none."""
        try:
            numbers = np.array(chunk, dtype=np.float64)
        except ValueError:
            numbers = np.array(
                [[float(cell) if is_number(cell) else np.nan for cell in row] for row in chunk]
            )
        for row, column in np.argwhere(~np.isfinite(numbers)):
            if np.isinf(numbers[row, column]):
                self._infinite.setdefault(int(column), f"line {lines[len(lines) - len(chunk) + row]}")
            elif is_missing(chunk[row][column]):
                self._has_gaps = True
            else:
                self.words.add(int(column))
        return numbers

    def infinite(self) -> dict[str, str]:
        """The columns of numbers that hold infinity, with the first place of each."""
        roles = self.roles
        return {
            roles.columns[roles.values[column]]: place
            for column, place in sorted(self._infinite.items())
            if column not in self.words
        }


def _mixed(
    path: Path, options: ReadOptions, roles: ColumnRoles, found: _Found, has_header: bool
) -> tuple[Any, bool]:
    """The columns of a file, read again, as a Table, and whether some have decimal commas.

    Numbers with decimal commas may turn out to be all there is; then they are an array.
    """
    file = DelimitedFile(path, options.budget(path), options.known_encoding)
    rows = file.rows()
    if has_header:
        next(rows)
    kinds = options.kinds or {}
    names = [roles.columns[i] for i in roles.values]
    as_words = [
        place in found.words or kinds.get(name, "number") != "number" for place, name in enumerate(names)
    ]
    numbers = [array("d") for _ in names]
    words: list[list[str | None]] = [[] for _ in names]
    same: dict[str, str] = {}  # equal words are stored once
    counted = 0
    for _, row in rows:
        if len(same) - counted > WORDS_AT_ONCE:
            file.budget.spend(WORD_BYTES * (len(same) - counted))
            counted = len(same)
        for place, i in enumerate(roles.values):
            cell = row[i]
            if is_missing(cell):
                words[place].append(None) if as_words[place] else numbers[place].append(np.nan)
            elif as_words[place]:
                words[place].append(same.setdefault(cell, cell))
            else:
                numbers[place].append(float(cell))
    columns: dict[str, Any] = {}
    has_commas = False
    for place, name in enumerate(names):
        if name in columns:
            raise DataError(f"{str(path)!r} has several columns {name!r}; rename them.")
        columns[name] = np.array(words[place], dtype=object) if as_words[place] else np.array(numbers[place])
        if place in found.words and file.delimiter != "," and kinds.get(name, "number") == "number":
            parsed = decimal_comma_numbers(words[place])
            if parsed is not None:
                columns[name], has_commas = parsed, True
    if not kinds and all(map(is_plain, columns.values())):
        return np.column_stack(list(columns.values())), has_commas
    return mixed_columns(path, columns, kinds), has_commas


def _delimiter(file: IO[str], path: Path) -> str:
    """The delimiter that makes most columns of the first line, or that the name of the file says."""
    first = file.readline()
    while first and not first.strip():
        first = file.readline()
    file.seek(0)
    if ".tsv" in path.suffixes:
        return "\t"
    return max(DELIMITERS, key=lambda d: len(next(csv.reader([first], delimiter=d), [])))


_readers, _lock = {"n": 0, "usual_limit": 0}, threading.Lock()


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let the csv module read cells as long as a line. Its limit is one for all threads: the last reader restores it."""
    with _lock:
        if not _readers["n"]:
            _readers["usual_limit"] = csv.field_size_limit(LONGEST_LINE)
        _readers["n"] += 1
    try:
        yield
    finally:
        with _lock:
            _readers["n"] -= 1
            if not _readers["n"]:
                csv.field_size_limit(_readers["usual_limit"])


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number; NaN and infinity can."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_header(first: list[str], options: ReadOptions) -> bool:
    """Whether the first row holds the columns' names: one was asked for, or not all cells are numbers."""
    if any(getattr(options, option) is not None for option in COLUMN_OPTIONS):
        return True
    if first == _numbered(first) and len(first) > 1:
        return True
    return not all(is_number(cell) or is_missing(cell) for cell in first)


def _numbered(first: list[str]) -> list[str]:
    """The names that pandas gives to columns without one."""
    return [str(i) for i in range(len(first))]
