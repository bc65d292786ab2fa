"""The paper's tables, its other divergences, and the readings of its text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from lab.cells import Cell, Fits, Reference
from lab.experiments.sizes import ABLATED, CLUSTERS, IMAGES, SIZES, Budget
from lab.parameters import Params, constant, loss, network, own_network, selection, snapshots

ITERATIONS_PER_EPOCH = 700  # of MNIST
ITC_MINUTES = 30


def table1_fits(data: str, size: Budget, used_loss: Params | None = None) -> Fits:
    """DDC and DDC-VOTE: the best of many runs, and the vote of the best three."""
    iterations = size.iterations.get(data, size.iterations["images" if data in IMAGES else "texts"])
    epochs = range(iterations // ITERATIONS_PER_EPOCH + 1)
    return Fits(
        {
            "loss": used_loss or loss(),
            "n_init": size.ddc_runs,
            "n_vote": 3,
            "max_iter": iterations,
            "selection": selection(halving=size.halving),
            "callbacks": snapshots(epochs) if data == "mnist" else None,
        }
    )


def table1(budget: str) -> Iterator[Cell]:
    """Table 1: every method on every data set."""
    size = SIZES[budget]
    for data, k in CLUSTERS.items():
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


def repeated_fits(data: str, size: Budget, used_loss: Params) -> Fits:
    """Repetitions of best-of-n in which every run is scored."""
    repetitions, runs = size.repeated
    params = {"loss": used_loss, "n_init": runs, "n_vote": runs, "max_iter": size.repeated_iterations[data]}
    return Fits(params, repetitions)


L1, L2, L3 = "divergence", "orthogonality", "corners"
SUBSETS = {
    "l1": {L1},
    "l2": {L2},
    "l3": {L3},
    "l1+l2": {L1, L2},
    "l1+l3": {L1, L3},
    "l2+l3": {L2, L3},
    "l1+l2+l3": {L1, L2, L3},
}


def table2(budget: str) -> Iterator[Cell]:
    """Table 2: all subsets of the terms of the loss."""
    for data, k in ABLATED.items():
        for name, used in SUBSETS.items():
            weights = {term: float(term in used) for term in (L1, L2, L3)}
            fits = repeated_fits(data, SIZES[budget], loss(weights=weights))
            yield Cell("table2", data, name, k, fits, budget)


def divergences(budget: str) -> Iterator[Cell]:
    """Section 5.5: other divergences in place of Cauchy-Schwarz."""
    for name in ("cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"):
        fits = repeated_fits("mnist", SIZES[budget], loss(divergence=name))
        yield Cell("divergences", "mnist", name, 10, fits, budget)


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
TABLE_1_BY_MEDIAN = "table-1-by-median"  # the best reading after few iterations, at the size of Table 1


def readings(budget: str) -> Iterator[Cell]:
    """Which reading of the paper comes closest to its results."""
    size = SIZES[budget]
    runs = max(size.seeds, 2)  # several runs train on one thread each
    for data, k in ABLATED.items():
        shared = {"n_init": runs, "n_vote": runs, "max_iter": size.reading_iterations[data]}
        for rule, reduction, init in product(("squared_median", "median"), ("mean", "sum"), ("soft", "he")):
            used_loss = loss(bandwidth_rule=rule, reduction=reduction)
            fits = Fits({"loss": used_loss, "network": network(init=init), **shared})
            yield Cell("readings", data, f"{rule}-{reduction}-{init}", k, fits, budget)
        for name, changed in VARIATIONS[data].items():
            yield Cell("readings", data, name, k, Fits({**changed, **shared}), budget)
        fits = table1_fits(data, size, loss(bandwidth_rule="median"))
        yield Cell("readings", data, TABLE_1_BY_MEDIAN, k, fits, budget)
