"""The paper's tables and figures: a declaration each, and one runner for all of them."""

from lab.cells import BUDGETS, Cell, Fits, Rival
from lab.declared import EXPERIMENTS, declared
from lab.page import write_page
from lab.runner import BusyError, Place, State, read_result, run_cell, state

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
