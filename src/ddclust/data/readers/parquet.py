"""Tables in .parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.columns import ColumnRoles, listed, mixed_columns, refuse_infinity, table_bunch
from ddclust.data.readers.formats import TABLE_OPTIONS, Format, ReadOptions
from ddclust.data.readers.text_files import CELL_BYTES, LINE_BYTES
from ddclust.data.tables.cells import column_of, is_plain
from ddclust.data.tables.table import arrow_values
from ddclust.storage.limits import Budget

BATCH_ROWS = 1000


def read_parquet(path: Path, options: ReadOptions) -> Bunch:
    """Numbers without gaps as an array, other columns as a Table, or texts if there is a text column."""
    try:
        return _read(path, options)
    except UnicodeDecodeError as error:  # pyarrow decodes when a text is asked for
        raise DataError(
            f"{str(path)!r} is damaged: it holds texts that are not in UTF-8; write it again."
        ) from error


def _read(path: Path, options: ReadOptions) -> Bunch:
    table = _table(path, options.budget(path))
    roles = ColumnRoles(table.column_names, options, path)

    def cells(column: int) -> list[str]:
        return ["" if cell is None else str(cell) for cell in table.column(column).to_pylist()]

    left_out: list[str] = []
    names: list[str] = []
    data: Any
    if roles.text:
        data = ["\n".join(parts) for parts in zip(*map(cells, roles.text), strict=True)]
    else:
        left_out = [
            table.column_names[i] for i in roles.values if not _can_be_clustered(table.schema.field(i).type)
        ]
        columns: dict[str, Any] = {}
        for i in roles.values:
            name = table.column_names[i]
            if name in left_out:
                continue
            values = _values(table.column(i), name, path)
            columns |= (
                {name: values}
                if np.ndim(values) == 1
                else {f"{name}[{j}]": part for j, part in enumerate(values.T)}
            )
        if not columns:
            raise DataError(
                f"{str(path)!r} has no column to cluster; its columns are {listed(roles.columns)}."
            )
        names = list(columns)
        refuse_infinity(path, _infinite(columns))
        if not options.kinds and all(map(is_plain, columns.values())):
            data = np.column_stack(list(columns.values()))
        else:
            data = mixed_columns(path, columns, options.kinds)
    ids = cells(roles.id) if roles.id is not None else []
    truth = cells(roles.truth) if roles.truth is not None else []
    if "" in truth:
        raise DataError(
            f"{str(path)!r}: row {truth.index('')} has no class in column {options.truth_column!r}."
        )
    return table_bunch(path, data, roles, ids=ids, truth=truth, feature_names=names, left_out=left_out)


PARQUET = Format((".parquet",), read_parquet, TABLE_OPTIONS)


def _table(path: Path, budget: Budget) -> Any:
    """The file as an Arrow table with at least one row."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise DataError(f"Reading {str(path)!r} needs pyarrow; run: pip install pyarrow.") from error
    try:
        texts = [field.name for field in parquet.read_schema(path) if _is_text(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            budget.check(_declared_bytes(file))
            table = pa.Table.from_batches(_counted(file, budget), file.schema_arrow)
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read as a .parquet file: {reason}") from error
    if not table.num_rows:
        raise DataError(f"{str(path)!r} holds no rows.")
    return table


def _declared_bytes(file: Any) -> int:
    """What a file says of its size: of the pages, and of the values, which may be packed.

    Only of groups of rows as a whole: in a damaged file, asking for a column can end the process.
    """
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    return sum(
        max(group.total_byte_size, CELL_BYTES * group.num_rows * group.num_columns) for group in groups
    )


def _counted(file: Any, budget: Budget) -> Iterator[Any]:
    """The rows in batches, of which each is counted: a long text may be stored once for many rows."""
    for batch in file.iter_batches(BATCH_ROWS):
        budget.spend(sum(map(_dense_bytes, batch.columns)))
        yield batch


def _dense_bytes(column: Any) -> int:
    """What a column takes, with every text as often as it occurs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
        return len(column) * LINE_BYTES + (pc.sum(lengths).as_py() or 0)
    return column.nbytes


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(check(kind) for check in checks)


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    if _is_list(kind):
        kind = kind.value_type
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def _is_list(kind: Any) -> bool:
    """Whether a column holds lists, as embeddings are often stored."""
    import pyarrow as pa

    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks)


def _can_be_clustered(kind: Any) -> bool:
    """Whether a column holds single values, or lists of numbers."""
    import pyarrow as pa

    return _is_numeric(kind) or not pa.types.is_nested(kind)


def _values(column: Any, name: str, path: Path) -> Any:
    """A column as an array of numbers, as a matrix if it holds lists, or as other values; None and NaN for gaps."""
    import pyarrow as pa

    if not _is_numeric(column.type):
        return arrow_values(column)
    if pa.types.is_boolean(column.type) and column.null_count:
        return column_of(column.to_pylist())
    return _numbers(column, name, path)


def _infinite(columns: dict[str, Any]) -> dict[str, str]:
    """The columns of numbers that hold infinity, with the first row of each."""
    return {
        name: f"row {int(np.isinf(values).argmax())}"
        for name, values in columns.items()
        if getattr(values, "dtype", np.dtype(object)).kind == "f" and np.isinf(values).any()
    }


def _numbers(column: Any, name: str, path: Path) -> NDArray:
    """A column as an array, or as a matrix if it holds lists of equal length. Nulls become NaN."""
    import pyarrow as pa

    if _is_list(column.type):
        lengths = np.array([-1 if row is None else len(row) for row in column.to_pylist()])
        odd = np.flatnonzero((lengths != lengths[0]) | (lengths < 1))
        if len(odd):
            raise DataError(
                f"{str(path)!r}: row {odd[0]}, column {name!r} holds {max(lengths[odd[0]], 0)} values, the first row"
                f" {max(lengths[0], 0)}; all rows must hold the same number."
            )
        flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks])
        return _numbers(flat, name, path).reshape(len(lengths), -1)
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.to_numpy()
