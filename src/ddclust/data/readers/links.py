"""Pairs of items, named in a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.delimited import csv_rows
from ddclust.data.readers.formats import budget_of
from ddclust.storage.tables import name_in


class ItemPlaces:
    """Positions of items by name or, unless some names are numbers themselves, by number, counted from 0.

    Names may also be given as they are in labels.csv, where formulas are escaped.

    Examples
    --------
    >>> places = ItemPlaces(["a.png", "b.png"])
    >>> places["b.png"], places["0"]
    (1, 0)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.by_name: dict[str, int] = {}
        for place, name in enumerate(names):
            self.by_name.setdefault(name, place)
        self.numbered = not any(name.isdecimal() for name in self.by_name)

    def __contains__(self, item: str) -> bool:
        is_short = len(item) <= len(str(len(self.names)))  # int refuses thousands of digits
        is_number = self.numbered and is_short and item.isdecimal() and int(item) < len(self.names)
        return item in self.by_name or name_in(item) in self.by_name or is_number

    def __getitem__(self, item: str) -> int:
        if item not in self:
            way = ", and items are numbered from 0" if self.numbered else ""
            raise DataError(
                f"There is no item {item!r:.60}; the first of the {len(self.names):,} items is called"
                f" {self.names[0]!r}{way}."
            )
        name = item if item in self.by_name else name_in(item)
        return self.by_name[name] if name in self.by_name else int(item)


def read_pairs(
    path: str | os.PathLike[str], item_names: Sequence[str], *, max_bytes: float | None = None
) -> NDArray[np.intp]:
    """Positions of pairs of items, from a table with two columns of names.

    Parameters
    ----------
    path : str or path-like
        A ``.csv`` or ``.tsv`` file. The first row is a header if neither of its cells is an item.
    item_names : sequence of str
        The names of all items, in order.
    max_bytes : float, optional
        The most memory that reading may take, as for :func:`ddclust.datasets.load`.

    Returns
    -------
    ndarray of shape (m, 2)
    """
    path, places = Path(path), ItemPlaces(item_names)
    rows = list(csv_rows(path, budget_of(path, max_bytes)))
    line, first = rows[0]
    if len(first) != 2:
        raise DataError(f"{str(path)!r} must have two columns of items, but it has {len(first)}.")
    if not any(cell.strip() in places for cell in first):
        rows = rows[1:]
    several = {name for name, count in Counter(item_names).items() if count > 1}
    pairs = np.empty((len(rows), 2), dtype=np.intp)
    for row, (line, cells) in enumerate(rows):
        for end, cell in enumerate(cells):
            name = cell.strip()
            if name in several:
                raise DataError(
                    f"{str(path)!r}: line {line} names {name!r}, but several items are called that."
                )
            try:
                pairs[row, end] = places[name]
            except DataError as error:
                raise DataError(f"{str(path)!r}: line {line}: {error}") from error
    return pairs
