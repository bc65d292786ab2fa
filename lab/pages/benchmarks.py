"""BENCHMARKS.md, from the results of all benchmarks."""

from __future__ import annotations

from typing import Any

from lab.pages.markdown import table, write_page
from lab.paths import Place
from lab.runner import read_result

INTRODUCTION = """# Benchmarks

`make bench` measures, and this page is written from the files in `lab/results/benchmarks/`. Every figure is a count, or a
ratio of two things that are measured in turns in one process. The median is given with the quartiles. Missed targets are
shown as well.
"""


def write_benchmarks(place: Place) -> bool:
    """Write BENCHMARKS.md, if there are results."""
    files = sorted(place.benchmark("").parent.glob("*.json"))
    if files:
        text = "\n".join([INTRODUCTION, *(_section(result) for result in map(read_result, files) if result)])
        write_page(place.benchmarks_page, text)
    return bool(files)


def _section(result: dict[str, Any]) -> str:
    machine, torch = result["provenance"]["machine"], result["provenance"]["versions"]["torch"]
    rows = [(figure["what"], _measured(figure), figure["target"]) for figure in result["figures"]]
    return (
        f"## {result['name']}\n\n"
        f"{machine['processor']}, {machine['cores']} cores, torch {torch} on {machine['threads']} threads.\n\n"
        + table(("what", "measured", "target"), rows)
    )


def _measured(figure: dict[str, Any]) -> str:
    spread = figure.get("quartiles")
    return f"{figure['median']:g}" + (f" ({spread[0]:g} to {spread[1]:g})" if spread else "")
