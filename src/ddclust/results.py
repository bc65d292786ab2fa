"""The result folder of a fit on the command line: labels.csv, names.json, model/, history.json, run.json, report.html.

During the fit, and after an interrupted one, it also holds checkpoints, and run.json gives the status.
"""

from __future__ import annotations

import hashlib
import math
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.choosing.consensus import Vote
from ddclust.choosing.rejection import REFUSED
from ddclust.choosing.selection import AllRunsFailedError
from ddclust.data.items import fingerprint
from ddclust.storage.atomic import is_locked, locked, refuse_links, write_file, write_json
from ddclust.storage.json_files import read_json, write_sealed
from ddclust.storage.model_folder import CARD_FILE, DESCRIPTION_FILE, RESULT_MODEL, TENSORS_PATTERN
from ddclust.storage.tables import csv_text
from ddclust.storage.workspace import LOCK_FILE as WORKSPACE_LOCK
from ddclust.training.checkpoints import CHECKPOINTS, NEIGHBORS_FILE, RunStore
from ddclust.training.record import Outcome, RunRecord

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
FOUND = ("precision", "voters", "runs", "files")  # the entries of run.json that a fit adds with its results
NAMES_FILE = "names.json"
NAMES_FORMAT = "ddclust-names"


class ResultFolderError(ValueError):
    """A folder or a file that does not hold what a fit leaves behind."""


class DataOfFit(TypedDict):
    """What run.json says about the data."""

    argument: str
    path: NotRequired[str | None]
    name: NotRequired[str]
    shape: NotRequired[list[int]]
    dtype: NotRequired[str]
    sha256: str
    skipped: NotRequired[dict[str, str]]
    notes: NotRequired[list[str]]


class RunFile(TypedDict):
    """The content of run.json. What comes after ``versions`` is there once the fit has results."""

    status: Literal["running", "interrupted", "complete"]
    command: list[str]
    options: dict[str, bool | int | float | str | None]
    data: DataOfFit
    versions: NotRequired[dict[str, str]]
    seconds: NotRequired[dict[str, float]]
    warnings: NotRequired[list[str]]
    precision: NotRequired[str]  # in which the networks were trained
    voters: NotRequired[list[int]]
    runs: NotRequired[list[RunRecord]]
    files: NotRequired[dict[str, str]]  # the SHA-256 of each file


class NamesFile(TypedDict):
    """Names of clusters, as a report exports them."""

    format: Literal["ddclust-names"]
    key: NotRequired[str]
    names: dict[int, str]


def description(bunch: Bunch, argument: str, options: dict[str, Any]) -> RunFile:
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
            "notes": bunch.notes,
        },
        "versions": versions(),
    }


@contextmanager
def under_way(folder: Path, run: RunFile, *, replaces: bool = False) -> Iterator[None]:
    """Hold a result folder during a fit. If a new fit fails before its first checkpoint, what it wrote is removed again.

    With ``replaces``, the results of an earlier fit in the folder are removed. At every moment the folder holds the whole
    earlier fit, or one under way that can be resumed.
    """
    refuse_links(folder, ResultFolderError)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    lock = locked(folder / LOCK_FILE)
    if lock is None:
        raise ResultFolderError(f"Another fit is working in {str(folder)!r}; choose another folder.")
    try:
        if replaces:
            _remove_files(_own_checkpoints(folder))
        # Results of an earlier part of the fit will be replaced, not all at the same moment.
        write_sealed(folder / RUN_FILE, {name: value for name, value in run.items() if name not in FOUND})
        if replaces:
            _remove_files(_own_results(folder))
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


def refuse_to_replace(folder: Path) -> None:
    """Raise an error unless a folder is empty, or holds the results of a fit that nobody is working on."""
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / RUN_FILE).exists()):
        raise ResultFolderError(
            f"{str(folder)!r} holds no results of 'ddclust fit' that could be replaced; choose another name."
        )
    if is_locked(folder / LOCK_FILE):
        raise ResultFolderError(
            f"A fit is working in {str(folder)!r}; stop it first, or choose another name."
        )
    own = {*_own_checkpoints(folder), *_own_results(folder)}
    for inner in (folder / MODEL_FOLDER, folder / CHECKPOINTS_FOLDER):
        if inner.is_symlink() or (inner.is_dir() and not own.issuperset(inner.iterdir())):
            raise ResultFolderError(
                f"{str(inner)!r} is not, or not only, what a fit has written, so it is not replaced; choose another name."
            )


def _own_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that a fit may have left in a folder; what says whose they are comes last."""
    checkpoints = folder / CHECKPOINTS_FOLDER
    return [
        *(*checkpoints.glob("run-*.[ab]"), *checkpoints.glob(".*.partial")),
        *(checkpoints / name for name in (NEIGHBORS_FILE, WORKSPACE_LOCK, CHECKPOINTS.file)),
    ]


def _own_results(folder: Path) -> list[Path]:
    """The results that a fit may have left in a folder, besides run.json."""
    model = folder / MODEL_FOLDER
    return [
        *(folder / name for name in (LABELS_FILE, HISTORY_FILE, REPORT_FILE, NAMES_FILE)),
        *(
            model / DESCRIPTION_FILE,
            model / CARD_FILE,
            *model.glob(TENSORS_PATTERN),
            *model.glob(".*.partial"),
        ),
    ]


def _remove_files(files: Sequence[Path]) -> None:
    """Remove files, and the folders inside a result folder that are empty then."""
    for file in files:
        file.unlink(missing_ok=True)
    for inner in {file.parent for file in files if file.parent.name in (MODEL_FOLDER, CHECKPOINTS_FOLDER)}:
        _remove_empty([inner])


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty, from the innermost on; others may have written into them by now."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def write_results(
    folder: Path, model: DDC, item_names: Sequence[str], cluster_names: dict[int, str], run: RunFile
) -> bool:
    """Write the results of a fitted model to its folder and return whether the fit is complete."""
    complete = not any(Outcome(record["outcome"]).is_unfinished for record in model.runs_)
    model.save(folder / MODEL_FOLDER, overwrite=True)
    write_sealed(
        folder / NAMES_FILE,
        {
            "format": NAMES_FORMAT,
            "key": clustering_key(model.labels_),
            "names": {str(cluster): name for cluster, name in cluster_names.items()},
        },
    )
    vote = Vote(model.labels_, model.agreement_)
    table = labels_table(item_names, vote, model.probabilities_, cluster_names)
    write_file(folder / LABELS_FILE, table.encode())
    write_json(folder / HISTORY_FILE, model.history_)
    records = [{key: value for key, value in record.items() if key != "history"} for record in model.runs_]
    found = {
        "status": "complete" if complete else "interrupted",
        "precision": model.setup_.precision,
        "voters": model.voters_,
        "runs": records,
        "files": {name: _digest(folder / name) for name in (LABELS_FILE, HISTORY_FILE)},
    }
    write_sealed(folder / RUN_FILE, {**run, **found})
    if complete:
        shutil.rmtree(folder / CHECKPOINTS_FOLDER, ignore_errors=True)
    return complete


def read_run(folder: Path) -> RunFile:
    """The content of run.json."""
    try:
        return read_json(
            folder / RUN_FILE,
            RunFile,
            remedy="copy it again from where the folder came, or fit again",
            error=ResultFolderError,
        )
    except FileNotFoundError:
        raise ResultFolderError(
            f"{str(folder)!r} is not a result folder of 'ddclust fit': it has no {RUN_FILE}."
        ) from None


def labels_file(folder: Path) -> Path:
    """The labels in a result folder, as the fit wrote them."""
    file = folder / LABELS_FILE
    if (folder / RUN_FILE).exists() and changed_files(folder, read_run(folder), LABELS_FILE):
        raise ResultFolderError(
            f"{str(file)!r} is not as the fit wrote it: it is damaged or was edited; to use it as it is, give the file"
            " instead of the folder."
        )
    return file


def changed_files(folder: Path, run: RunFile, *names: str) -> list[Path]:
    """Those files of a result folder, or of these in it, that are not as the fit wrote them, or are missing."""
    digests = run.get("files", {})
    wanted = [name for name in (names or (LABELS_FILE, HISTORY_FILE)) if name in digests]
    return [folder / name for name in wanted if _digest(folder / name) != digests[name]]


def _digest(file: Path) -> str | None:
    """The SHA-256 of a file, None if there is none."""
    if not file.is_file():
        return None
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def data_argument(run: RunFile) -> str:
    """The data of a fit, as seen from here or, if it is not here, from where the fit began."""
    argument: str = run["data"]["argument"]
    path = run["data"].get("path")
    return argument if path is None or Path(argument).exists() else path


def refuse_other_data(run: RunFile, sha256: str, source: str, folder: Path) -> None:
    """Raise an error if data with this fingerprint is not what the fit in the folder was given."""
    if sha256 != run["data"]["sha256"]:
        raise ResultFolderError(
            f"{source!r} is not the data of the fit in {str(folder)!r}, or has changed since; give the same data."
        )


def open_model(folder: Path, *, device: str | None = None) -> DDC:
    """The model in a result folder or a model folder."""
    from ddclust.ddc import DDC

    return DDC.load(folder, device=device)


def status(folder: Path) -> str:
    """How the fit in a folder stands: "running", "interrupted" or "complete"."""
    noted: str = read_run(folder)["status"]
    return "interrupted" if noted == "running" and not is_locked(folder / LOCK_FILE) else noted


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds a fit that is still running or was stopped."""
    return (folder / RUN_FILE).exists() and read_run(folder)["status"] != "complete"


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The record of each run, from the checkpoints as long as the fit is not complete."""
    checkpoints = folder / CHECKPOINTS_FOLDER
    unfinished = (checkpoints / CHECKPOINTS.file).exists() and is_unfinished(folder)
    stored = RunStore(checkpoints).records() if unfinished else read_run(folder).get("runs", [])
    records = [record.public() for record in stored]
    if not is_locked(folder / LOCK_FILE):  # a process that was killed could not say so itself
        for record in records:
            if record["outcome"] == Outcome.RUNNING:
                record["outcome"] = str(Outcome.INTERRUPTED)
    return records


def labels_table(
    item_names: Sequence[str],
    vote: Vote,
    probabilities: NDArray,
    cluster_names: dict[int, str] | None = None,
) -> str:
    """CSV text of :func:`labels_columns`; cells are empty where there is nothing to say."""
    columns = labels_columns(item_names, vote, probabilities, cluster_names)
    for share in ("confidence", "agreement"):
        columns[share] = map(_share_cell, columns[share])
    return csv_text(tuple(columns), zip(*columns.values(), strict=True))


def labels_columns(
    item_names: Sequence[str],
    vote: Vote,
    probabilities: NDArray,
    cluster_names: dict[int, str] | None = None,
) -> dict[str, Iterable[Any]]:
    """Columns with the item, its cluster, the confidence (the largest soft assignment) and the agreement of the runs.

    The confidence of an item that was refused is NaN, as is the agreement of a single run. If clusters have names, these are the
    last column, which is empty for clusters without one.
    """
    confidence = np.where(vote.labels == REFUSED, np.nan, probabilities.max(axis=1))
    columns: dict[str, Iterable[Any]] = {
        "item": item_names,
        "cluster": vote.labels.tolist(),
        "confidence": confidence.tolist(),
        "agreement": vote.agreement.tolist(),
    }
    if cluster_names is not None:
        columns["name"] = [cluster_names.get(cluster, "") for cluster in vote.labels.tolist()]
    return columns


def _share_cell(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.4f}"


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


def names_of_clusters(folder: Path, given: Path | None, model: DDC) -> dict[int, str] | None:
    """The names that a fit proposed, and those given in a file instead; None if there are neither.

    The folder is the result folder of the fit or the model folder in it.
    """
    names = None
    in_results = folder.resolve().name == MODEL_FOLDER and (folder.resolve().parent / RUN_FILE).exists()
    home = folder.resolve().parent if in_results else folder
    for path in (home / NAMES_FILE, given):
        if path is not None and (path == given or path.exists()):
            names = (names or {}) | read_names(path, model.labels_, model.n_clusters_)
    return names


def read_names(path: Path, labels: NDArray, n_clusters: int) -> dict[int, str]:
    """Names of the clusters of a fit, from a file that it or its report wrote."""
    content: NamesFile = read_json(
        path, NamesFile, remedy="export the names from the report of the fit", error=ResultFolderError
    )
    names, key = content["names"], content.get("key", clustering_key(labels))
    if key != clustering_key(labels):
        raise ResultFolderError(
            f"{str(path)!r} names the clusters of another fit; export them from the report of this one."
        )
    for cluster in names:
        if not 0 <= cluster < n_clusters:
            raise ResultFolderError(
                f"{str(path)!r} names cluster {cluster}, but the model has the clusters 0 to {n_clusters - 1}."
            )
    return names


def versions() -> dict[str, str]:
    """The versions of everything that can change a result."""
    packages = ("ddclust", "torch", "numpy", "scikit-learn", "scipy", "pillow", "snowballstemmer")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
