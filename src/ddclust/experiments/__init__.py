"""The paper's tables and figures: a declaration each, and one runner for all of them."""

from ddclust.experiments._cells import BUDGETS, Cell, Fits, Rival
from ddclust.experiments._declared import EXPERIMENTS, declared
from ddclust.experiments._page import write_page
from ddclust.experiments._runner import Place, State, run_cell, state

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Cell",
    "Fits",
    "Place",
    "Rival",
    "State",
    "declared",
    "run_cell",
    "state",
    "write_page",
]
