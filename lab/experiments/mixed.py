"""Tables as they are: words, gaps, dates, ids and heavy tails, with no option, beside k-means on the same vectors."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.cells import Cell, Study

CLUSTERS = {
    "penguins": 3,
    "titanic": 2,
    "mpg": 3,
    "salaries": 3,
    "cars93": 6,
    "chile": 4,
    "msleep": 4,
    "cars": 3,
    "seattle-weather": 5,
    "orders": 3,
}


def mixed(budget: str) -> Iterator[Cell]:
    """What becomes of tables of mixed kinds. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    options = {"seeds": 1, "iterations": 20} if budget == "quick" else {"seeds": 2, "iterations": 300}
    for data, k in CLUSTERS.items():
        yield Cell("mixed", data, "default", k, Study(studies.beside_k_means, options=options), budget)
