"""The paper's tables and figures: a declaration each, and one runner for all of them."""

from ddclust.experiments._cells import BUDGETS, Cell, Fits, Rival
from ddclust.experiments._declared import EXPERIMENTS, declared
from ddclust.experiments._page import write_page
from ddclust.experiments._runner import BusyError, Place, State, read_result, run_cell, state

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "BusyError",
    "Cell",
    "Fits",
    "Place",
    "Rival",
    "State",
    "declared",
    "read_result",
    "run_cell",
    "state",
    "write_page",
]
