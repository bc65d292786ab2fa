"""Tables in .parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.columns import ColumnRoles, check_cells, listed, table_bunch
from ddclust.data.readers.formats import COLUMN_OPTIONS, Format, ReadOptions


def read_parquet(path: Path, options: ReadOptions) -> Bunch:
    """The numeric columns, or the texts if there is a text column."""
    table = _table(path)
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
            table.column_names[i] for i in roles.values if not _is_numeric(table.schema.field(i).type)
        ]
        arrays = {
            table.column_names[i]: _numbers(table.column(i), table.column_names[i], path)
            for i in roles.values
            if table.column_names[i] not in left_out
        }
        if not arrays:
            raise DataError(
                f"{str(path)!r} has no numeric column to cluster; its columns are {listed(roles.columns)}."
            )
        for name, values in arrays.items():
            names += [name] if values.ndim == 1 else [f"{name}[{i}]" for i in range(values.shape[1])]
        data = np.column_stack(list(arrays.values()))
        check_cells(data, lambda row: f"row {row}", names, path)
    ids = cells(roles.id) if roles.id is not None else []
    truth = cells(roles.truth) if roles.truth is not None else []
    if "" in truth:
        raise DataError(
            f"{str(path)!r}: row {truth.index('')} has no class in column {options.truth_column!r}."
        )
    return table_bunch(path, data, roles, ids=ids, truth=truth, feature_names=names, left_out=left_out)


PARQUET = Format((".parquet",), read_parquet, COLUMN_OPTIONS)


def _table(path: Path) -> Any:
    """The file as an Arrow table with at least one row."""
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
    return table


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
