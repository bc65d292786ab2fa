"""Whether two kinds of seals can be told apart: every pair of classes, by plain DDC, k-means, ITC and with labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from lab import studies
from lab.cells import Cell, Fits, Study
from lab.parameters import network

PUP, COW, BULL = "elephant_seal_pup", "elephant_seal_cow", "elephant_seal_bull"
CLASSES = {
    "seals": (PUP, COW, BULL, "harbor_seal", "background"),
    "seals-64": (PUP, "harbor_seal", "background"),
}
SIZES = {"quick": (2, 20), "standard": (4, 1000)}  # runs of each pair, and their iterations


def seals(budget: str) -> Iterator[Cell]:
    """A study of every pair of classes, by the reading of docs/paper-protocol.md."""
    if budget not in SIZES:
        return
    runs, iterations = SIZES[budget]
    params = {
        "network": network(init="he"),
        "n_init": runs,
        "n_vote": runs,
        "max_iter": iterations,
        "precision": "bfloat16",
    }
    for data, classes in CLASSES.items():
        for pair in combinations(classes, 2):
            study = Study(studies.separation, Fits(params))
            yield Cell("seals", f"{data}.{'+'.join(pair)}", "separation", 2, study, budget)
