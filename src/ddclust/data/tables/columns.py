"""All columns of a table: described once in the fit, found by name in any other table, saved as JSON and arrays."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ddclust.data.tables.guess import described_column
from ddclust.data.tables.kinds import COLUMN_KINDS, Column, LeftOutColumn, TextColumn, Trait
from ddclust.data.tables.table import Table
from ddclust.storage.json_files import checked

MOST_NAMED = 5


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are, and how they become vectors.

    ``print`` shows a line for each.

    Examples
    --------
    >>> table = Table({"mass": [1.5, None, 2.0, 4.0], "sex": ["m", "f", "f", "m"], "land": ["x"] * 4})
    >>> columns = Columns.of(table)
    >>> print(columns)
    column  kind      what is done                              gaps
    mass    number    standardised; gaps become 2, with a flag  1 (25 %)
    sex     category  2 levels: f, m
    land    left out  left out: the same everywhere
    >>> columns.encode(table).shape
    (4, 4)
    """

    described: tuple[Column, ...]
    n_rows: int

    @classmethod
    def of(cls, table: Table, language: str = "auto") -> Self:
        """What the columns of a table are: as its ``kinds`` say, or guessed."""
        described = tuple(
            described_column(name, values, table.kinds.get(name), language)
            for name, values in table.columns.items()
        )
        found = cls(described, len(table))
        if not found.used:
            if not described:
                raise ValueError("X has no columns.")
            reasons = "; ".join(f"{column.name!r} is {column.done}" for column in described[:MOST_NAMED])
            more = "; ..." if len(described) > MOST_NAMED else ""
            raise ValueError(
                f"No column of X can be clustered: {reasons}{more}. If one should be, say what it is by kinds=..."
            )
        return found

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that are clustered."""
        return tuple(column for column in self.described if not isinstance(column, LeftOutColumn))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.described)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column that is clustered."""
        return {column.name: column.kind for column in self.used}

    @property
    def features(self) -> NDArray[np.object_]:
        """The names of the features that the columns become."""
        return np.array([name for column in self.used for name in column.features], dtype=object)

    def encode(self, table: Table) -> NDArray[np.float32]:
        """The rows of a table as vectors. Its columns are found by their names; others are ignored."""
        self._refuse_missing(table)
        parts = [column.encode(table.columns[column.name]) for column in self.used]
        return np.hstack(parts).astype(np.float32)

    def traits(self, table: Table) -> list[Trait]:
        """What can set rows apart, in terms of the columns."""
        return [trait for column in self.used for trait in column.traits(table.columns[column.name])]

    def rows(self) -> list[tuple[str, str, str, str]]:
        """(name, kind, what is done, gaps) of each column."""
        return [(column.name, column.kind, column.done, self._gaps(column)) for column in self.described]

    def __str__(self) -> str:
        shown = [("column", "kind", "what is done", "gaps")]
        shown += [tuple(_on_one_line(cell) for cell in row) for row in self.rows()]  # type: ignore[misc]
        widths = [max(_width(row[place]) for row in shown) for place in range(4)]
        return "\n".join(
            "  ".join(
                cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in shown
        )

    def to_plain(self) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]]]:
        """The description as JSON, and arrays by name."""
        plain: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[np.float64]] = {}
        for place, column in enumerate(self.described):
            names = _array_names(type(column))
            own = {f.name: getattr(column, f.name) for f in fields(column) if f.name not in names}
            plain.append({"kind": column.kind, **own})
            arrays |= {f"{place}.{name}": getattr(column, name) for name in names}
        return {"n_rows": self.n_rows, "described": plain}, arrays

    @classmethod
    def from_plain(cls, plain: Any, arrays: Mapping[str, NDArray[np.float64]]) -> Self:
        """What :meth:`to_plain` gave, checked."""
        described = []
        for place, own in enumerate(plain["described"]):
            kind = COLUMN_KINDS.get(own["kind"])
            if kind is None:
                raise ValueError(f"{own['kind']!r:.60} is no kind of column.")
            parts = {name: arrays[f"{place}.{name}"] for name in _array_names(kind)}
            column = _from_fields(kind, {name: value for name, value in own.items() if name != "kind"}, parts)
            described.append(column)
        if len({column.name for column in described}) < len(described):
            raise ValueError("Two columns have the same name.")
        n_rows = checked(plain["n_rows"], int, what="n_rows", remedy="save the model again")
        found = cls(tuple(described), max(n_rows, 1))
        if not all(0 <= column.gaps <= found.n_rows for column in described):
            raise ValueError("A column has another number of gaps than rows.")
        if not found.used:
            raise ValueError("No column is clustered.")
        return found

    def _gaps(self, column: Column) -> str:
        share = 100 * column.gaps / self.n_rows
        return f"{column.gaps:,} ({'below 1' if share < 1 else round(share)} %)" if column.gaps else ""

    def _refuse_missing(self, table: Table) -> None:
        missing = [column.name for column in self.used if column.name not in table.columns]
        if missing:
            shown = ", ".join(map(repr, missing[:MOST_NAMED])) + (
                ", ..." if len(missing) > MOST_NAMED else ""
            )
            raise ValueError(
                f"X lacks {'a column' if len(missing) == 1 else f'{len(missing)} columns'} of the fit: {shown}; add"
                " them, possibly empty."
            )


def _array_names(kind: type) -> tuple[str, ...]:
    return kind.ARRAYS if issubclass(kind, TextColumn) else ()


def _from_fields(kind: type, own: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """A description from its fields, whose types are checked."""
    schema = {f.name: f.type for f in fields(kind) if f.name not in arrays}
    optional = {f.name for f in fields(kind) if f.default is not MISSING}  # of models of earlier versions
    unknown = (own.keys() ^ schema.keys()) - (optional - own.keys())
    if unknown:
        raise ValueError(f"The description of a column lacks or has too much: {sorted(unknown)[0]!r:.60}.")
    typed = {
        name: checked(
            own[name], _TYPES[schema[name]], what=f"{name} of a column", remedy="save the model again"
        )
        for name in own
    }
    return kind(**typed, **arrays)


# The types that fields of descriptions have, by their names.
_TYPES: dict[Any, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "tuple[str, ...]": tuple[str, ...],
    "tuple[float, ...]": tuple[float, ...],
}


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: two for a Chinese, Japanese or Korean character, none for a mark.

    Examples
    --------
    >>> _width("cafe\u0301"), _width("\u6771\u4eac")
    (4, 4)
    """
    marks = sum(unicodedata.combining(letter) != 0 for letter in text)
    return len(text) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text) - marks


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
