"""The paper's protocol at size: many single runs of two readings of the paper. docs/paper-protocol.md has the rules."""

from __future__ import annotations

from collections.abc import Iterator

from lab.cells import Cell, Run
from lab.parameters import Params, loss, network, snapshots

ITERATIONS, EPOCHS = 7000, 10
READINGS: dict[str, Params] = {
    "he-after-squared_median": {"network": network(init="he")},
    "he-before-median": {
        "loss": loss(bandwidth_rule="median"),
        "network": network(init="he", norm_first=True),
    },
}
# (reading, precision of the convolutions) -> number of runs, from seed 0 on
SEEDS = {
    ("he-after-squared_median", "bfloat16"): 60,
    ("he-before-median", "bfloat16"): 20,
    ("he-after-squared_median", "float32"): 6,
}


def pool_cell(reading: str, seed: int, precision: str) -> Cell:
    """A run. The rules ask for bfloat16; runs in another precision are kept in a folder of their own."""
    params = {
        **READINGS[reading],
        "n_init": 1,
        "max_iter": ITERATIONS,
        "callbacks": snapshots(range(EPOCHS + 1)),
    }
    folder = reading if precision == "bfloat16" else f"{reading}-{precision}"
    run = Run(reading, params, seed, precision)
    return Cell("pool", "mnist", f"{folder}/{seed:03d}", 10, run, "paper")


def pool(budget: str) -> Iterator[Cell]:
    """The runs, at the paper's budget only."""
    if budget == "paper":
        for (reading, precision), n in SEEDS.items():
            yield from (pool_cell(reading, seed, precision) for seed in range(n))
