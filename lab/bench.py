"""Runs benchmarks: modules of :mod:`lab.benchmarks` whose ``figures()`` gives what they measure."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

from ddclust.storage.atomic import write_json
from lab.paths import CHECKOUT, Place
from lab.provenance import Clock

HELPERS = ("__init__", "measure", "in_peers_env")
NAMES = sorted(f.stem for f in (Path(__file__).parent / "benchmarks").glob("*.py") if f.stem not in HELPERS)
# Threads that spin while they wait for each other lose whole time slices to any other process of the machine, and
# figures of two threads become noise. torch reads this when it is loaded; it holds for both sides of a ratio.
ENVIRONMENT = {"training": {"OMP_WAIT_POLICY": "PASSIVE"}}


def run_apart(name: str, place: Place) -> None:
    """Run a benchmark in its own process, which no other one has warmed up or filled."""
    subprocess.run(
        [sys.executable, "-m", "lab.bench", name, place.folder.resolve()], check=True, cwd=CHECKOUT
    )


def run_here(name: str, place: Place) -> None:
    """Run a benchmark and write its result. Without the data that it needs, nothing is written."""
    clock = Clock()
    figures = importlib.import_module(f"lab.benchmarks.{name}").figures()
    if figures is None:
        return

    import torch

    provenance = clock.provenance()
    provenance["machine"]["threads"] = torch.get_num_threads()
    file = place.benchmark(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = f"python -m lab bench {name}"
    write_json(file, {"name": name, "command": command, "figures": figures, "provenance": provenance})


if __name__ == "__main__":
    run_here(sys.argv[1], Place(Path(sys.argv[2])))
