"""The results on disk that pages are written from."""

from __future__ import annotations

from typing import Any, NamedTuple

from lab.cells import BUDGETS, Cell
from lab.experiments import declared
from lab.paths import Place
from lab.runner import read_result


class Found(NamedTuple):
    """A cell and its result."""

    cell: Cell
    result: dict[str, Any]

    def link(self, place: Place) -> str:
        """A link to the file, with a word where its protocol is not the one that is declared now."""
        file = place.relative(place.result(self.cell))
        is_current = self.result["protocol"] == self.cell.protocol()
        return f"[{self.cell.budget}]({file})" + ("" if is_current else ", other protocol than declared")


def largest(experiment: str, place: Place) -> dict[tuple[str, str], Found]:
    """(data, cell name) -> what was found, at the largest budget that has been run."""
    found = {}
    for budget in BUDGETS:
        for cell in declared(experiment, budget):
            result = read_result(place.result(cell))
            if result is not None:
                found[cell.data, cell.name] = Found(cell, result)
    return found


def of_data(found: dict[tuple[str, str], Found], data: str) -> list[Found]:
    """Those of one data set."""
    return [one for (name, _), one in found.items() if name == data]
