"""How large the experiments are, by budget, and the data sets that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.cells import BUDGETS

IMAGES = {"mnist": 10, "seals-3": 3, "seals-2": 2}
# RCV1, where it can be downloaded, and the data sets that stand in for it.
TEXTS = {"reuters": 4, "agnews": 4, "rcv1-subset": 4, "rcv1-subset-balanced": 4, "reuters21578-balanced": 4}
CLUSTERS = {**IMAGES, **TEXTS}
READ = {"mnist": 10, "rcv1-subset": 4}  # data sets on which readings of the paper are compared


@dataclass(frozen=True)
class Budget:
    """How large the experiments are."""

    ddc_runs: int  # of DDC in Table 1
    iterations: dict[str, int]  # of DDC in Table 1; "images" and "texts" for data sets that are not named
    runs: int  # of k-means and ITC
    choices: int
    dec: dict[str, dict[str, Any]]  # DEC's schedule by data set; "" for those that are not named
    dec_runs: int
    seeds: int  # of each reading
    reading_iterations: dict[str, int]


SHORT_DEC = {"layer_iter": 300, "finetune_iter": 1500, "max_iter": 3000}
PHOTOS_DEC = {**SHORT_DEC, "center": True}

SIZES = {
    "quick": Budget(
        ddc_runs=3,
        iterations={"images": 200, "texts": 300},
        runs=2,
        choices=1,
        dec={"": {"layer_iter": 20, "finetune_iter": 60, "max_iter": 100}},
        dec_runs=1,
        seeds=1,
        reading_iterations={"mnist": 100, "rcv1-subset": 300},
    ),
    "standard": Budget(
        ddc_runs=20,
        iterations={"mnist": 7000, "images": 1500, "texts": 5000},
        runs=20,
        choices=9,
        dec={"mnist": {}, "seals-3": PHOTOS_DEC, "seals-2": PHOTOS_DEC, "": SHORT_DEC},
        dec_runs=1,
        seeds=4,
        reading_iterations={"mnist": 1050, "rcv1-subset": 3000},
    ),
    "paper": Budget(
        ddc_runs=20,
        iterations={"images": 70_000, "texts": 70_000},
        runs=20,
        choices=9,
        dec={
            "": {
                "pretraining": "sgd",
                "layer_iter": 50_000,
                "finetune_iter": 100_000,
                "update_interval": 160,
            }
        },
        dec_runs=20,
        seeds=5,
        reading_iterations={"mnist": 70_000, "rcv1-subset": 70_000},
    ),
}
assert tuple(SIZES) == BUDGETS
