"""How benchmarks measure: two things in turns in one process, as a ratio with its median and quartiles."""

from __future__ import annotations

import statistics
import time
from typing import Any

# Code for another process. Linux' own figure: getrusage would begin with the peak of the process that started it.
PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
"""


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def ratio(first, second, repeats: int = 15) -> dict:
    """The time of ``first`` divided by that of ``second``, both warmed up and then run in turns."""
    first(), second()
    pairs = [(seconds(first), seconds(second)) for _ in range(repeats)]
    return summary([a / b for a, b in pairs])


def summary(values: list[float]) -> dict:
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": round(median, 4), "quartiles": [round(low, 4), round(high, 4)], "repeats": len(values)}


def mnist_or_none() -> Any:
    """MNIST's 70,000 images and classes, or None where they are not at hand."""
    from ddclust.datasets import NAMED, load_mnist

    if NAMED["mnist"].at_hand() == "yes":
        return load_mnist()
    print("MNIST is not at hand; set DDCLUST_DATA. Skipped.")
    return None
