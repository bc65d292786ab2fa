"""RESULTS.md, from the results alone."""

from __future__ import annotations

from ddclust.experiments._runner import Place


def write_page(place: Place) -> None:
    """Placeholder."""
