"""The time to write the report of MNIST's 70,000 images, against two training epochs on them."""

from __future__ import annotations

import warnings

from ddclust import DDC
from ddclust.show.report import report_page
from lab.benchmarks.measure import mnist_or_none, seconds, summary

REPEATS = 3


def figures() -> list[dict] | None:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    mnist = mnist_or_none()
    if mnist is None:
        return None
    ratios, pages = [], []
    for seed in range(REPEATS):
        model = DDC(10, augment=None, n_init=1, max_iter=1400, early_stopping=None, random_state=seed).fit(
            mnist.data
        )
        took = seconds(lambda model=model: pages.append(report_page(model, mnist.data, truth=mnist.target)))
        ratios.append(took / model.runs_[0]["seconds"])
        print(f"{took:.1f} s, training {model.runs_[0]['seconds']:.1f} s", flush=True)
    what = "report of 70,000 28x28 images / two training epochs on them, with judging"
    size = {
        "what": "size of the page (MB)",
        "target": "a few at most",
        "median": round(len(pages[-1]) / 2**20, 2),
    }
    return [{"what": what, "target": "<= 1", **summary(ratios)}, size]
