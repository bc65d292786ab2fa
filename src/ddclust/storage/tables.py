"""Tables as CSV text that any reader takes apart again, whatever the names in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""CSV with a line for each row; cells with commas, quotes, or line breaks of any kind are quoted.

    Examples
    --------
    >>> csv_text(("item", "cluster"), [("a\rb", 0)])
    'item,cluster\n"a\rb",0\n'
    """
    return "".join(_line(row) for row in (header, *rows))


def _line(row: Sequence[Any]) -> str:
    # Python before 3.13 quotes only the line breaks of its own line terminator.
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(row)
    return text.getvalue().removesuffix("\r\n") + "\n"
