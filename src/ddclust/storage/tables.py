"""Tables as CSV text that any reader takes apart again, whatever the names in them, and no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Where a spreadsheet may see a formula begin (OWASP, CSV injection): at the start of a cell, or after what it may take
# for the end of one, as it does with semicolons in many countries. Quotes in front of it count as part of it.
_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"  # the last four are the wide forms of the others
_START = rf"^(?=['\"]*[{_SIGNS}\t\r\n])|(?<=[;\t\r\n])(?=['\"]*[{_SIGNS}])"
_FORMULA, _ESCAPED = re.compile(_START), re.compile(f"(?:{_START})'")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LINE_END = "\r\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]], *, exact: bool = False) -> str:
    r"""CSV with a line for each row; cells with commas, quotes, or line breaks of any kind are quoted.

    What a spreadsheet would take for a formula gets a single quote in front; :func:`name_in` removes it. With ``exact``,
    for data that other programs read, cells stay as they are.

    Examples
    --------
    >>> csv_text(("item", "cluster"), [("a\rb", 0), ("=1+1", -1)])
    'item,cluster\n"a\rb",0\n\'=1+1,-1\n'
    """
    return "".join(_line(row if exact else _harmless_row(row)) for row in (header, *rows))


def name_in(cell: str) -> str:
    """The name in a cell that :func:`csv_text` wrote.

    Examples
    --------
    >>> name_in("'=1+1"), name_in("-1"), name_in("'tis")
    ('=1+1', '-1', "'tis")
    """
    return _ESCAPED.sub("", cell)


def _line(row: Iterable[Any]) -> str:
    # Python before 3.13 quotes only the line breaks of its own line terminator.
    text = io.StringIO()
    csv.writer(text, lineterminator=_LINE_END).writerow(list(row))
    return text.getvalue().removesuffix(_LINE_END) + "\n"


def _harmless_row(row: Sequence[Any]) -> list[Any]:
    """A row that no spreadsheet runs, whatever it takes for the end of a cell.

    Numbers stay as they are. A number in a text at the start of the row does not: where the comma ends no cell, it is the
    start of a cell that holds the whole row, and its sign that of a formula.
    """
    return [
        _FORMULA.sub("'", cell) if _may_be_formula(cell, first=place == 0) else cell
        for place, cell in enumerate(row)
    ]


def _may_be_formula(cell: Any, *, first: bool) -> bool:
    return isinstance(cell, str) and (first or not _NUMBER.fullmatch(cell))
