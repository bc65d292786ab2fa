"""Every experiment as a list of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lab.cells import Cell
from lab.experiments.ablation import ablation
from lab.experiments.benchmark import benchmark
from lab.experiments.beyond import beyond
from lab.experiments.encoded import encoded
from lab.experiments.figures import figures
from lab.experiments.mixed import mixed
from lab.experiments.numbers import many, numbers
from lab.experiments.pool import pool
from lab.experiments.seals import seals
from lab.experiments.studies import choosing, defaults, merging, precision, regrouping, restarts, tables
from lab.experiments.tables import readings, table1

EXPERIMENTS: dict[str, Callable[[str], Iterator[Cell]]] = {
    "pool": pool,
    "readings": readings,
    "table1": table1,
    "beyond": beyond,
    "encoded": encoded,
    "mixed": mixed,
    "benchmark": benchmark,
    "ablation": ablation,
    "seals": seals,
    "figures": figures,
    "defaults": defaults,
    "merging": merging,
    "regrouping": regrouping,
    "tables": tables,
    "precision": precision,
    "numbers": numbers,
    "many": many,
    "restarts": restarts,
    "selection": choosing,
}


def declared(experiment: str, budget: str) -> list[Cell]:
    """The cells of an experiment."""
    return list(EXPERIMENTS[experiment](budget))
