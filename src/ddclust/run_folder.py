"""What a run of the command line leaves behind: labels.csv, model/, history.json and run.json."""

from __future__ import annotations

import csv
import hashlib
import io
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ddclust.persistence import write_file, write_json
from ddclust.sources import blocks

if TYPE_CHECKING:
    from ddclust._ddc import DDC

LABELS_FILE = "labels.csv"
MODEL_FOLDER = "model"
HISTORY_FILE = "history.json"
RUN_FILE = "run.json"


def write_run(folder: Path, model: DDC, items: list[str], run: dict[str, Any]) -> None:
    """Fill a run folder from a fitted model."""
    write_file(folder / LABELS_FILE, labels_table(items, model.labels_, model.probabilities_).encode())
    model.save(folder / MODEL_FOLDER)
    write_json(folder / HISTORY_FILE, model.history_)
    runs = [{key: value for key, value in record.items() if key != "history"} for record in model.runs_]
    write_json(folder / RUN_FILE, {**run, "versions": versions(), "best_run": model.best_run_, "runs": runs})


def labels_table(items: list[str], labels: NDArray, probabilities: NDArray) -> str:
    """CSV text of item, cluster and confidence (the largest soft assignment)."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["item", "cluster", "confidence"])
    shares = (f"{share:.4f}" for share in probabilities.max(axis=1).tolist())
    table.writerows(zip(items, labels.tolist(), shares, strict=True))
    return text.getvalue()


def fingerprint(X: NDArray) -> str:
    """SHA-256 of the array's shape, type and values."""
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}".encode())
    for block in blocks(X):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of everything that can change a result."""
    packages = ("ddclust", "torch", "numpy", "scikit-learn", "scipy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
