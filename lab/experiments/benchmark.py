"""Tables of numbers of a public benchmark by default, beside simple methods."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.benchmark import is_small, sets
from lab.cells import Cell, Study

DEFAULT, UMAP = "default", "umap-mixture"


def benchmark(budget: str) -> Iterator[Cell]:
    """Whether the default is as good as simple methods. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    options = {"seeds": 1, "iterations": 20} if budget == "quick" else {"seeds": 2, "iterations": 500}
    for data, k in sets():
        yield Cell(
            "benchmark", data, DEFAULT, k, Study(studies.beside_simple_methods, options=options), budget
        )
        if budget == "standard" and not is_small(data):
            of_umap = {"n_neighbors": 15, "min_dist": 0.0, "n_components": 10, "n_init": 5, "seeds": 1}
            yield Cell("benchmark", data, UMAP, k, Study(studies.umap_of_a_table, options=of_umap), budget)
