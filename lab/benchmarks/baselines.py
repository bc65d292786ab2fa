"""How the time and memory of the reference methods grow with the number of items: MNIST, default parameters.

Every fit has its own process. DEC is trained for one epoch in each of its phases, since its iterations do not depend on
the number of items. Each time is that of one fit, so the exponent is the figure to look at.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ddclust.choosing.metrics import clustering_accuracy
from ddclust.compare.job import Job, data_file
from ddclust.compare.methods import METHODS
from ddclust.compare.process import Budget, make_fit
from lab.benchmarks.measure import mnist_or_none
from lab.benchmarks.scaling import exponent

SIZES = (5_000, 10_000, 20_000, 40_000, 70_000)
BATCH = 256


def params(method: str, n: int) -> dict:
    if method != "dec":
        return METHODS[method].choices[0]
    epoch = -(-n // BATCH)
    return {"layer_iter": epoch, "finetune_iter": epoch, "max_iter": epoch, "tol": 0.0}


def growth(method: str, images: np.ndarray, truth: np.ndarray) -> list[dict]:
    rows, fits = [], []
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder, data_file(Path(folder), images[:n]) as file:
            options = {"runs": 1, "max_iter": 1}
            job = Job(method, params(method, n), 10, 0, options, str(file), str(Path(folder) / "fit"))
            fit = make_fit(job, Budget(), lambda seconds, used: None)
            scores = [clustering_accuracy(truth[:n], np.load(f)) for f in Path(folder).glob("fit/*.npy")]
        print(method, n, fit, scores, flush=True)
        fits.append(fit)
        rows.append(
            {
                "what": f"{method}, {n:,} items: seconds",
                "target": "(to know)",
                "median": round(fit.seconds, 1),
                "peak MB": fit.peak_mb,
                "ACC": scores,
            }
        )
        rows[-1]["what"] += f" (peak {fit.peak_mb:,.0f} MB)"
    for name, key, target in (("time", "seconds", "<= 1.3"), ("peak memory", "peak_mb", "<= 1.3")):
        rows.append(
            {
                "what": f"{method}: exponent of {name} in the number of items, {SIZES[1]:,} to {SIZES[-1]:,}",
                "target": target,
                "median": round(exponent(SIZES[1:], [getattr(fit, key) for fit in fits[1:]]), 2),
            }
        )
    return rows


def figures() -> list[dict] | None:
    """What the benchmark measures."""
    mnist = mnist_or_none()
    if mnist is None:
        return None
    order = np.random.default_rng(0).permutation(len(mnist.data))
    images, truth = mnist.data[order], mnist.target[order]
    methods = [method for method in METHODS if method != "ddc"]
    return [row for method in methods for row in growth(method, images, truth)]
