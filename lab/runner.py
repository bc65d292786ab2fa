"""Makes cells. What is done stays done, what was stopped goes on, and every result says where it comes from."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.choosing.consensus import count_votes
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.choosing.selection import agreement
from ddclust.compare import comparison
from ddclust.data.items import fingerprint
from ddclust.data.text import StemVectorizer
from ddclust.datasets import NAMED, load
from ddclust.ddc import DDC, Snapshots
from ddclust.results import versions
from ddclust.storage.atomic import locked, write_file, write_json
from lab.cells import Cell, Fits, Picture, Rival, fits_key

N_VOTE = 3
PICTURE_DPI = 100

State = Literal["done", "outdated", "begun", "waiting", "no data"]


class BusyError(RuntimeError):
    """Another process works at this cell."""


@dataclass(frozen=True)
class Place:
    """Where things are kept: RESULTS.md, and in ``experiments`` beside it results, figures and what is under way."""

    folder: Path

    @property
    def page(self) -> Path:
        """What is written from all results."""
        return self.folder / "RESULTS.md"

    def result(self, cell: Cell) -> Path:
        """The JSON file of a cell."""
        return self.folder / "experiments" / "results" / cell.budget / f"{cell.key}.json"

    def picture(self, cell: Cell) -> Path:
        """The image of a cell that is a figure."""
        return self.folder / "experiments" / "figures" / cell.budget / f"{cell.name}.png"

    def work(self, name: str) -> Path:
        """A folder for what is under way. It can be deleted once all is done."""
        return self.folder / "experiments" / "work" / name


def state(cell: Cell, place: Place) -> State:
    """How far a cell is: done, done by another protocol, begun, waiting, or waiting for data."""
    found = read_result(place.result(cell))
    if found is not None:
        return "done" if found["protocol"] == cell.protocol() else "outdated"
    if NAMED[cell.data].at_hand() == "no":
        return "no data"
    return "begun" if _work_folder(cell, place).exists() else "waiting"


def read_result(file: Path) -> dict[str, Any] | None:
    """What a cell left behind, or None."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def run_cell(cell: Cell, place: Place, *, verbose: bool = False) -> dict[str, Any]:
    """Make a cell and write its result. Stopped and called again, it goes on.

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
        begun, start = _now(), time.perf_counter()
        bunch = _vectors_of(load(cell.data))
        if isinstance(cell.work, Rival):
            content = _rival(cell, cell.work, bunch, folder, verbose)
        elif isinstance(cell.work, Fits):
            content = _fits(cell, cell.work, bunch, place, verbose)
        else:
            content = _picture(cell, cell.work, bunch, place, verbose)
        result = {
            "cell": cell.key,
            "budget": cell.budget,
            "command": cell.command,
            "data": {
                "name": bunch.name,
                "shape": list(bunch.data.shape),
                "classes": np.bincount(bunch.target).tolist(),
                "sha256": fingerprint(bunch.data),
            },
            "protocol": cell.protocol(),
            **content,
            "provenance": provenance()
            | {"begun": begun, "ended": _now(), "seconds": round(time.perf_counter() - start, 1)},
        }
        place.result(cell).parent.mkdir(parents=True, exist_ok=True)
        write_json(place.result(cell), result)
    finally:
        lock.close()
    return result


def provenance() -> dict[str, Any]:
    """The commit, versions and machine of this process."""
    source = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            ran = subprocess.run(
                ["git", "-C", source, *arguments], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return None
        return ran.stdout.strip()

    changes = git("status", "--porcelain", "--", str(source.parent))
    return {
        "commit": git("rev-parse", "HEAD"),
        "changed_since": None if changes is None else bool(changes),
        "versions": versions(),
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _now() -> str:
    return _time(time.time())


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _work_folder(cell: Cell, place: Place) -> Path:
    return place.work(f"{cell.budget}/{cell.key}")


def _vectors_of(bunch: Bunch) -> Bunch:
    """The data with texts as TF-IDF vectors, as every method takes them."""
    if not hasattr(bunch.data, "shape"):
        bunch.texts = bunch.data
        bunch.data = StemVectorizer().fit_transform(bunch.data)
    return bunch


def _rival(cell: Cell, rival: Rival, bunch: Bunch, folder: Path, verbose: bool) -> dict[str, Any]:
    """Every fit of the comparison, and the row that it makes of them."""
    rows = comparison.compare(
        bunch.data,
        cell.n_clusters,
        folder / "comparison",
        truth=bunch.target,
        methods=[rival.method],
        runs=rival.runs,
        max_choices=rival.choices,
        params={rival.method: rival.params},
        budget=comparison.Budget(seconds=60 * rival.minutes),
        verbose=verbose,
    )
    made = sorted(file.stat().st_mtime for file in (folder / "comparison" / "fits").glob("*/result.json"))
    return {"rows": rows, "fits_made": {"first": _time(made[0]), "last": _time(made[-1])}}


def _fits(cell: Cell, fits: Fits, bunch: Bunch, place: Place, verbose: bool) -> dict[str, Any]:
    """Every repetition: the scores of each run that was kept, of the label-free choice and of the vote."""
    repetitions = []
    for number in range(fits.repetitions):
        fit = _fitted(cell, fits, number, bunch, place, verbose)
        if fits.smooth is not None:
            X = bunch.data if fits.given is None else fits.given(bunch, fits.seed + number)[0]
            members = fit.model.smooth_member_probabilities(X, fits.smooth)
            fit = replace(fit, labels=np.stack([member.argmax(axis=1) for member in members]))
        repetitions.append(scores_of_fit(fit, bunch.target))
    chosen, votes = ([entry[name] for entry in repetitions] for name in ("chosen", "vote"))
    runs = [run for entry in repetitions for run in entry["runs"] if "ACC" in run]
    summary = {"chosen": spread(chosen), "runs": spread(runs)}
    if all(votes):
        summary["vote"] = spread(votes)
    return {"summary": summary, "repetitions": repetitions}


def spread(scores: list[dict[str, Any]]) -> dict[str, Any]:
    """Number, mean, standard deviation (of a sample) and largest value of ACC and NMI."""
    found: dict[str, Any] = {"n": len(scores)}
    for measure in ("ACC", "NMI"):
        values = [score[measure] for score in scores]
        found[measure] = {
            "mean": round(statistics.mean(values), 4),
            "sd": round(statistics.stdev(values), 4) if len(values) > 1 else None,
            "max": max(values),
        }
    return found


def scores_of_fit(fit: Fitted, truth: NDArray) -> dict[str, Any]:
    """A fit against the known classes: its label-free choice, its vote, and every run."""
    model = fit.model
    place_of = {run: place for place, run in enumerate(model.voters_)}
    agreements = agreement(list(fit.labels))  # of those that were kept
    runs = []
    for number, record in enumerate(model.runs_):
        run = {
            name: record[name] for name in ("seed", "loss", "terms", "n_iter", "clusters_used", "outcome")
        } | {"seconds": record["seconds"], "losses_at": record["rungs"]}
        if number in place_of:
            run["agreement"] = round(float(agreements[place_of[number]]), 4)
            run |= scores(truth, fit.labels[place_of[number]])
            if fit.snapshots:
                run["curve"] = curve(fit.snapshots[place_of[number]], truth)
        runs.append(run)
    vote = scores(truth, count_votes(fit.labels[:N_VOTE]).labels) if len(fit.labels) >= N_VOTE else None
    return {
        "chosen": scores(truth, fit.labels[0]) | {"run": model.voters_[0]},
        "vote": vote,
        "history": model.history_,
        "runs": runs,
    }


def scores(truth: NDArray, labels: NDArray) -> dict[str, float]:
    """ACC and NMI."""
    return {"ACC": round(clustering_accuracy(truth, labels), 4), "NMI": round(nmi(truth, labels), 4)}


def curve(snapshots: Snapshots, truth: NDArray) -> list[dict[str, float]]:
    """ACC and NMI at the epochs of snapshots, on the items that are in them."""
    classes = truth[snapshots.items]
    moments = zip(snapshots.epochs.tolist(), snapshots.probabilities, strict=True)
    return [{"epoch": epoch} | scores(classes, A.argmax(axis=1)) for epoch, A in moments]


@dataclass(frozen=True)
class Fitted:
    """A fit that is on disk: the model, the labels by each run that was kept, and their snapshots, if any."""

    model: DDC
    labels: NDArray[np.int64]
    snapshots: list[Snapshots]


def _fitted(cell: Cell, fits: Fits, number: int, bunch: Bunch, place: Place, verbose: bool) -> Fitted:
    """A fit, made unless this or another cell has made it before."""
    folder = place.work("fits") / fits_key(cell.data, cell.n_clusters, fits) / str(number)
    arrays_file = folder / "arrays.npz"
    if not arrays_file.exists():
        seed = fits.seed + number
        X, arguments = (bunch.data, {}) if fits.given is None else fits.given(bunch, seed)
        model = fits.model(
            cell.n_clusters, random_state=seed, checkpoint_dir=folder / "checkpoints", verbose=verbose
        ).fit(X, **arguments)
        if any(record["outcome"] in ("interrupted", "waiting") for record in model.runs_):
            raise KeyboardInterrupt
        model.save(folder / "model", overwrite=True)
        arrays = {"labels": model.member_labels_}
        for run, snapshots in enumerate(getattr(model, "member_snapshots_", [])):
            arrays |= {f"{name}{run}": value for name, value in snapshots._asdict().items()}
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_file(arrays_file, content.getvalue())
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    given = {name: fits.params.get(name) for name in ("network", "loss") if callable(fits.params.get(name))}
    model = DDC.load(folder / "model", **given)
    with np.load(arrays_file, allow_pickle=False) as saved:
        taken = [
            Snapshots(*(saved[f"{name}{run}"] for name in Snapshots._fields))
            for run in range(len(saved["labels"]))
            if f"epochs{run}" in saved
        ]
        if taken:
            model.snapshots_ = taken[0]
        return Fitted(model, saved["labels"], taken)


def _picture(cell: Cell, picture: Picture, bunch: Bunch, place: Place, verbose: bool) -> dict[str, Any]:
    """Draw a figure and write it."""
    fit = _fitted(cell, picture.of, 0, bunch, place, verbose) if picture.of is not None else None
    figure, facts = picture.draw(bunch, fit)
    content = io.BytesIO()
    figure.savefig(content, dpi=PICTURE_DPI, metadata={"Software": None})
    file = place.picture(cell)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, content.getvalue())
    return {"picture": file.relative_to(place.folder).as_posix(), "facts": facts}
