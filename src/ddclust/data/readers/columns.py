"""The columns of a table: which one names the items, which ones are clustered, and the Bunch made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, coded, make_bunch
from ddclust.data.readers.formats import ReadOptions
from ddclust.data.readers.text_files import stem
from ddclust.data.tables import Table
from ddclust.data.tables.cells import gaps_in, words_in
from ddclust.data.tables.guess import guessed_kind, is_called_id, looks_like_id

# Taken as the items' names unless another column is given: an id, or the row numbers that pandas writes.
ID_COLUMN = "id"
SHOWN_PROBLEMS = 10
MOST_CHECKED = 200  # columns that are looked at for ids
INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")


class ColumnRoles:
    """The positions of the columns with texts, names, classes and values."""

    def __init__(self, columns: list[str], options: ReadOptions, path: Path) -> None:
        self.columns = columns
        self.path = path
        self.text = [self._find(name) for name in (options.text_column or "").split(",") if name.strip()]
        self.truth = self._find(options.truth_column) if options.truth_column is not None else None
        self.id = self._find(options.id_column) if options.id_column is not None else None
        self.guessed_id = None
        if self.id is None:
            candidates = [
                i
                for i, name in enumerate(columns)
                if name.lower() == ID_COLUMN or name in (*INDEX_COLUMNS, options.likely_id)
            ]
            free = (i for i in candidates if i != self.truth and i not in self.text)
            self.id = self.guessed_id = next(free, None)
        dropped = {self._find(name) for name in options.drop_columns}
        self.values = [i for i in range(len(columns)) if i not in {self.truth, self.id, *dropped}]
        if options.value_columns is not None and not self.text:
            # "embedding[3]" is a value of the column "embedding".
            own = [name if name in columns else name.partition("[")[0] for name in options.value_columns]
            wanted = [self._find(name) for name in dict.fromkeys(own)]
            self.values = [i for i in wanted if i not in dropped]
        for name in options.kinds or ():
            self._find(name if name in columns else name.partition("[")[0])
        if not self.values and not self.text:
            raise DataError(f"{str(path)!r} has no column left to cluster besides {listed(columns)}.")

    def _find(self, name: str) -> int:
        name = name.strip()
        if self.columns.count(name) != 1:
            number = "several columns" if name in self.columns else "no column"
            raise DataError(
                f"{str(self.path)!r} has {number} {name!r}; its columns are {listed(self.columns)}."
            )
        return self.columns.index(name)


def table_bunch(
    path: Path,
    data: Any,
    roles: ColumnRoles,
    *,
    ids: list[str],
    truth: list[str],
    feature_names: list[str],
    left_out: list[str] | None = None,
    said: Sequence[str] = (),
) -> Bunch:
    """The Bunch of a table; notes say which columns the reader chose or left out by itself."""
    notes = list(said)
    named_by = naming_column(data) if isinstance(data, Table) and not ids else None
    if named_by is not None:
        ids = words_in(data.columns[named_by]).tolist()
        notes.append(f"The column {named_by!r} names the items and is not clustered.")
    if roles.guessed_id is not None:
        notes.append(f"The column {roles.columns[roles.guessed_id]!r} names the items and is not clustered.")
    if left_out:
        notes.append(f"Columns of lists or records are left out: {listed(left_out)}.")
    if isinstance(data, np.ndarray) and len(feature_names) in range(1, MOST_CHECKED):
        ids_too = [
            name for name, column in zip(feature_names, data.T, strict=True) if looks_like_id(name, column)
        ]
        if ids_too:
            notes.append(
                f"{listed(ids_too)} may only count the rows, but is clustered; drop_columns leaves it out."
            )
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


def naming_column(table: Table) -> str | None:
    """The first column that is called an id, such as "customer id", if it calls every row by another name.

    Examples
    --------
    >>> from ddclust.data.tables.cells import column_of
    >>> ids = column_of([f"C{i}" for i in range(99)])
    >>> naming_column(Table({"age": column_of([3] * 99), "customer id": ids}, {}))
    'customer id'
    """
    for name, column in table.columns.items():
        if not is_called_id(name) or gaps_in(column).any():
            continue
        words = words_in(column).tolist()
        kind = table.kinds.get(name) or guessed_kind(name, column)
        if kind.removeprefix("an ").startswith(ID_COLUMN) and len(set(words)) == len(words) > 1:
            return name
    return None


def refuse_infinity(path: Path, places: Mapping[str, str]) -> None:
    """An error that names every column that holds infinity, with the first place, if there is any."""
    if places:
        words = "; ".join(f"{column!r} in {place}" for column, place in list(places.items())[:SHOWN_PROBLEMS])
        more = f"; and {len(places) - SHOWN_PROBLEMS} more" if len(places) > SHOWN_PROBLEMS else ""
        raise DataError(
            f"{str(path)!r} holds infinite numbers: column {words}{more}. Leave such cells empty, or leave the column out"
            " (drop_columns)."
        )


def mixed_columns(path: Path, columns: dict[str, Any], kinds: Mapping[str, str] | None) -> Table:
    """Columns of any kind as a Table; kinds of columns that it does not have are left out."""
    own = {name: kind for name, kind in (kinds or {}).items() if name in columns}
    try:
        return Table(columns, own)
    except ValueError as error:
        raise DataError(f"{str(path)!r}: {error}") from error


def listed(names: list[str], most: int = 20) -> str:
    """The first names, separated by commas."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
