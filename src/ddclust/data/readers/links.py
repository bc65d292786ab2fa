"""Items that are named in files, and pairs of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.tables import csv_rows


class ItemPlaces:
    """Places of items by their names or, where names are not numbers themselves, by their numbers from 0.

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
        return item in self.by_name or (self.numbered and item.isdecimal() and int(item) < len(self.names))

    def __getitem__(self, item: str) -> int:
        if item not in self:
            way = ", and they are numbered from 0" if self.numbered else ""
            raise DataError(
                f"There is no item {item!r}; the first of the {len(self.names):,} items is called"
                f" {self.names[0]!r}{way}."
            )
        return self.by_name[item] if item in self.by_name else int(item)


def read_pairs(path: str | os.PathLike[str], item_names: Sequence[str]) -> NDArray[np.intp]:
    """Positions of the pairs of items, (m, 2), in a .csv or .tsv file with two columns of names.

    A first row of which neither cell is an item is a header.
    """
    path, places = Path(path), ItemPlaces(item_names)
    rows = list(csv_rows(path))
    line, first = rows[0]
    if len(first) != 2:
        raise DataError(f"{str(path)!r} must have two columns of items, it has {len(first)}.")
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
