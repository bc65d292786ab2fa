"""DDC on pretrained features, beside simple methods on the same features."""

from __future__ import annotations

from collections.abc import Iterator

from lab import studies
from lab.cells import Cell, Fits, Study
from lab.experiments.studies import AUTO
from lab.given import WithEncoder

# What some default for features was chosen on, and what none was; docs/defaults.md says which on which.
DEVELOPMENT = {
    "agnews-texts@minilm": 4,
    "agnews-texts@static": 4,
    "cifar10-batch1@efficientnet": 10,
    "reuters21578-balanced@minilm": 4,
}
JUDGING = {"reuters21578-balanced@static": 4}
# The ACC that was aimed at before these runs, in the mean of the runs and for the label-free choice.
AIMS = {
    "agnews-texts@minilm": 0.87,
    "cifar10-batch1@efficientnet": 0.60,
    "reuters21578-balanced@minilm": 0.95,
}
DEFAULT, K_MEANS, UMAP = "default", "k-means", "umap-mixture"
SEEDS = {"quick": 2, "standard": 5, "paper": 5}
ITERATIONS = {"quick": 20, "standard": 1000, "paper": 3500}  # the last is the default


def encoded(budget: str) -> Iterator[Cell]:
    """What a user gets who names the data, the number of clusters and an encoder. The paper has no encoders."""
    seeds = SEEDS[budget]
    every_run = {"n_init": seeds, "n_vote": seeds, "max_iter": ITERATIONS[budget]}
    params = AUTO | {"n_final": "auto", "anchor": "auto"} | every_run
    for data, k in (DEVELOPMENT | JUDGING).items():
        yield Cell("encoded", data, DEFAULT, k, Fits(params, given=WithEncoder()), budget)
        k_means = Study(studies.k_means_of_features, options={"n_init": 10, "seeds": seeds})
        yield Cell("encoded", data, K_MEANS, k, k_means, budget)
        options = {"n_neighbors": 20, "min_dist": 0.0, "n_init": 5, "seeds": seeds}
        yield Cell("encoded", data, UMAP, k, Study(studies.umap_and_mixture, options=options), budget)
