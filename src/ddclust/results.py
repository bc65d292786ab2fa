"""What a run of the command line leaves behind: labels.csv, model/, history.json, run.json and report.html.

While it works, and after it was stopped, there are checkpoints, and run.json says so.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.choosing.consensus import Vote
from ddclust.choosing.selection import AllRunsFailedError
from ddclust.data.items import fingerprint
from ddclust.storage.atomic import write_file, write_json
from ddclust.training.checkpoints import RunStore

if TYPE_CHECKING:
    from ddclust.ddc import DDC

LABELS_FILE = "labels.csv"
MODEL_FOLDER = "model"
HISTORY_FILE = "history.json"
RUN_FILE = "run.json"
CHECKPOINTS_FOLDER = "checkpoints"
REPORT_FILE = "report.html"
NAMES_FORMAT = "ddclust-names"


class RunFolderError(ValueError):
    """A folder that holds no run."""


def description(bunch: Bunch, argument: str, options: dict[str, Any]) -> dict[str, Any]:
    """What run.json says of a fit before it begins."""
    return {
        "status": "running",
        "command": ["ddclust", *sys.argv[1:]],
        "options": options,
        "data": {
            "argument": argument,
            "path": str(Path(argument).resolve()) if Path(argument).exists() else None,
            "name": bunch.name,
            "shape": list(getattr(bunch.data, "shape", (len(bunch.item_names),))),
            "dtype": str(getattr(bunch.data, "dtype", "text")),
            "sha256": fingerprint(bunch.data),
            "skipped": bunch.skipped,
        },
        "versions": versions(),
    }


@contextmanager
def under_way(folder: Path, run: dict[str, Any]) -> Iterator[None]:
    """A run folder for the time of a fit. If the fit fails with nothing to go on from, the folder goes again."""
    is_new = not folder.exists()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RUN_FILE, run)
    try:
        yield
    except BaseException as error:
        hopeless = isinstance(error, AllRunsFailedError) or not any(
            (folder / CHECKPOINTS_FOLDER).glob("run-*")
        )
        if is_new and hopeless:
            shutil.rmtree(made[-1])
        raise


def write_results(folder: Path, model: DDC, item_names: Sequence[str], run: dict[str, Any]) -> bool:
    """Fill a run folder from a fitted model; returns whether the fit is complete."""
    complete = not any(record["outcome"] in ("interrupted", "waiting") for record in model.runs_)
    model.save(folder / MODEL_FOLDER, overwrite=True)
    table = labels_table(item_names, Vote(model.labels_, model.agreement_), model.probabilities_)
    write_file(folder / LABELS_FILE, table.encode())
    write_json(folder / HISTORY_FILE, model.history_)
    records = [{key: value for key, value in record.items() if key != "history"} for record in model.runs_]
    status = {"status": "complete" if complete else "interrupted"}
    write_json(folder / RUN_FILE, {**run, **status, "voters": model.voters_, "runs": records})
    if complete:
        shutil.rmtree(folder / CHECKPOINTS_FOLDER)
    return complete


def read_run(folder: Path) -> dict[str, Any]:
    """The content of run.json."""
    try:
        run = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFolderError(
            f"{str(folder)!r} is not a folder of 'ddclust fit': it has no {RUN_FILE}."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunFolderError(f"{str(folder / RUN_FILE)!r} is not readable JSON.") from error
    if not isinstance(run, dict) or not {"status", "options", "data"} <= run.keys():
        raise RunFolderError(f"{str(folder / RUN_FILE)!r} does not describe a fit.")
    return run


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds a fit that was stopped or killed, or is under way."""
    return (folder / RUN_FILE).exists() and read_run(folder)["status"] != "complete"


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The record of each restart, from the checkpoints as long as there are any."""
    checkpoints = folder / CHECKPOINTS_FOLDER
    if checkpoints.exists():
        return [record.public() for record in RunStore(checkpoints).records()]
    return read_run(folder).get("runs", [])


def labels_table(
    item_names: Sequence[str],
    vote: Vote,
    probabilities: NDArray,
    cluster_names: dict[int, str] | None = None,
) -> str:
    """CSV text of item, cluster, confidence (the largest soft assignment) and agreement of the vote.

    With names of clusters there is one more column, empty where a cluster has none.
    """
    columns: dict[str, Iterable[Any]] = {
        "item": item_names,
        "cluster": vote.labels.tolist(),
        "confidence": (f"{share:.4f}" for share in probabilities.max(axis=1).tolist()),
        "agreement": (f"{share:.4f}" for share in vote.agreement.tolist()),
    }
    if cluster_names is not None:
        columns["name"] = [cluster_names.get(cluster, "") for cluster in vote.labels.tolist()]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def clustering_key(labels: NDArray) -> str:
    """A short mark of a clustering, by which names given to its clusters are known to be its own."""
    return hashlib.sha256(np.ascontiguousarray(labels, dtype=np.int64).data).hexdigest()[:16]


def read_names(path: Path, labels: NDArray, n_clusters: int) -> dict[int, str]:
    """Names of the clusters of a fitted model's labels, as the report exports them."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != NAMES_FORMAT:
            raise KeyError
        names = {int(cluster): name for cluster, name in content["names"].items()}
        key = content.get("key", clustering_key(labels))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFolderError(
            f"{str(path)!r} holds no names of clusters; export them from a report."
        ) from error
    if key != clustering_key(labels):
        raise RunFolderError(
            f"{str(path)!r} names the clusters of another fit; export them from this one's report."
        )
    for cluster, name in names.items():
        if not isinstance(name, str) or not 0 <= cluster < n_clusters:
            raise RunFolderError(
                f"{str(path)!r} names cluster {cluster}, but the model has the clusters 0 to {n_clusters - 1}."
            )
    return names


def versions() -> dict[str, str]:
    """Of everything that can change a result."""
    packages = ("ddclust", "torch", "numpy", "scikit-learn", "scipy", "pillow", "snowballstemmer")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
