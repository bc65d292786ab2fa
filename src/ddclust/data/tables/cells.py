"""The cells of a column: numbers with NaN, dates with NaT, or words with None for what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = {"", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "-", "?", "<na>"}
TRUE_WORDS = {"true": "false", "yes": "no", "t": "f", "y": "n"}  # with their opposites

ISO, COMPACT = "ISO 8601", "%Y%m%d"
_ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|[+-]\d{2}:?\d{2}))?)?)?")
_DAYS = (
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d %Y",
    "%b %d, %Y",
    "%B %d, %Y",
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
# In the order in which they are tried.
DATE_FORMATS = (ISO, COMPACT, *(day + time for day in _DAYS for time in _TIMES))
_COMPACT_DATE = re.compile(r"(17|18|19|20|21)\d{6}")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+|[+-]?\d{1,3}(\.\d{3})+|[+-]?\d+")


def column_of(values: Any) -> NDArray:
    """Values of any kind as a column: float64, datetime64 or an object array of texts and None.

    Examples
    --------
    >>> column_of([1, None, 2.5]).tolist(), column_of(["a", " NA ", True]).tolist()
    ([1.0, nan, 2.5], ['a', None, 'True'])
    """
    found = values if isinstance(values, np.ndarray) else np.asarray(_objects(values))
    kind = found.dtype.kind
    if kind in "iuf":
        return found.astype(np.float64)
    if kind == "M":
        return found.astype("datetime64[us]")
    if kind == "m":
        return np.where(np.isnat(found), np.nan, found / np.timedelta64(1, "s"))
    cells = [_plain(cell) for cell in found.tolist()]
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, float) for cell in present):
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    if present and all(isinstance(cell, datetime) for cell in present):
        return np.array(cells, dtype="datetime64[us]")
    return _objects([None if cell is None else _word(cell) for cell in cells])


def is_plain(values: Any) -> bool:
    """Whether values are numbers, or booleans, without gaps."""
    found = values if isinstance(values, np.ndarray) else np.asarray(_objects(values))
    if found.dtype.kind in "biu":
        return True
    if found.dtype.kind == "f":
        return not np.isnan(found).any()
    is_object = found.dtype.kind == "O"
    return is_object and all(_is_number(cell) and cell == cell for cell in found.tolist())


def gaps_in(column: NDArray) -> NDArray[np.bool_]:
    """Where a column has no value."""
    if column.dtype.kind == "O":
        return np.array([cell is None for cell in column], dtype=bool)
    return np.isnat(column) if column.dtype.kind == "M" else np.isnan(column)


def words_in(column: NDArray) -> NDArray:
    """A column as texts, None where it has a gap; whole numbers have no fraction.

    Examples
    --------
    >>> words_in(np.array([1.0, 2.5, np.nan])).tolist()
    ['1', '2.5', None]
    """
    if column.dtype.kind == "O":
        return column
    cells = (None if gap else cell for gap, cell in zip(gaps_in(column), column.tolist(), strict=True))
    return _objects([None if cell is None else _word(cell) for cell in cells])


def dates_in(column: NDArray, form: str) -> NDArray[np.datetime64]:
    """A column as dates in a format, NaT where it has a gap or something else."""
    if column.dtype.kind == "M":
        return column
    if column.dtype.kind == "f" and form != COMPACT:
        return np.full(len(column), "NaT", dtype="datetime64[us]")
    column = words_in(column)
    parsed = {word: parsed_date(word, form) for word in set(column.tolist()) if word is not None}
    return np.array([parsed.get(word) for word in column], dtype="datetime64[us]")


def parsed_date(word: str, form: str) -> datetime | None:
    """The date in a word; None if there is none in this format."""
    word = word.strip()
    try:
        if form == COMPACT and not _COMPACT_DATE.fullmatch(word):
            return None
        if form != ISO:
            return datetime.strptime(word, form)
        if not _ISO_DATE.fullmatch(word):
            return None
        return _without_zone(datetime.fromisoformat(word if len(word) > len("2024-01") else f"{word}-01"))
    except (ValueError, OverflowError):  # the latter of the first and last days, in another zone
        return None


def decimal_comma_numbers(words: Sequence[str | None]) -> NDArray[np.float64] | None:
    """Words such as 1.234,5 as numbers, NaN for gaps; None if there is anything else.

    Examples
    --------
    >>> decimal_comma_numbers(["1.234,5", None, "-2"]).tolist(), decimal_comma_numbers(["1.5"]) is None
    ([1234.5, nan, -2.0], True)
    """
    for word in set(words) - {None}:
        if not _DECIMAL_COMMA.fullmatch(str(word).strip()):
            return None
    return np.array(
        [np.nan if word is None else float(word.replace(".", "").replace(",", ".")) for word in words]
    )


def is_missing(cell: str) -> bool:
    """Whether a cell of a file says that there is no value."""
    return cell.strip().lower() in MISSING


def _plain(cell: Any) -> Any:
    """A cell as a float, a datetime, a text or another object; None if it is missing."""
    if cell is None or (isinstance(cell, str) and is_missing(cell)):
        return None
    if isinstance(cell, str):
        return cell
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if _is_number(cell):
        try:
            return None if cell != cell else float(cell)
        except OverflowError:
            raise ValueError("holds a number beyond the range of floating-point numbers") from None
    if isinstance(cell, timedelta):
        return None if cell != cell else cell.total_seconds()
    if isinstance(cell, datetime):
        try:
            return None if cell != cell else _without_zone(cell)
        except OverflowError:
            raise ValueError(f"holds {cell}, which is no date in UTC") from None
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, (list, tuple, dict, np.ndarray)):
        raise ValueError(f"holds {type(cell).__name__}s; make a column of each of their values, or drop it")
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    word = str(cell)  # such as pandas' periods and intervals
    return None if is_missing(word) else word


def _word(cell: Any) -> str:
    """A cell as a text."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime):
        return (
            cell.date().isoformat()
            if cell == datetime(cell.year, cell.month, cell.day)
            else cell.isoformat(" ")
        )
    return str(cell)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float, np.number, Decimal)) and not isinstance(cell, (np.timedelta64,))


def _without_zone(moment: datetime) -> datetime:
    """The same moment in UTC."""
    moment = datetime(
        *moment.timetuple()[:6], moment.microsecond, tzinfo=moment.tzinfo
    )  # of pandas' own class
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _objects(cells: Iterable[Any]) -> NDArray:
    """Objects as a one-dimensional array, whatever they are."""
    cells = list(cells)
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found
