"""How everything here is measured: alternately in one process, as a ratio with its median and spread."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"
# Linux' own figure of a process: getrusage would begin with that of the process that started it.
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
    """Time of ``first`` over time of ``second``: both warmed up, then run in turns."""
    first(), second()
    pairs = [(seconds(first), seconds(second)) for _ in range(repeats)]
    return summary([a / b for a, b in pairs])


def summary(values: list[float]) -> dict:
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": round(median, 4), "quartiles": [round(low, 4), round(high, 4)], "repeats": len(values)}


def mnist_or_exit():
    """MNIST's 70,000 images and classes; the benchmark is skipped where they are not at hand."""
    from ddclust.datasets import NAMED, load_mnist

    if NAMED["mnist"].at_hand() != "yes":
        print("MNIST is not at hand; set DDCLUST_DATA. Skipped.")
        sys.exit()
    return load_mnist()


def machine() -> dict:
    model = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def save(name: str, rows: list[dict]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
