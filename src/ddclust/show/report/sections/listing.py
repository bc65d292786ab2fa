"""All items: what the script of the page lists, searches, colours by and saves as CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ddclust import pictures
from ddclust.data.tables import Table
from ddclust.data.tables.kinds import Column, DateColumn, NumberColumn, TextColumn
from ddclust.naming import sample_of_clusters
from ddclust.show.report.items import ShownItems

# The page stays small: it holds so many items at most, and so many bytes (about) of each kind of content.
LISTED_ITEMS = 100_000
TEXT_BYTES = VALUE_BYTES = PICTURE_BYTES = LARGE_BYTES = 4_000_000
LONGEST_TEXT = 4000
MOST_COLUMNS = 60
BYTES_PER_VALUE, BYTES_PER_CELL = 8, 20
LONGEST_CELL = 60
THUMBNAIL_SIDE = 64
LARGE_SIDE = 256
PIXELATED_SIDE = 28  # up to this side, pictures are enlarged pixel by pixel
PER_SHEET = 400
READ_FILES = 1000  # up to so many images, all pictures are read from their files
ROWS_AT_ONCE = 5000
NUMBERS, DAYS, LEVELS = "numbers", "days", "levels"  # ways to colour the map by a column


def listed_items(items: ShownItems, needed: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """The items that the page holds, in their order: all of them, or a sample with those that it needs."""
    sample = sample_of_clusters(items.model.labels_, LISTED_ITEMS, rng)
    return np.union1d(sample, np.union1d(items.sample, needed))


def listing(
    items: ShownItems, listed: NDArray[np.intp], shown: NDArray[np.intp], columns: NDArray[np.intp]
) -> dict[str, Any]:
    """What the page holds of the listed items.

    Shares are given in thousandths. Items without names of their own go by their numbers.

    Parameters
    ----------
    items : ShownItems
    listed : ndarray of int
    shown : ndarray of int
        The items that the page opens with, which get pictures first, and large ones.
    columns : ndarray of int
        The features in the order of what they tell; the first ones are given.
    """
    model = items.model
    shares = model.probabilities_[listed]
    second, second_share = _second_choices(shares, model.labels_[listed])
    numbers = None if len(listed) == len(model.labels_) else listed.tolist()
    content: dict[str, Any] = {
        "n": len(listed),
        "numbers": numbers,
        "cluster": model.labels_[listed].tolist(),
        "confidence": _thousandths(items.confidence[listed]),
        "second": second,
        "secondShare": second_share,
        "truth": None if items.codes is None else items.codes[listed].tolist(),
        "names": None if items.names is None else [str(items.names[i]) for i in listed.tolist()],
        "texts": None,
        "shortened": None,
        "columns": [],
        "values": [],
        "days": {},
        "colourings": [],
        "pictures": None,
    }
    if items.is_text:
        longest = min(TEXT_BYTES // len(listed), LONGEST_TEXT)
        content["texts"] = [_beginning(items.X[i], longest) for i in listed.tolist()]
        content["shortened"] = longest if any(len(text) == longest for text in content["texts"]) else None
    elif items.is_picture:
        content["pictures"] = _pictures(items, listed, shown)
    elif items.is_table:
        chosen = columns[: min(MOST_COLUMNS, VALUE_BYTES // (BYTES_PER_CELL * len(listed)))]
        used = [items.model.columns_.used[place] for place in chosen]
        content["columns"] = [
            column.heading if isinstance(column, NumberColumn) else column.name for column in used
        ]
        content["values"] = [_cells(_cells_of(column, items.X, listed)) for column in used]
        content["days"] = {
            place: _days(column, items.X.columns[column.name][listed])
            for place, column in enumerate(used)
            if isinstance(column, DateColumn)
        }
        content["colourings"] = [
            _colouring(column, values) for column, values in zip(used, content["values"], strict=True)
        ]
    else:
        chosen = columns[: min(MOST_COLUMNS, VALUE_BYTES // (BYTES_PER_VALUE * len(listed)))]
        names = items.words(listed[:1])
        content["columns"] = [names[i] for i in chosen]
        content["values"] = _values(items, listed, chosen)
        content["colourings"] = [NUMBERS for _ in chosen]
    return content


def _second_choices(
    shares: NDArray[np.float32], labels: NDArray
) -> tuple[list[int], list[int]] | tuple[None, None]:
    """The cluster with the second largest soft assignment of each item, and that assignment."""
    if shares.shape[1] < 2:
        return None, None
    others = shares.copy()
    others[np.arange(len(shares)), labels] = -1
    return others.argmax(axis=1).tolist(), _thousandths(others.max(axis=1))


def _thousandths(shares: NDArray) -> list[int]:
    return np.floor(1000 * shares.astype(np.float64) + 0.5).astype(int).tolist()


def _beginning(text: str, longest: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * longest + 1000].split())
    return line if len(line) <= longest else line[: max(longest - 1, 0)] + "…"


def _values(items: ShownItems, listed: NDArray[np.intp], columns: NDArray[np.intp]) -> list[list[float]]:
    """The values of some features, column by column, with six digits."""
    if not len(columns):
        return []
    blocks = []
    for start in range(0, len(listed), ROWS_AT_ONCE):
        block = items.vectors(listed[start : start + ROWS_AT_ONCE])[:, columns]
        is_sparse: bool = scipy.sparse.issparse(block)
        blocks.append(block.toarray() if is_sparse else block)
    table = np.concatenate(blocks).astype(np.float64)
    return [[_short(value) for value in column] for column in table.T.tolist()]


def _cells_of(column: Column, table: Table, listed: NDArray[np.intp]) -> list[float | str | None]:
    """The listed cells of a column: numbers without the unit that they share, all others as they are."""
    if not isinstance(column, NumberColumn):
        return table.cells(column.name, listed)
    numbers = column.numbers(table.columns[column.name][listed])
    return [None if number != number else number for number in numbers.tolist()]


def _cells(cells: list[float | str | None]) -> list[float | str | None]:
    """Cells of a table, shortened; None for gaps."""
    return [
        _beginning(cell, LONGEST_CELL) if isinstance(cell, str) else None if cell is None else _short(cell)
        for cell in cells
    ]


def _days(column: DateColumn, values: NDArray) -> list[int | None]:
    """The dates of a column as days since 1970; None for gaps."""
    return [None if day != day else int(day // 1) for day in column.days(values).tolist()]


def _colouring(column: Column, cells: list[float | str | None]) -> str | None:
    """How the map is coloured by a column of a table; None for texts, of which hardly two are the same."""
    if isinstance(column, DateColumn):
        return DAYS
    if isinstance(column, TextColumn):
        return None
    return LEVELS if any(isinstance(cell, str) for cell in cells) else NUMBERS


def _short(value: float) -> float:
    """A number as JSON writes it shortly: whole numbers without a fraction, others with six digits."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.6g}")


def _pictures(items: ShownItems, listed: NDArray[np.intp], shown: NDArray[np.intp]) -> dict[str, Any]:
    """Sheets of small pictures of as many items as the page may hold, and larger ones of those it opens with.

    ``items`` gives the places in the listing of the pictures on the sheets, one after the other.
    """
    first = np.union1d(shown, items.sample)
    rest = np.setdiff1d(listed, first)
    order = np.concatenate([first, np.random.default_rng(0).permutation(rest)])
    from_files = len(listed) <= READ_FILES
    sheets: list[str] = []
    size = height = width = 0
    for start in range(0, len(order), PER_SHEET):
        small = items.pictures(order[start : start + PER_SHEET], THUMBNAIL_SIDE, from_files=from_files)
        height, width = small.shape[1:3]
        sheet = pictures.data_uri(pictures.sprite(small, pictures.columns_for(PER_SHEET)))
        size += len(sheet)
        if sheets and size > PICTURE_BYTES:
            break
        sheets.append(sheet)
    pictured = order[: PER_SHEET * len(sheets)]
    return {
        "width": width,
        "height": height,
        "pixelated": max(height, width) <= PIXELATED_SIDE,
        "columns": pictures.columns_for(PER_SHEET),
        "perSheet": PER_SHEET,
        "sheets": sheets,
        "items": np.searchsorted(listed, pictured).tolist(),
        "large": _large_pictures(items, listed, shown, max(height, width)),
    }


def _large_pictures(
    items: ShownItems, listed: NDArray[np.intp], shown: NDArray[np.intp], small_side: int
) -> dict[int, str]:
    """Larger pictures of some items, by their places in the listing, where there are any."""
    found: dict[int, str] = {}
    size = 0
    for index in shown.tolist():
        picture = items.pictures(np.array([index]), LARGE_SIDE, from_files=True)[0]
        if max(picture.shape[:2]) <= small_side:
            return {}
        uri = pictures.data_uri(picture)
        size += len(uri)
        if size > LARGE_BYTES:
            break
        found[int(np.searchsorted(listed, index))] = uri
    return found
