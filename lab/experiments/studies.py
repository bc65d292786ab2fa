"""Studies of the library's own choices: its defaults, what several runs are worth, and how runs are chosen."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.cells import Cell, Fits, Study
from lab.parameters import Params, loss, selection

AUTO = dict.fromkeys(("loss", "augment", "neighbors", "learning_rate", "early_stopping"), "auto")
ALONE = AUTO | {"augment": None, "neighbors": None}
OF_DEFAULTS = {
    "circles": 2,
    "iris": 3,
    "wine": 3,
    "breast_cancer": 2,
    "digits-as-vectors": 10,
    "digits": 10,
    "agnews": 4,
    "rcv1-subset": 4,
}
WITH_PAIRS, WITHOUT_PAIRS, K_MEANS = "default", "without-pairs", "k-means"


def defaults(budget: str) -> Iterator[Cell]:
    """What a user gets who names only the data and the number of clusters. Not in the paper, so not at its size."""
    if budget == "paper":
        return
    seeds, iterations = (1, 50) if budget == "quick" else (2, 1000)
    for data, k in OF_DEFAULTS.items():
        for name, params in ((WITH_PAIRS, AUTO), (WITHOUT_PAIRS, ALONE)):
            yield Cell("defaults", data, name, k, Fits(params | {"max_iter": iterations}, seeds), budget)
        k_means = Study(studies.k_means, options={"n_init": 10, "seeds": seeds})
        yield Cell("defaults", data, K_MEANS, k, k_means, budget)


def _all_runs(n: int, iterations: int, orthogonality: float, *, halving: bool) -> Fits:
    """Runs that all train to the end: with as many votes as runs, halving judges them but stops none."""
    params: Params = {
        "loss": loss(weights={"orthogonality": orthogonality}),
        "n_init": n,
        "n_vote": n,
        "selection": selection(halving=halving),
        "max_iter": iterations,
    }
    return Fits(params)


def restarts(budget: str) -> Iterator[Cell]:
    """What several runs, halving and the vote are worth."""
    sizes = {
        "quick": {"digits": (4, 40, 30.0, 2)},
        "standard": {"digits": (40, 1000, 30.0, 8), "mnist": (16, 1400, 1.0, 8)},
    }
    for data, (runs, iterations, weight, group) in sizes.get(budget, {}).items():
        fits = _all_runs(runs, iterations, weight, halving=True)
        study = Study(studies.replays, fits, {"group": group, "drawn": 200})
        yield Cell("restarts", data, "replays", 10, study, budget)


def choosing(budget: str) -> Iterator[Cell]:
    """Which label-free quantities rank runs as accuracy does."""
    sizes = {"quick": (4, 40, 2), "standard": (18, 1000, 6)}
    if budget in sizes:
        runs, iterations, group = sizes[budget]
        fits = _all_runs(runs, iterations, 30.0, halving=False)
        study = Study(studies.quantities, fits, {"group": group, "groups": 400})
        yield Cell("selection", "digits", "quantities", 10, study, budget)
