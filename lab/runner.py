"""Makes cells. What is done stays done, what was stopped goes on, and every result says where it comes from."""

from __future__ import annotations

import io
import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.choosing.consensus import count_votes
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.choosing.selection import agreement
from ddclust.compare import comparison
from ddclust.compare.table import Row
from ddclust.data.items import fingerprint
from ddclust.data.readers.arrays import open_npz
from ddclust.ddc import DDC
from ddclust.snapshots import SnapshotSeries
from ddclust.storage.atomic import locked, write_file, write_json
from ddclust.storage.json_files import PLAIN, checked, read_json
from ddclust.training.record import Outcome
from lab.cells import Cell, Fits, Picture, Reference, Run, Study, Work, fits_key
from lab.data import is_at_hand, load_data
from lab.parameters import model_of, network_factory
from lab.paths import Place
from lab.provenance import Clock, time_text

N_VOTE = 3
PICTURE_DPI = 100
RUN_FIELDS = ("seed", "loss", "terms", "n_iter", "clusters_used", "outcome", "seconds")

State = Literal["done", "outdated", "begun", "waiting", "no data"]


class BusyError(RuntimeError):
    """Another process works on this cell."""


@dataclass(frozen=True)
class Fitted:
    """A fit that is on disk: the model, and the labels and snapshots (if any) of each run that was kept."""

    model: DDC
    labels: NDArray[np.int64]
    snapshots: list[SnapshotSeries]


@dataclass(frozen=True)
class Job:
    """What a cell is made with: its data, the place of its files, and how its runs are trained."""

    cell: Cell
    bunch: Bunch
    place: Place
    n_jobs: int
    verbose: bool

    @property
    def folder(self) -> Path:
        """The folder of the work in progress."""
        return _work_folder(self.cell, self.place)


def state(cell: Cell, place: Place) -> State:
    """How far a cell is: done, done by another protocol, begun, waiting, or waiting for data."""
    found = read_result(place.result(cell))
    if found is not None:
        return "done" if found["protocol"] == cell.protocol() else "outdated"
    if not is_at_hand(cell.data):
        return "no data"
    return "begun" if _work_folder(cell, place).exists() else "waiting"


class ResultFile(TypedDict):
    """What a result may have; it depends on the kind of work."""

    command: NotRequired[str]
    provenance: NotRequired[dict[str, Any]]
    cell: NotRequired[str]
    protocol: NotRequired[dict[str, Any]]
    data: NotRequired[dict[str, Any]]
    summary: NotRequired[dict[str, dict[str, Any]]]
    repetitions: NotRequired[list[dict[str, Any]]]
    rows: NotRequired[list[Row]]
    run: NotRequired[dict[str, Any]]
    history: NotRequired[list[dict[str, int | float]]]
    curve: NotRequired[list[dict[str, int | float]]]
    facts: NotRequired[dict[str, Any]]
    figures: NotRequired[list[dict[str, Any]]]  # of a benchmark


def read_result(file: Path) -> dict[str, Any] | None:
    """What a cell or a benchmark has left behind, or None."""
    remedy = "remove it, and make the cell again"
    try:
        found = read_json(file, PLAIN, remedy=remedy)
    except FileNotFoundError:
        return None
    checked(found, ResultFile, what=repr(str(file)), remedy=remedy)
    return found


def run_cell(cell: Cell, place: Place, *, n_jobs: int = -1, verbose: bool = False) -> dict[str, Any]:
    """Make a cell and write its result. A cell that was stopped goes on.

    Raises
    ------
    BusyError
        Another process makes it.
    KeyboardInterrupt
        What is done so far stays on disk.
    """
    folder = _work_folder(cell, place)
    folder.mkdir(parents=True, exist_ok=True)
    lock = locked(folder / "lock")
    if lock is None:
        raise BusyError(f"Another process makes {cell.key}.")
    try:
        clock = Clock()
        bunch = load_data(cell.data)
        content = MAKERS[type(cell.work)](Job(cell, bunch, place, n_jobs, verbose), cell.work)
        result = {
            "cell": cell.key,
            "budget": cell.budget,
            "command": cell.command,
            "data": description_of(bunch),
            "protocol": cell.protocol(),
            **content,
            "provenance": clock.provenance(),
        }
        place.result(cell).parent.mkdir(parents=True, exist_ok=True)
        write_json(place.result(cell), result)
    finally:
        lock.close()
    return result


def description_of(bunch: Bunch) -> dict[str, Any]:
    """The data set of a result: name, shape, sizes of the classes and fingerprint."""
    return {
        "name": bunch.name,
        "shape": list(bunch.data.shape),
        "classes": np.bincount(bunch.target[bunch.target >= 0]).tolist(),
        "sha256": fingerprint(bunch.data),
    }


def _work_folder(cell: Cell, place: Place) -> Path:
    return place.work(f"{cell.budget}/{cell.key}")


# --- what each kind of work leaves -----------------------------------------------------------------------------------


def _reference(job: Job, reference: Reference) -> dict[str, Any]:
    """Every fit of the comparison, and the row that sums them up."""
    folder = job.folder / "comparison"
    minutes = float("inf") if reference.minutes is None else reference.minutes
    rows = comparison.compare(
        job.bunch.data,
        job.cell.n_clusters,
        folder,
        truth=job.bunch.target,
        methods=[reference.method],
        runs=reference.runs,
        max_choices=reference.choices,
        params={reference.method: reference.params},
        budget=comparison.Budget(seconds=60 * minutes),
        verbose=job.verbose,
    )
    made = sorted(file.stat().st_mtime for file in (folder / "fits").glob("*/result.json"))
    return {"rows": rows, "fits_made": {"first": time_text(made[0]), "last": time_text(made[-1])}}


def _fits(job: Job, fits: Fits) -> dict[str, Any]:
    """Every repetition: the scores of each run that was kept, of the label-free choice and of the vote."""
    repetitions = []
    for number in range(fits.repetitions):
        fit = _fitted(job, fits, number)
        if fits.smooth is not None:
            X = job.bunch.data if fits.given is None else fits.given(job.bunch, fits.seed + number)[0]
            members = fit.model.smooth_member_probabilities(X, fits.smooth)
            fit = replace(fit, labels=np.stack([member.argmax(axis=1) for member in members]))
        repetitions.append(scores_of_fit(fit, job.bunch.target))
    return {"summary": summary(repetitions), "repetitions": repetitions}


def _run(job: Job, run: Run) -> dict[str, Any]:
    """A single run: its loss and scores at its end, and along the way. Its labels stay among the work in progress."""
    model = model_of(
        run.params,
        job.cell.n_clusters,
        random_state=run.seed,
        checkpoint_dir=job.folder / "checkpoints",
        n_jobs=1,
        verbose=job.verbose,
    ).set_params(precision=run.precision)
    model.fit(job.bunch.data)
    record = model.runs_[0]
    if record["outcome"] in ("interrupted", "waiting"):
        raise KeyboardInterrupt
    truth, taken = job.bunch.target, model.snapshots_
    of_epochs = taken.probabilities.argmax(axis=2).astype(np.uint8)  # (epochs, items)
    labels = model.labels_.astype(np.uint8)
    _write_arrays(
        job.folder / "labels.npz", {"labels": labels, "snapshot_labels": of_epochs, "items": taken.items}
    )
    return {
        "run": {name: record[name] for name in RUN_FIELDS} | scores(truth, model.labels_),
        "history": model.history_,
        "curve": [
            point | {"clusters_used": len(np.unique(found))}
            for point, found in zip(curve(taken, truth), of_epochs, strict=True)
        ],
        "curve_items": len(taken.items),
    }


def _picture(job: Job, picture: Picture) -> dict[str, Any]:
    """A figure, written as an image, and the numbers that it shows."""
    fit = _fitted(job, picture.of, 0) if picture.of is not None else None
    figure, facts = picture.draw(job.bunch, fit, **picture.options)
    file = job.place.figure(job.cell.budget, job.cell.name)
    write_figure(figure, file)
    return {"picture": job.place.relative(file), "facts": facts}


def _study(job: Job, study: Study) -> dict[str, Any]:
    """The facts of a study."""
    fit = _fitted(job, study.of, 0) if study.of is not None else None
    return {"facts": study.analyse(job.bunch, fit, **study.options)}


MAKERS: dict[type[Work], Callable[[Job, Any], dict[str, Any]]] = {
    Reference: _reference,
    Fits: _fits,
    Run: _run,
    Picture: _picture,
    Study: _study,
}


def write_figure(figure: Any, file: Path) -> None:
    """Write a figure as a PNG image that is the same whenever it is drawn."""
    content = io.BytesIO()
    figure.savefig(content, dpi=PICTURE_DPI, metadata={"Software": None})
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, content.getvalue())


# --- fits ------------------------------------------------------------------------------------------------------------


def _fitted(job: Job, fits: Fits, number: int) -> Fitted:
    """A fit, made unless this or another cell has made it before."""
    cell = job.cell
    folder = job.place.work("fits") / fits_key(cell.data, cell.n_clusters, fits) / str(number)
    arrays_file = folder / "arrays.npz"
    if not arrays_file.exists():
        _fit(job, fits, number, folder)
    model = DDC.load(folder / "model", network=network_factory(fits.params))
    saved = open_npz(arrays_file)
    taken = [
        SnapshotSeries(*(saved[f"{name}{run}"] for name in SnapshotSeries._fields))
        for run in range(len(saved["labels"]))
        if f"epochs{run}" in saved
    ]
    return Fitted(model, saved["labels"], taken)


def _fit(job: Job, fits: Fits, number: int, folder: Path) -> None:
    """Train, and keep the model, the labels and the snapshots."""
    seed = fits.seed + number
    X, arguments = (job.bunch.data, {}) if fits.given is None else fits.given(job.bunch, seed)
    model = model_of(
        fits.params,
        job.cell.n_clusters,
        random_state=seed,
        checkpoint_dir=folder / "checkpoints",
        n_jobs=job.n_jobs,
        verbose=job.verbose,
    ).fit(X, **arguments)
    if any(Outcome(record["outcome"]).is_unfinished for record in model.runs_):
        raise KeyboardInterrupt
    model.save(folder / "model", overwrite=True)
    arrays = {"labels": model.member_labels_}
    for run, taken in enumerate(getattr(model, "member_snapshots_", [])):
        arrays |= {f"{name}{run}": getattr(taken, name) for name in SnapshotSeries._fields}
    _write_arrays(folder / "arrays.npz", arrays)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _write_arrays(file: Path, arrays: dict[str, Any]) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_file(file, content.getvalue())


# --- scores ----------------------------------------------------------------------------------------------------------


def scores(truth: NDArray, labels: NDArray) -> dict[str, float]:
    """ACC and NMI."""
    return {"ACC": round(clustering_accuracy(truth, labels), 4), "NMI": round(nmi(truth, labels), 4)}


def curve(snapshots: Any, truth: NDArray) -> list[dict[str, float]]:
    """ACC and NMI at the epochs of snapshots, on the items that are in them."""
    classes = truth[snapshots.items]
    moments = zip(snapshots.epochs.tolist(), snapshots.probabilities, strict=True)
    return [{"epoch": epoch} | scores(classes, A.argmax(axis=1)) for epoch, A in moments]


def scores_of_fit(fit: Fitted, truth: NDArray) -> dict[str, Any]:
    """A fit against the known classes: its label-free choice, its vote, and every run."""
    model = fit.model
    vote = scores(truth, count_votes(fit.labels[:N_VOTE]).labels) if len(fit.labels) >= N_VOTE else None
    return {
        "chosen": scores(truth, fit.labels[0]) | {"run": model.voters_[0]},
        "vote": vote,
        "history": model.history_,
        "runs": described_runs(fit, truth),
    }


def described_runs(fit: Fitted, truth: NDArray) -> list[dict[str, Any]]:
    """Every run of a fit; those that were kept with their scores and their agreement with the others."""
    place_of = {run: place for place, run in enumerate(fit.model.voters_)}
    agreements = agreement(list(fit.labels))
    runs = []
    for number, record in enumerate(fit.model.runs_):
        run = {name: record[name] for name in RUN_FIELDS} | {"losses_at": record["losses_at"]}
        if number in place_of:
            place = place_of[number]
            run |= {"agreement": round(float(agreements[place]), 4)} | scores(truth, fit.labels[place])
            if fit.snapshots:
                run["curve"] = curve(fit.snapshots[place], truth)
        runs.append(run)
    return runs


def summary(repetitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and spreads over repetitions: of the label-free choice, of single runs and of the vote."""
    found = {
        "chosen": [entry["chosen"] for entry in repetitions],
        "runs": [run for entry in repetitions for run in entry["runs"] if "ACC" in run],
        "vote": [entry["vote"] for entry in repetitions if entry["vote"]],
    }
    return {name: spread(values) for name, values in found.items() if values}


def spread(scored: list[dict[str, Any]]) -> dict[str, Any]:
    """Number, mean, standard deviation (of a sample) and largest value of ACC and NMI."""
    found: dict[str, Any] = {"n": len(scored)}
    for measure in ("ACC", "NMI"):
        values = [score[measure] for score in scored]
        found[measure] = {
            "mean": round(statistics.mean(values), 4),
            "sd": round(statistics.stdev(values), 4) if len(values) > 1 else None,
            "max": max(values),
        }
    return found
