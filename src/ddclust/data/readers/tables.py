"""Tables: .csv, .tsv and .parquet, as numbers or as texts, with a column of names and one of classes."""

from __future__ import annotations

import csv
import gzip
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.items import first_non_finite
from ddclust.data.readers.bunch import DataError, Reading, coded, make_bunch

DELIMITERS = ",;\t"
# Taken for the items' names unless another column is: an id, or the row numbers that pandas writes.
ID_COLUMN = "id"
INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
CHUNK_ROWS = 10_000
LONGEST_CELL = 2**27  # a text may be a book


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """A text file in UTF-8, through gzip if its name ends in .gz; errors name the file."""
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
    """The file's name without what its format adds.

    Examples
    --------
    >>> stem(Path("data/news.jsonl.gz"))
    'news'
    """
    return path.name.removesuffix(".gz").rpartition(".")[0]


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
    """Whether a cell is a number (NaN and infinity are)."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_csv(path: Path, reading: Reading) -> Bunch:
    """Numbers, or texts if there is a text column; a first row with a word in it names the columns."""
    rows = csv_rows(path)
    first_line, first = next(rows)
    counted = [str(i) for i in range(len(first))]  # the names that pandas gives to nameless columns
    named = any(
        column is not None for column in (reading.text_column, reading.id_column, reading.truth_column)
    )
    is_numbered = first == counted and len(first) > 1
    has_header = named or is_numbered or not all(is_number(c) or c.strip().lower() in MISSING for c in first)
    columns = [cell.strip() for cell in first] if has_header else counted
    roles = _Roles(columns, reading, path)
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
            chunks.append(_numbers(chunk, lines, columns, roles.values, path))
            chunk = []
    if not lines:
        raise DataError(f"{str(path)!r} holds no rows below its header.")
    data: Any = texts
    if not roles.text:
        chunks.append(_numbers(chunk, lines, columns, roles.values, path)) if chunk else None
        data = np.concatenate(chunks)
        _check_cells(data, lambda row: f"line {lines[row]}", [columns[i] for i in roles.values], path)
    return _bunch(path, data, roles, ids, truth, [columns[i] for i in roles.values] if has_header else [])


def read_parquet(path: Path, reading: Reading) -> Bunch:
    """The numeric columns, or texts if there is a text column."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(
            f"Reading {str(path)!r} needs pyarrow; install it: pip install 'ddclust[parquet]'."
        ) from error
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read as a .parquet file: {reason}") from error
    if not table.num_rows:
        raise DataError(f"{str(path)!r} holds no rows.")
    roles = _Roles(table.column_names, reading, path)

    def cells(column: int) -> list[str]:
        return ["" if cell is None else str(cell) for cell in table.column(column).to_pylist()]

    left_out: list[str] = []
    names: list[str] = []
    data: Any
    if roles.text:
        data = ["\n".join(parts) for parts in zip(*map(cells, roles.text), strict=True)]
    else:
        left_out = [
            table.column_names[i] for i in roles.values if not _is_numeric(table.schema.field(i).type)
        ]
        arrays = {
            table.column_names[i]: _parquet_numbers(table.column(i), table.column_names[i], path)
            for i in roles.values
            if table.column_names[i] not in left_out
        }
        if not arrays:
            raise DataError(
                f"{str(path)!r} has no numeric column to cluster; its columns are {_listed(roles.columns)}."
            )
        for name, values in arrays.items():
            names += [name] if values.ndim == 1 else [f"{name}[{i}]" for i in range(values.shape[1])]
        data = np.column_stack(list(arrays.values()))
        _check_cells(data, lambda row: f"row {row}", names, path)
    ids = cells(roles.id) if roles.id is not None else []
    truth = cells(roles.truth) if roles.truth is not None else []
    if "" in truth:
        raise DataError(
            f"{str(path)!r}: row {truth.index('')} has no class in column {reading.truth_column!r}."
        )
    return _bunch(path, data, roles, ids, truth, names, left_out)


class _Roles:
    """Which column of a table is what."""

    def __init__(self, columns: list[str], reading: Reading, path: Path) -> None:
        self.columns = columns
        self.path = path
        self.text = [self._find(name) for name in (reading.text_column or "").split(",") if name.strip()]
        self.truth = self._find(reading.truth_column) if reading.truth_column is not None else None
        self.id = self._find(reading.id_column) if reading.id_column is not None else None
        self.guessed_id = None
        if self.id is None:
            candidates = [
                i for i, name in enumerate(columns) if name.lower() == ID_COLUMN or name in INDEX_COLUMNS
            ]
            free = (i for i in candidates if i != self.truth and i not in self.text)
            self.id = self.guessed_id = next(free, None)
        self.values = [i for i in range(len(columns)) if i not in (self.truth, self.id)]
        if (
            reading.value_columns is not None and not self.text
        ):  # those that a model was fitted on, in its order
            own = [name if name in columns else name.partition("[")[0] for name in reading.value_columns]
            self.values = [self._find(name) for name in dict.fromkeys(own)]
        if not self.values and not self.text:
            raise DataError(f"{str(path)!r} has no column left to cluster beside {_listed(columns)}.")

    def _find(self, name: str) -> int:
        name = name.strip()
        if self.columns.count(name) != 1:
            number = "several columns" if name in self.columns else "no column"
            raise DataError(
                f"{str(self.path)!r} has {number} {name!r}; its columns are {_listed(self.columns)}."
            )
        return self.columns.index(name)


def _bunch(
    path: Path,
    data: Any,
    roles: _Roles,
    ids: list[str],
    truth: list[str],
    feature_names: list[str],
    left_out: list[str] | None = None,
) -> Bunch:
    notes = []
    if roles.guessed_id is not None:
        notes.append(f"The column {roles.columns[roles.guessed_id]!r} names the items and is not clustered.")
    if left_out:
        notes.append(f"Columns that are not numeric are left out: {_listed(left_out)}.")
    target, target_names = coded(truth) if truth else (None, None)
    return make_bunch(
        data,
        target=target,
        target_names=target_names,
        item_names=ids or None,
        feature_names=feature_names if len(set(feature_names)) == len(feature_names) > 0 else None,
        name=stem(path),
        about=f"Read from {path.name}.",
        notes=notes,
    )


def _numbers(
    chunk: list[list[str]], lines: array, columns: list[str], used: list[int], path: Path
) -> NDArray[np.float64]:
    """The cells of some rows as numbers."""
    try:
        return np.array(chunk, dtype=np.float64)
    except ValueError:
        for row, line in zip(chunk, lines[-len(chunk) :], strict=True):
            for cell, column in zip(row, used, strict=True):
                if not is_number(cell):
                    what = f"holds {cell!r:.60}, which is no number" if cell.strip() else "is empty"
                    raise DataError(
                        f"{str(path)!r}: line {line}, column {columns[column]!r} {what}. If the column names the items or"
                        " their classes, or holds texts, say so (--id, --truth, --text)."
                    ) from None
        raise


def _check_cells(data: NDArray, row_name: Callable[[int], str], columns: list[str], path: Path) -> None:
    found = first_non_finite(data)
    if found is not None:
        (row, column), value = found
        raise DataError(
            f"{str(path)!r}: {row_name(row)}, column {columns[column]!r} holds {value}; remove or fill such values first."
        )


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    if _is_list(kind):
        kind = kind.value_type
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def _is_list(kind: Any) -> bool:
    """Whether a column holds lists, as embeddings are often kept."""
    import pyarrow as pa

    return any(
        check(kind) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _parquet_numbers(column: Any, name: str, path: Path) -> NDArray:
    """A column as an array; one of lists of equal length as a matrix. Nulls become NaN."""
    import pyarrow as pa

    if _is_list(column.type):
        lengths = np.array([-1 if row is None else len(row) for row in column.to_pylist()])
        odd = np.flatnonzero((lengths != lengths[0]) | (lengths < 1))
        if len(odd):
            raise DataError(
                f"{str(path)!r}: row {odd[0]}, column {name!r} holds {max(lengths[odd[0]], 0)} values, the first row"
                f" {max(lengths[0], 0)}; all must hold as many."
            )
        flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks])
        return _parquet_numbers(flat, name, path).reshape(len(lengths), -1)
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.to_numpy()


def _listed(names: list[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
