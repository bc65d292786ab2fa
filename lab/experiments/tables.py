"""Table 1, and the readings of the paper's text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from lab.cells import Cell, Fits, Reference
from lab.experiments.sizes import CLUSTERS, IMAGES, READ, SIZES, Budget
from lab.parameters import constant, loss, network, own_network

ITERATIONS_PER_EPOCH = 700  # of MNIST
ITC_MINUTES = 30
# Of texts the start is soft, as it is here wherever none is named.
PAPER_ON_IMAGES = {"network": network(init="he"), "precision": "bfloat16"}
IN_POOL = ("standard", "mnist")  # the pool has three times the best of 20 runs of this size


def table1_fits(data: str, size: Budget) -> Fits:
    """DDC and DDC-VOTE: the best of many runs, and the vote of the best three; by the preset of the paper."""
    iterations = size.iterations.get(data, size.iterations["images" if data in IMAGES else "texts"])
    return Fits(
        {
            "n_init": size.ddc_runs,
            "n_vote": 3,
            "max_iter": iterations,
            **(PAPER_ON_IMAGES if data in IMAGES else {}),
        }
    )


def table1(budget: str) -> Iterator[Cell]:
    """Table 1: every method on every data set."""
    size = SIZES[budget]
    for data, k in CLUSTERS.items():
        if (budget, data) != IN_POOL:
            yield Cell("table1", data, "ddc", k, table1_fits(data, size), budget)
        for reference in _references(data, size):
            yield Cell("table1", data, reference.method, k, reference, budget)


def _references(data: str, size: Budget) -> list[Reference]:
    # The paper has ITC on the seals only.
    tried = (min(size.runs, 3), size.choices) if data in ("seals-3", "seals-2") else (1, 1)
    return [
        Reference("k-means", size.runs, 1),
        Reference("sec", 1, size.choices),
        Reference("ldmgi", 1, size.choices),
        Reference("dec", size.dec_runs, 1, size.dec.get(data, size.dec[""])),
        Reference("itc-parzen", *tried, minutes=ITC_MINUTES),
        Reference("itc-knn", *tried, minutes=ITC_MINUTES),
    ]


# One change at a time, from the squared median, averages and the soft start.
VARIATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "mnist": {
        "norm-first": {"network": network(norm_first=True)},
        "norm-first-he": {"network": network(init="he", norm_first=True)},
        "symmetric-input": {"network": own_network("symmetric_input")},
        "standardised-input": {"network": own_network("standardised_input")},
        "rate-1e-4": {"learning_rate": constant(1e-4)},
    },
    "rcv1-subset": {
        "norm-first": {"network": network(norm_first=True), "learning_rate": constant(1e-5)},
        "rate-1e-4": {"learning_rate": constant(1e-4)},
        "rate-1e-3": {"learning_rate": constant(1e-3)},
    },
}


def readings(budget: str) -> Iterator[Cell]:
    """Which reading of the paper comes closest to its results."""
    size = SIZES[budget]
    runs = max(size.seeds, 2)  # several runs train on one thread each
    for data, k in READ.items():
        shared = {"n_init": runs, "n_vote": runs, "max_iter": size.reading_iterations[data]}
        for rule, reduction, init in product(("squared_median", "median"), ("mean", "sum"), ("soft", "he")):
            used_loss = loss(bandwidth_rule=rule, reduction=reduction)
            fits = Fits({"loss": used_loss, "network": network(init=init), **shared})
            yield Cell("readings", data, f"{rule}-{reduction}-{init}", k, fits, budget)
        for name, changed in VARIATIONS[data].items():
            yield Cell("readings", data, name, k, Fits({**changed, **shared}), budget)
