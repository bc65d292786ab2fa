"""The result folder of a fit on the command line: labels.csv, model/, history.json, run.json and report.html.

During the fit, and after an interrupted one, it also holds checkpoints, and run.json gives the status.
"""

from __future__ import annotations

import hashlib
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
from ddclust.storage.atomic import locked, write_file, write_json
from ddclust.storage.model_folder import RESULT_MODEL
from ddclust.storage.tables import csv_text
from ddclust.training.checkpoints import RunStore
from ddclust.training.record import Outcome

if TYPE_CHECKING:
    from ddclust.ddc import DDC
    from ddclust.show.explain import Explanation

LABELS_FILE = "labels.csv"
MODEL_FOLDER = RESULT_MODEL
HISTORY_FILE = "history.json"
RUN_FILE = "run.json"
CHECKPOINTS_FOLDER = "checkpoints"
LOCK_FILE = ".lock"
REPORT_FILE = "report.html"
NAMES_FORMAT = "ddclust-names"


class ResultFolderError(ValueError):
    """A folder or a file that does not hold what a fit leaves behind."""


def description(bunch: Bunch, argument: str, options: dict[str, Any]) -> dict[str, Any]:
    """The content of run.json at the beginning of a fit."""
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
    """Hold a result folder during a fit. If a new fit fails before its first checkpoint, what it wrote is removed again."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = locked(folder / LOCK_FILE)
    if lock is None:
        raise ResultFolderError(f"Another fit is working in {str(folder)!r}; choose another folder.")
    try:
        write_json(folder / RUN_FILE, run)
        yield
    except BaseException as error:
        hopeless = isinstance(error, AllRunsFailedError) or not any(
            (folder / CHECKPOINTS_FOLDER).glob("run-*")
        )
        if folder in made and hopeless:
            (folder / RUN_FILE).unlink(missing_ok=True)
            shutil.rmtree(folder / CHECKPOINTS_FOLDER, ignore_errors=True)
        raise
    finally:
        (folder / LOCK_FILE).unlink(missing_ok=True)
        lock.close()
        _remove_empty(made)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty, from the innermost on; others may have written into them by now."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def write_results(folder: Path, model: DDC, item_names: Sequence[str], run: dict[str, Any]) -> bool:
    """Write the results of a fitted model to its folder and return whether the fit is complete."""
    complete = not any(Outcome(record["outcome"]).is_unfinished for record in model.runs_)
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
        raise ResultFolderError(
            f"{str(folder)!r} is not a result folder of 'ddclust fit': it has no {RUN_FILE}."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultFolderError(f"{str(folder / RUN_FILE)!r} is not readable JSON.") from error
    described = isinstance(run, dict) and all(isinstance(run.get(key), dict) for key in ("options", "data"))
    if not described or "status" not in run or not {"argument", "sha256"} <= run["data"].keys():
        raise ResultFolderError(f"{str(folder / RUN_FILE)!r} does not describe a fit.")
    return run


def data_argument(run: dict[str, Any]) -> str:
    """The data of a fit, as seen from here or, if it is not here, from where the fit began."""
    argument: str = run["data"]["argument"]
    path = run["data"].get("path")
    return argument if path is None or Path(argument).exists() else path


def refuse_other_data(run: dict[str, Any], sha256: str, source: str, folder: Path) -> None:
    """Raise an error if data with this fingerprint is not what the fit in the folder was given."""
    if sha256 != run["data"]["sha256"]:
        raise ResultFolderError(
            f"{source!r} is not the data of the fit in {str(folder)!r}: its content differs."
        )


def open_model(folder: Path, *, device: str | None = None) -> DDC:
    """The model in a result folder or a model folder."""
    from ddclust.ddc import DDC

    return DDC.load(folder, device=device)


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds a fit that is still running or was stopped."""
    return (folder / RUN_FILE).exists() and read_run(folder)["status"] != "complete"


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The record of each run, from the checkpoints as long as there are any."""
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
    """CSV text with the item, its cluster, the confidence (the largest soft assignment) and the agreement of the vote.

    If clusters have names, these are the last column, which is empty for clusters without one.
    """
    columns: dict[str, Iterable[Any]] = {
        "item": item_names,
        "cluster": vote.labels.tolist(),
        "confidence": (f"{share:.4f}" for share in probabilities.max(axis=1).tolist()),
        "agreement": (f"{share:.4f}" for share in vote.agreement.tolist()),
    }
    if cluster_names is not None:
        columns["name"] = [cluster_names.get(cluster, "") for cluster in vote.labels.tolist()]
    return csv_text(tuple(columns), zip(*columns.values(), strict=True))


def influences_table(item_names: Sequence[str], explanation: Explanation) -> str:
    """CSV text with the most influential features or words of each item."""
    tops = zip(item_names, explanation.clusters.tolist(), explanation.top_features(), strict=True)
    return csv_text(
        ("item", "cluster", "feature", "influence"),
        (
            (name, cluster, feature, f"{influence:.4g}")
            for name, cluster, top in tops
            for feature, influence in top
        ),
    )


def clustering_key(labels: NDArray) -> str:
    """A short hash of a clustering, which ties the names of clusters to it."""
    return hashlib.sha256(np.ascontiguousarray(labels, dtype=np.int64).data).hexdigest()[:16]


def read_names(path: Path, labels: NDArray, n_clusters: int) -> dict[int, str]:
    """Names of the clusters of a fit, from a file that its report exported."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != NAMES_FORMAT:
            raise KeyError
        names = {int(cluster): name for cluster, name in content["names"].items()}
        key = content.get("key", clustering_key(labels))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultFolderError(
            f"{str(path)!r} holds no names of clusters; export them from the report of the fit."
        ) from error
    if key != clustering_key(labels):
        raise ResultFolderError(
            f"{str(path)!r} names the clusters of another fit; export them from the report of this one."
        )
    for cluster, name in names.items():
        if not isinstance(name, str) or not 0 <= cluster < n_clusters:
            raise ResultFolderError(
                f"{str(path)!r} names cluster {cluster}, but the model has the clusters 0 to {n_clusters - 1}."
            )
    return names


def versions() -> dict[str, str]:
    """The versions of everything that can change a result."""
    packages = ("ddclust", "torch", "numpy", "scikit-learn", "scipy", "pillow", "snowballstemmer")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
