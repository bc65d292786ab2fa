"""Studies of the library's own choices: its defaults, what several runs are worth, and how runs are chosen."""

from __future__ import annotations

from collections.abc import Iterator

from ddclust.objective.precision import PRECISIONS
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


# What the rule of merging was developed on, and what it is judged on; docs/defaults.md says how.
DEVELOPMENT = {
    "iris": 3,
    "wine": 3,
    "breast_cancer": 2,
    "blobs-unequal": 3,
    "blobs-equal": 3,
    "digits-as-vectors": 10,
}
JUDGING = {"blobs-spread": 3, "blobs-stretched": 3, "moons": 2, "circles": 2}
MERGED, UNMERGED, MIXTURE = "merged", "unmerged", "gaussian-mixture"


def merging(budget: str) -> Iterator[Cell]:
    """Whether more clusters than are asked for, merged after training, find classes of unequal sizes."""
    if budget == "paper":
        return
    seeds, iterations = (1, 20) if budget == "quick" else (3, 500)
    shared = AUTO | {"n_init": 2, "max_iter": iterations}
    for data, k in (DEVELOPMENT | JUDGING).items():
        for name, n_final in ((MERGED, "auto"), (UNMERGED, None)):
            yield Cell("merging", data, name, k, Fits(shared | {"n_final": n_final}, seeds), budget)
        for name, analyse in ((K_MEANS, studies.k_means), (MIXTURE, studies.gaussian_mixture)):
            options = {"n_init": 10, "seeds": seeds}
            yield Cell("merging", data, name, k, Study(analyse, options=options), budget)


# The same of the grouping of images in the course of training.
DEVELOPMENT_IMAGES = {"digits": 10, "digits-unequal": 10}
JUDGING_IMAGES = {"mnist": 10, "mnist-unequal": 10}


def regrouping(budget: str) -> Iterator[Cell]:
    """Whether more clusters of images than are asked for, grouped in training, find classes of unequal sizes."""
    if budget == "paper":
        return
    seeds, iterations = (1, 20) if budget == "quick" else (3, 300)
    for data, k in (DEVELOPMENT_IMAGES | JUDGING_IMAGES).items():
        longer = 1 if data in DEVELOPMENT_IMAGES else 4
        shared = AUTO | {"n_init": 2, "max_iter": longer * iterations}
        for name, n_final in ((MERGED, "auto"), (UNMERGED, None)):
            yield Cell("regrouping", data, name, k, Fits(shared | {"n_final": n_final}, seeds), budget)
        k_means = Study(studies.k_means, options={"n_init": 10, "seeds": seeds})
        yield Cell("regrouping", data, K_MEANS, k, k_means, budget)


# What the rule of mixtures was developed on, and what it is judged on; docs/defaults.md says how.
DEVELOPMENT_TABLES = {
    "iris": 3,
    "wine": 3,
    "blobs-unequal": 3,
    "blobs-equal": 3,
    "moons": 2,
    "digits-as-vectors": 10,
    "breast_cancer": 2,
}
JUDGING_TABLES = {
    "blobs-spread": 3,
    "blobs-stretched": 3,
    "blobs-many": 15,
    "blobs-overlapping": 3,
    "ellipsoids": 4,
    "ellipsoids-crossed": 2,
    "ellipsoids-unequal": 3,
    "circles": 2,
    "moons-few": 2,
    "bananas": 3,
}


def tables(budget: str) -> Iterator[Cell]:
    """Whether the default is as good as k-means and a Gaussian mixture on tables."""
    if budget == "paper":
        return
    seeds, iterations = (1, 20) if budget == "quick" else (3, 500)
    params = AUTO | {"n_final": "auto", "anchor": "auto", "n_init": 1, "max_iter": iterations}
    for data, k in (JUDGING_TABLES | DEVELOPMENT_TABLES).items():
        yield Cell("tables", data, WITH_PAIRS, k, Fits(params, seeds), budget)
        for name, analyse in ((K_MEANS, studies.k_means), (MIXTURE, studies.gaussian_mixture)):
            options = {"n_init": 10, "seeds": seeds}
            yield Cell("tables", data, name, k, Study(analyse, options=options), budget)


# Clusters, seeds and iterations of the fits whose accuracy is compared between precisions.
PRECISION_SETS = {"digits": (10, 10, 300), "mnist-2000": (10, 5, 150), "reuters21578-balanced": (4, 8, 300)}


def precision(budget: str) -> Iterator[Cell]:
    """Whether clusters are as good if the network is trained in bfloat16, by the same seeds in either precision."""
    if budget == "paper":
        return
    for data, (k, seeds, iterations) in PRECISION_SETS.items():
        seeds, iterations = (2, 20) if budget == "quick" else (seeds, iterations)
        params = AUTO | {"n_final": "auto", "n_init": 1, "max_iter": iterations}
        for name in PRECISIONS:
            yield Cell("precision", data, name, k, Fits(params | {"precision": name}, seeds), budget)


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
