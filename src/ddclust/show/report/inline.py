"""The report inside a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass


@dataclass(frozen=True)
class InlineReport:
    """A report that a notebook shows in the output of its cell, in a frame that has no access to the notebook.

    Parameters
    ----------
    page : str
        From :func:`report_page`.
    height : int, default=700
        Of the frame, in pixels.

    Examples
    --------
    >>> InlineReport("<h1>Clusters</h1>")
    InlineReport(page of 17 characters)
    """

    page: str
    height: int = 700

    def __repr__(self) -> str:
        return f"InlineReport(page of {len(self.page):,} characters)"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" title="Report" sandbox="allow-scripts allow-downloads"'
            f' style="width:100%;height:{self.height}px;border:0"></iframe>'
        )
