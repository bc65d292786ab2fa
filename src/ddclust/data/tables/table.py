"""A table with named columns of any kind, from data frames and files alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.data.tables.cells import column_of, is_plain, words_in


class Table:
    """A table whose columns may hold numbers with gaps, words, dates or texts.

    Data frames need not be wrapped: ``DDC.fit`` takes them directly. A Table says what a column is where the guess is
    wrong.

    Parameters
    ----------
    data : data frame (pandas, polars, Arrow) or mapping of str to sequences
    kinds : mapping of str to str, optional
        What some of the columns are: "number", "category", "boolean", "date", "text", or "id" for those to leave out.

    Examples
    --------
    >>> table = Table({"zip": [8001, 8002, 8001], "mass": [1.5, None, 2.0]}, kinds={"zip": "category"})
    >>> table.shape, table.names
    ((3, 2), ('zip', 'mass'))
    """

    dtype = "table"

    def __init__(self, data: Any, kinds: Mapping[str, str] | None = None) -> None:
        self.columns: dict[str, NDArray] = {}
        for name, values in _named_columns(data):
            if name in self.columns:
                raise ValueError(f"X has several columns {name!r}; rename them.")
            try:
                self.columns[name] = column_of(values)
            except ValueError as error:
                raise ValueError(f"The column {name!r} {error}.") from error
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("The columns of X differ in length.")
        self.kinds = dict(kinds or {})
        unknown = [name for name in self.kinds if name not in self.columns]
        if unknown:
            raise ValueError(f"kinds names {unknown[0]!r}, but X has no such column.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, rows: Any) -> Table:
        """Some of the rows."""
        some = object.__new__(Table)  # its columns are what they should be
        some.columns = {name: column[rows] for name, column in self.columns.items()}
        some.kinds = self.kinds
        return some

    def sha256(self) -> str:
        """A digest of all values, with names and kinds."""
        digest = hashlib.sha256(f"table {self.shape} {sorted(self.kinds.items())}".encode())
        for name, column in self.columns.items():
            digest.update(f" {name!r} {column.dtype.str} ".encode("utf-8", "backslashreplace"))
            if column.dtype.kind != "O":
                digest.update(
                    np.ascontiguousarray(column).data.cast("B")
                    if column.dtype.kind == "f"
                    else column.tobytes()
                )
                continue
            for word in column:
                encoded = b"" if word is None else word.encode("utf-8", "surrogatepass")
                digest.update(f" {-1 if word is None else len(encoded)} ".encode() + encoded)
        return digest.hexdigest()

    def cells(self, name: str, rows: NDArray[np.intp]) -> list[float | str | None]:
        """Some cells of a column to show: numbers as they are, all others as texts, None for gaps."""
        column = self.columns[name][rows]
        if column.dtype.kind == "f":
            return [None if value != value else value for value in column.tolist()]
        return words_in(column).tolist()


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: of pandas, polars or Arrow, or any other with the interchange protocol."""
    return hasattr(X, "__dataframe__") and not hasattr(X, "indptr")


def mixed_table(X: Any) -> Table | None:
    """A data frame with anything but numbers without gaps as a Table; None for all other data.

    Examples
    --------
    >>> import pandas
    >>> mixed_table(pandas.DataFrame({"a": [1, 2]})) is None, mixed_table(pandas.DataFrame({"a": [1, None]})).shape
    (True, (2, 1))
    """
    if isinstance(X, Table):
        return X
    if not is_frame(X) or all(is_plain(values) for _, values in _named_columns(X)):
        return None
    return Table(X)


def as_table(X: Any, names: Sequence[str]) -> Table:
    """Data for a model of tables: a data frame, or rows of values in the order of ``names``."""
    if isinstance(X, Table):
        return X
    if is_frame(X) or isinstance(X, Mapping):
        return Table(X)
    rows = np.asarray(X, dtype=object)
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise ValueError(
            f"X has shape {rows.shape}, but the model was fitted on a table of {len(names)} columns; give a data frame"
            " with these columns."
        )
    return Table(dict(zip(names, rows.T, strict=True)))


def _named_columns(data: Any) -> Iterator[tuple[str, Any]]:
    """(name, values) of every column, one at a time."""
    if isinstance(data, Mapping):
        yield from ((str(name), values) for name, values in data.items())
    elif hasattr(data, "column_names"):  # Arrow
        for name, column in zip(data.column_names, data.columns, strict=True):
            yield str(name), arrow_values(column)
    elif hasattr(data, "get_columns"):  # polars
        for column in data.get_columns():
            yield column.name, column.to_numpy()
    elif hasattr(data, "iloc"):  # pandas
        for place, name in enumerate(data.columns):
            yield str(name), _pandas_values(data.iloc[:, place])
    elif is_frame(data):
        from pandas.api.interchange import from_dataframe

        yield from _named_columns(from_dataframe(data))
    else:
        raise TypeError(
            f"A Table is made of a data frame or a mapping of columns, not of a {type(data).__name__}."
        )


def arrow_values(column: Any) -> Any:
    """The values of an Arrow column."""
    kind = str(column.type)
    if kind.startswith(("dictionary", "time", "date", "decimal")) and not kind.startswith("timestamp"):
        return column.to_pylist()
    return column.to_numpy()


def _pandas_values(column: Any) -> Any:
    kind = str(column.dtype)
    if kind.startswith("Sparse"):
        return np.asarray(column)
    if kind.startswith("datetime64") and getattr(column.dtype, "tz", None) is not None:
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    is_nullable = not isinstance(column.dtype, np.dtype)
    if is_nullable and column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if is_nullable and column.dtype.kind == "b":
        return column.to_numpy(
            dtype=object if column.hasnans else bool, **({"na_value": None} if column.hasnans else {})
        )
    return column.to_numpy()
