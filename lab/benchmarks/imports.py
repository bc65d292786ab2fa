"""What a user waits for before anything happens: imports and the command line's first answer, against torch alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from _measure import ratio, save

COMMAND = Path(sys.executable).with_name("ddclust")
REPEATS = 9


def importing(statement: str):
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


if __name__ == "__main__":
    torch = importing("import torch")

    def help_page() -> None:
        subprocess.run([COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL)

    def row(what, target, function):
        return {"what": f"{what} / import torch", "target": target, **ratio(function, torch, REPEATS)}

    save(
        "imports",
        [
            row("import ddclust", "<= 1.2", importing("import ddclust")),
            row(
                "from ddclust import DDC (with scikit-learn)",
                "(to know)",
                importing("from ddclust import DDC"),
            ),
            row("from sklearn.cluster import KMeans", "(to know)", importing("import sklearn.cluster")),
            row("ddclust --help", "< 0.5", help_page),
        ],
    )
