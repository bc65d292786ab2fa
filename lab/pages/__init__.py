"""The pages that are written from the results on disk."""

from __future__ import annotations

from pathlib import Path

from lab.pages.benchmarks import write_benchmarks
from lab.pages.defaults import write_defaults
from lab.pages.restarts import write_restarts
from lab.pages.results import write_results
from lab.pages.selection import write_selection
from lab.paths import Place


def write_pages(place: Place) -> list[Path]:
    """Write all pages, each from the files alone. A study's page is written once there are results of it."""
    write_results(place)
    written = [place.results_page]
    for page, write in {
        place.study_page("defaults"): write_defaults,
        place.study_page("restarts"): write_restarts,
        place.study_page("selection"): write_selection,
        place.benchmarks_page: write_benchmarks,
    }.items():
        if write(place):
            written.append(page)
    return written
