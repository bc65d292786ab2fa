"""Tables as they are: words, gaps, dates, ids and heavy tails, with no option, beside simple methods on the same vectors."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.cells import Cell, Study

# What the rule of simple methods was developed on, and what it is judged on; docs/defaults.md says how. Of the judging tables
# the first five had been fitted under the rule before it.
DEVELOPMENT_MIXED = {"penguins": 3, "titanic": 2, "salaries": 3, "chile": 4, "orders": 3}
JUDGING_MIXED = {
    "mpg": 3,
    "cars93": 6,
    "msleep": 4,
    "cars": 3,
    "seattle-weather": 5,
    "scat": 3,
    "olive": 3,
    "crabs": 2,
    "possum": 2,
    "survey": 2,
    "oj": 2,
    "davis": 2,
    "diabetes": 3,
    "college": 2,
    "prestige": 3,
}


def mixed(budget: str) -> Iterator[Cell]:
    """What becomes of tables of mixed kinds. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    options = {"seeds": 1, "iterations": 20} if budget == "quick" else {"seeds": 3, "iterations": 300}
    for data, k in (JUDGING_MIXED | DEVELOPMENT_MIXED).items():
        study = Study(studies.beside_simple_methods, options=options)
        yield Cell("mixed", data, "default", k, study, budget)
