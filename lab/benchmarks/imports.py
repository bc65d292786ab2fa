"""How long imports and the first answer of the command line take, against importing torch alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab.benchmarks.measure import ratio

COMMAND = Path(sys.executable).with_name("ddclust")
REPEATS = 9


def importing(statement: str):
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


def figures() -> list[dict]:
    """What the benchmark measures."""
    torch = importing("import torch")

    def help_page() -> None:
        subprocess.run([COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)

    def row(what, target, function):
        return {"what": f"{what} / import torch", "target": target, **ratio(function, torch, REPEATS)}

    return [
        row("import ddclust", "<= 1.2", importing("import ddclust")),
        row(
            "from ddclust import DDC (with scikit-learn)",
            "(to know)",
            importing("from ddclust import DDC"),
        ),
        row("from sklearn.cluster import KMeans", "(to know)", importing("import sklearn.cluster")),
        row("ddclust --help", "< 0.5", help_page),
    ]
