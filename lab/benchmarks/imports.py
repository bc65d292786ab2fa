"""How long imports and the first answer of the command line take, against importing torch, alone or with scikit-learn's base."""

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
    torch, both = importing("import torch"), importing("import torch, sklearn.base")

    def help_page() -> None:
        subprocess.run([COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)

    def row(what, target, function):
        return {"what": f"{what} / import torch", "target": target, **ratio(function, torch, REPEATS)}

    return [
        row("import ddclust", "<= 1.2", importing("import ddclust")),
        {
            "what": "from ddclust import DDC / import torch and sklearn.base",
            "target": "<= 1.1",
            **ratio(importing("from ddclust import DDC"), both, REPEATS),
        },
        row("from sklearn.cluster import KMeans", "(to know)", importing("import sklearn.cluster")),
        row("ddclust --help", "< 0.5", help_page),
    ]
