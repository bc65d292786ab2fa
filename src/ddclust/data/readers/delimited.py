"""Tables in .csv and .tsv files, of numbers or of texts."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.columns import ColumnRoles, check_cells, table_bunch
from ddclust.data.readers.formats import COLUMN_OPTIONS, Format, ReadOptions
from ddclust.data.readers.text_files import open_text

DELIMITERS = ",;\t"
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
CHUNK_ROWS = 10_000
LONGEST_CELL = 2**27  # a text may be a book


def read_delimited(path: Path, options: ReadOptions) -> Bunch:
    """Numbers, or texts if there is a text column; a first row that contains a word is a header."""
    rows = csv_rows(path)
    first_line, first = next(rows)
    has_header = _is_header(first, options)
    columns = [cell.strip() for cell in first] if has_header else _numbered(first)
    roles = ColumnRoles(columns, options, path)
    lines, ids, truth, texts = array("q"), [], [], []
    chunks, chunk = [], []
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
        if len(chunk) == CHUNK_ROWS:
            chunks.append(_numbers(chunk, lines, roles))
            chunk = []
    if not lines:
        raise DataError(f"{str(path)!r} holds no rows below its header.")
    names = [columns[i] for i in roles.values]
    data: Any = texts
    if not roles.text:
        if chunk:
            chunks.append(_numbers(chunk, lines, roles))
        data = np.concatenate(chunks)
        check_cells(data, lambda row: f"line {lines[row]}", names, path)
    return table_bunch(path, data, roles, ids=ids, truth=truth, feature_names=names if has_header else [])


DELIMITED = Format((".csv", ".tsv"), read_delimited, COLUMN_OPTIONS, may_be_gzipped=True)


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every row that is not empty; all rows must have as many cells as the first."""
    with open_text(path) as file:
        first = file.readline()
        while first and not first.strip():
            first = file.readline()
        delimiter = max(DELIMITERS, key=lambda d: len(next(csv.reader([first], delimiter=d), [])))
        if ".tsv" in path.suffixes:
            delimiter = "\t"
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        width = None
        usual_limit = csv.field_size_limit(LONGEST_CELL)
        try:
            for row in reader:
                if not row:
                    continue
                width = len(row) if width is None else width
                if len(row) != width:
                    raise DataError(
                        f"{str(path)!r}: line {reader.line_num} has {len(row)} columns, the first one has {width}."
                    )
                yield reader.line_num, row
        except csv.Error as error:
            raise DataError(
                f"{str(path)!r} cannot be read as a table: line {reader.line_num}: {error}"
            ) from error
        finally:
            csv.field_size_limit(usual_limit)
    if width is None:
        raise DataError(f"{str(path)!r} is empty.")


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
    return not all(is_number(cell) or cell.strip().lower() in MISSING for cell in first)


def _numbered(first: list[str]) -> list[str]:
    """The names that pandas gives to columns without one."""
    return [str(i) for i in range(len(first))]


def _numbers(chunk: list[list[str]], lines: array, roles: ColumnRoles) -> NDArray[np.float64]:
    """The cells of the rows last read as numbers."""
    try:
        return np.array(chunk, dtype=np.float64)
    except ValueError:
        for row, line in zip(chunk, lines[-len(chunk) :], strict=True):
            for cell, column in zip(row, roles.values, strict=True):
                if not is_number(cell):
                    what = f"holds {cell!r:.60}, which is no number" if cell.strip() else "is empty"
                    raise DataError(
                        f"{str(roles.path)!r}: line {line}, column {roles.columns[column]!r} {what}. If the column holds"
                        " the items' names, their classes or texts, say so (--id, --truth, --text)."
                    ) from None
        raise
