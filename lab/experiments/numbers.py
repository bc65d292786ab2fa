"""Numbers of clusters: what a scan says of them, and whether fits use as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.cells import Cell, Study

# What the rule was developed on, and what it is judged on, with the numbers of classes; docs/number-of-clusters.md says how.
DEVELOPMENT_NUMBERS = {
    "blobs-unequal": 3,
    "circles": 2,
    "moons": 2,
    "iris": 3,
    "ellipsoids-unequal": 3,
    "noise-2": 1,
    "blob-4": 1,
}
JUDGING_NUMBERS = {
    "noise-3": 1,
    "noise-10": 1,
    "blob-2": 1,
    "blob-20": 1,
    "blob-long": 1,
    "blob-skewed": 1,
    "bow": 1,
    "blobs-spread": 3,
    "blobs-stretched": 3,
    "blobs-four": 4,
    "ellipsoids": 4,
    "bananas": 3,
    "manuals": 4,
}
LONGER_NUMBERS = {"digits": 10, "tiles": 2, "mnist-3": 3, "agnews": 4, "rcv1-subset": 4, "blobs-many": 15}
SCANNED = "scan"


def numbers(budget: str) -> Iterator[Cell]:
    """Whether the scan is right, or says that it is unclear. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    sets, size = JUDGING_NUMBERS | DEVELOPMENT_NUMBERS, {"runs": 3, "iterations": 200, "items": 1000}
    if budget == "standard":
        sets, size = sets | LONGER_NUMBERS, {"runs": 6, "iterations": 1000, "items": 5000}
    for data, k in sets.items():
        first, last = (2, 4) if budget == "quick" else (2, 8) if k < 8 else (k - 3, k + 3)
        study = Study(studies.numbers, options={"ks": list(range(first, last + 1)), **size})
        yield Cell("numbers", data, SCANNED, k, study, budget)


# What the growth of the orthogonality with the number of clusters was developed on, and what it is judged on.
DEVELOPMENT_MANY = {"agnews": (20, 50, 100), "digits": (20, 50)}
JUDGING_MANY = {"rcv1-subset": (20, 50), "mnist-as-vectors": (50, 100)}
GROWING, CONSTANT = "growing", "constant"


def many(budget: str) -> Iterator[Cell]:
    """Whether fits use as many clusters as are asked for. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    size = {"iterations": 300, "items": 2500, "seeds": 1}
    if budget == "standard":
        size = {"iterations": 3500, "items": 10_000, "seeds": 3}
    for data, ks in (JUDGING_MANY | DEVELOPMENT_MANY).items():
        for k in ks:
            for name in (GROWING, CONSTANT):
                options = {"n_clusters": k, "growing": name == GROWING, **size}
                yield Cell(
                    "many", data, f"{k}-{name}", k, Study(studies.clusters_used, options=options), budget
                )
