"""Several methods on the same data by the paper's protocol, one fit after the other, each in a process of its own.

A fit that fails, or takes too much time or memory, costs nothing but itself. What is done stays on disk, so a
comparison that was stopped goes on.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from tqdm import tqdm

from ddclust.choosing.metrics import clustering_accuracy, known_classes, nmi
from ddclust.compare.methods import METHODS, Job
from ddclust.data.items import fingerprint
from ddclust.results import versions
from ddclust.storage.atomic import locked, write_file, write_json

COMPARISON_FILE = "comparison.json"
TABLE_FILE = "table.csv"
LABELS_FILE = "labels.csv"
LOCK_FILE = "lock"
POLL_SECONDS = 0.1
DEFAULT_METHODS = tuple(METHODS)


class ComparisonError(ValueError):
    """A comparison that cannot go on in this folder."""


@dataclass(frozen=True)
class Budget:
    """What one fit may take: seconds, and bytes of memory together with its worker processes."""

    seconds: float = float("inf")
    bytes: float = float("inf")


@dataclass(frozen=True)
class Cell:
    """One fit of the comparison and, if it has been made, its result."""

    title: str
    params: dict[str, Any]
    result: dict[str, Any]
    labels: Any = None  # an array, None if the fit failed


def compare(
    data: Any,
    n_clusters: int,
    folder: str | os.PathLike[str],
    *,
    truth: Sequence[Any] | NDArray | None = None,
    item_names: Sequence[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    runs: int = 4,
    max_choices: int = 9,
    max_iter: int = 3500,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    seed: int = 0,
    verbose: bool | int = False,
) -> list[dict[str, Any]]:
    """Fit every method to the data and tabulate the results.

    Parameters
    ----------
    data : array, memory map or sparse matrix
        Vectors or images, as :class:`ddclust.DDC` takes them. Methods for vectors get it flattened, in DDC's scaling.
    n_clusters : int
    folder : path-like
        A new folder, or that of a comparison of the same data, which goes on.
    truth : sequence, optional
        The known classes; None, NaN, "" and -1 are unknown. The fits never see them: they only score, and choose what
        the paper chooses with them.
    item_names : sequence of str, optional
    methods : sequence of str
        Of ``ddclust.compare.comparison.METHODS``.
    runs : int, default=4
        Restarts of methods that have them. The paper has 20.
    max_choices : int, default=9
        Hyperparameters to try of methods that have them, the default first.
    max_iter : int, default=3500
        Of DDC.
    params : mapping of method to mapping, optional
        Parameters of methods, such as ``{"dec": {"finetune_iter": 1000}}``, for each of their choices.
    budget : Budget
        Of a single fit.
    seed : int, default=0
    verbose : bool or int, default=False

    Returns
    -------
    list of dict
        A row for each method, also written to the folder as JSON and CSV: see :func:`row`.
    """
    folder = Path(folder)
    methods = list(dict.fromkeys(methods))
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise ValueError(
            f"There is no method {unknown[0] if unknown else ''!r}; choose from {', '.join(METHODS)}."
        )
    n = data.shape[0]
    codes = None if truth is None else known_classes(truth)[0]
    for name, given in (("truth", codes), ("item_names", item_names)):
        if given is not None and len(given) != n:
            raise ValueError(f"{name} has {len(given):,} entries, but there are {n:,} items.")
    if codes is not None and not (codes >= 0).any():
        raise ValueError("truth knows the class of no item; leave it out.")
    options = {"runs": runs, "max_iter": max_iter}
    lock = _claim(folder, data, n_clusters)
    try:
        with data_file(folder, data) as file:
            jobs = list(_jobs(folder, file, methods, n_clusters, options, max_choices, params or {}, seed))
            with tqdm(jobs, unit="fit", disable=not verbose) as bar:
                for job in bar:
                    bar.set_description(job.method)
                    if not _is_made(job, budget):
                        make_fit(job, budget, partial(_show, bar))
        cells = [cell for job in jobs for cell in _cells(job)]
        protocol = {"seed": seed, "choices": max_choices, "params": params or {}, **options}
        rows = []
        for title in (title for method in methods for title in METHODS[method].titles):
            of_title = [cell for cell in cells if cell.title == title]
            if of_title:
                rows.append(row(title, of_title, codes, n_clusters) | {"protocol": protocol})
        _write_tables(folder, rows, item_names)
    finally:
        lock.close()
    return [_without_labels(entry) for entry in rows]


def _claim(folder: Path, data: Any, n_clusters: int) -> IO[str]:
    """Make the folder this comparison's, or check that it is; returns the lock on it."""
    identity = {"data": fingerprint(data), "n_clusters": n_clusters, "versions": versions()}
    file = folder / COMPARISON_FILE
    if not file.exists() and folder.exists() and any(p.name != LOCK_FILE for p in folder.iterdir()):
        raise ComparisonError(f"{str(folder)!r} holds other files; choose an empty or new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = locked(folder / LOCK_FILE)
    if lock is None:
        raise ComparisonError(f"Another comparison is going on in {str(folder)!r}.")
    if not file.exists():
        write_json(file, {**identity, "rows": []})
    found = _read(file)
    reasons = {
        "data": "of other data",
        "n_clusters": "with another number of clusters",
        "versions": "by other versions of ddclust or its libraries",
    }
    for name, what in reasons.items():
        if found.get(name) != identity[name]:
            lock.close()
            raise ComparisonError(f"{str(folder)!r} holds a comparison {what}; choose another folder.")
    return lock


@contextmanager
def data_file(folder: Path, data: Any) -> Iterator[Path]:
    """The data in a file that every fit can map into its memory, for as long as the block lasts.

    What fits share is left beside it. After a kill the next comparison in the folder writes it anew.
    """
    place = folder / "data"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        is_sparse: bool = scipy.sparse.issparse(data)
        if is_sparse:
            file = place / "data.npz"
            scipy.sparse.save_npz(file, data.tocsr(), compressed=False)
        else:
            file = place / "data.npy"
            np.save(file, np.asarray(data))
        yield file.resolve()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _jobs(
    folder: Path,
    file: Path,
    methods: Sequence[str],
    n_clusters: int,
    options: dict[str, int],
    max_choices: int,
    params: Mapping[str, Mapping[str, Any]],
    seed: int,
) -> Iterator[Job]:
    for name in methods:
        method = METHODS[name]
        own_options = {option: options[option] for option in method.options}
        for number, choice in enumerate(method.choices[:max_choices]):
            for run in range(options["runs"] if method.restarts else 1):
                place = folder / "fits" / f"{name}-{number}-{run}"
                own_params = choice | dict(params.get(name, {}))
                yield Job(
                    name, own_params, n_clusters, seed + run, own_options, str(file), str(place.resolve())
                )


def _show(bar: tqdm, seconds: float, used: int) -> None:
    bar.set_postfix(seconds=int(seconds), MB=used >> 20, refresh=False)
    bar.update(0)


def _is_made(job: Job, budget: Budget) -> bool:
    """Whether the folder holds the result of this very job. What failed, or had a smaller budget, is made again."""
    folder = Path(job.folder)
    elsewhere = {"data": "", "folder": ""}
    if _read(folder / "job.json") | elsewhere != asdict(job) | elsewhere:
        shutil.rmtree(folder, ignore_errors=True)  # of other parameters
        return False
    result = _read(folder / "result.json")
    if "peak_mb" not in result:  # which is the last thing to be written
        return False
    if "limit" in result:
        return all(getattr(budget, name) <= value for name, value in result["limit"].items())
    return "error" not in result


def make_fit(job: Job, budget: Budget, on_poll: Callable[[float, int], None]) -> dict[str, Any]:
    """Make a fit in a new process, stop it if it exceeds the budget, and return the result it leaves in its folder.

    ``on_poll`` is told the seconds and bytes so far, ten times a second.
    """
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    job_file, result_file = folder / "job.json", folder / "result.json"
    result_file.unlink(missing_ok=True)
    write_json(job_file, asdict(job))
    start, peak, limit = time.perf_counter(), 0, None
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ddclust.compare.methods", job_file, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while limit is None and process.poll() is None:
                time.sleep(POLL_SECONDS)
                seconds = time.perf_counter() - start
                used = session_bytes(process.pid)
                peak = max(peak, used)
                if process.poll() is not None:
                    break
                if seconds > budget.seconds:
                    limit = {"seconds": budget.seconds}
                elif used > budget.bytes:
                    limit = {"bytes": budget.bytes}
                on_poll(seconds, used)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    result: dict[str, Any]
    if limit is not None:
        result = {"error": _words(limit), "limit": limit}
    elif result_file.exists():
        result = _read(result_file)
    else:
        reason = "killed, perhaps for lack of memory" if process.returncode < 0 else "crashed"
        result = {"error": f"The process was {reason}; see {folder / 'log.txt'}."}
    result = {**result, "peak_mb": round(peak / 2**20, 1)}
    write_json(result_file, result)
    if "error" not in result:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return result


def _read(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _words(limit: dict[str, float]) -> str:
    if "seconds" in limit:
        return f"It took more than {limit['seconds'] / 60:g} minutes."
    return f"It took more than {limit['bytes'] / 2**30:.1f} GB of memory."


def session_bytes(session: int) -> int:
    """Memory of all processes of a session: their own pages, and the most that one of them shares.

    0 where the system has no /proc.
    """
    own, shared = 0, 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            _, resident, file_pages = (int(x) for x in (entry / "statm").read_text().split()[:3])
        except (OSError, ValueError):
            continue  # it has just ended
        own += resident - file_pages
        shared = max(shared, file_pages)
    return (own + shared) * os.sysconf("SC_PAGE_SIZE") if own else 0


def _cells(job: Job) -> Iterator[Cell]:
    """The results of a fit under each of its titles; a failed one stands under all of them."""
    folder = Path(job.folder)
    result = _read(folder / "result.json")
    for title in METHODS[job.method].titles:
        if "error" in result:
            yield Cell(title, job.params, result)
        elif title in result.get("titles", ()):
            yield Cell(title, job.params, result, np.load(folder / f"{title}.npy", allow_pickle=False))


def row(title: str, cells: list[Cell], truth: Any, n_clusters: int) -> dict[str, Any]:
    """What a comparison says of a method.

    ``label_free`` is the fit that would be chosen without knowing the classes, ``best`` the one that agrees most with
    them, as in the paper's table of baselines, each with NMI and ACC (if the truth is known), parameters and seconds;
    ``seconds`` is the median of a fit, ``peak_mb`` the most memory of any, ``failures`` and ``warnings`` what went wrong.
    ``truth`` are codes; items of code -1 do not count.
    """
    made = [cell for cell in cells if cell.labels is not None]
    entry: dict[str, Any] = {
        "method": title,
        "fits": len(made),
        "failures": [{"params": c.params, "error": c.result["error"]} for c in cells if "error" in c.result],
    }
    messages = sorted({message for cell in made for message in cell.result["warnings"]})
    entry["warnings"] = messages
    if not made:
        return entry
    chosen = chosen_without_labels(made, n_clusters)
    entry |= {
        "seconds": round(statistics.median(cell.result["seconds"] for cell in made), 2),
        "total_seconds": round(sum(cell.result["seconds"] for cell in made), 1),
        "peak_mb": max(cell.result["peak_mb"] for cell in made),
        "label_free": _scored(chosen, truth),
        "labels": chosen.labels,
    }
    if truth is not None:
        scores = [_scored(cell, truth) for cell in made]
        entry["best"] = max(scores, key=lambda score: score["ACC"])
        for measure in ("NMI", "ACC"):
            values = [score[measure] for score in scores]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            entry[f"{measure}_mean"], entry[f"{measure}_sd"] = (
                round(statistics.mean(values), 4),
                round(spread, 4),
            )
    return entry


def _scored(cell: Cell, truth: Any) -> dict[str, Any]:
    scores = {}
    if truth is not None:
        known = truth >= 0
        scores = {
            "NMI": round(nmi(truth[known], cell.labels[known]), 4),
            "ACC": round(clustering_accuracy(truth[known], cell.labels[known]), 4),
        }
    used = len(np.unique(cell.labels))
    return {**scores, "params": cell.params, "seconds": cell.result["seconds"], "clusters_used": used}


def chosen_without_labels(cells: list[Cell], n_clusters: int) -> Cell:
    """The fit to take if nothing is known of the classes.

    Of fits with the same parameters, the one with the lowest objective of its method. Objectives under different
    parameters cannot be compared: of those, the one that agrees most with the others, by the mean of NMI. Fits that
    leave clusters empty come after all others.
    """

    def leaves_empty(cell: Cell) -> bool:
        return len(np.unique(cell.labels)) < n_clusters

    def rank(cell: Cell) -> tuple[bool, float]:
        objective = cell.result["objective"]
        return leaves_empty(cell), 0.0 if objective is None else objective

    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(json.dumps(cell.params, sort_keys=True), []).append(cell)
    finalists = [min(group, key=rank) for group in groups.values()]

    def agreement(cell: Cell) -> float:
        others = [other for other in finalists if other is not cell]
        return statistics.mean(nmi(cell.labels, other.labels) for other in others) if others else 0.0

    return max(finalists, key=lambda cell: (not leaves_empty(cell), agreement(cell)))


def _without_labels(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "labels"}


def _write_tables(folder: Path, rows: list[dict[str, Any]], item_names: Sequence[str] | None) -> None:
    """comparison.json, the table, and the label-free choice of every method; rows of earlier methods stay."""
    before = _read(folder / COMPARISON_FILE)
    fresh = {entry["method"] for entry in rows}
    kept = [entry for entry in before.get("rows", []) if entry["method"] not in fresh]
    plain = [*kept, *(_without_labels(entry) for entry in rows)]
    write_json(folder / COMPARISON_FILE, {**before, "rows": plain})
    write_file(folder / TABLE_FILE, _csv(TABLE_COLUMNS, [table_row(entry) for entry in plain]))
    chosen = folder / "labels"
    chosen.mkdir(exist_ok=True)
    for entry in rows:
        if "labels" in entry:
            content = io.BytesIO()
            np.save(content, entry["labels"])
            write_file(chosen / f"{entry['method']}.npy", content.getvalue())
    columns = {
        entry["method"]: np.load(chosen / f"{entry['method']}.npy", allow_pickle=False).tolist()
        for entry in plain
        if "label_free" in entry
    }
    names = item_names if item_names is not None else range(max(map(len, columns.values()), default=0))
    write_file(folder / LABELS_FILE, _csv(("item", *columns), zip(names, *columns.values(), strict=False)))


def _csv(header: Sequence[str], rows: Any) -> bytes:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return text.getvalue().encode()


TABLE_COLUMNS = ("method", "NMI", "ACC", "best NMI", "best ACC", "fits", "failed", "seconds", "peak MB")


def table_row(entry: dict[str, Any]) -> tuple[str, ...]:
    """A row for reading: the label-free choice, the best by the known classes, and what it cost."""
    free, best = entry.get("label_free", {}), entry.get("best", {})
    return (
        entry["method"],
        *(f"{scores[m]:.3f}" if m in scores else "-" for scores in (free, best) for m in ("NMI", "ACC")),
        str(entry["fits"]),
        str(len(entry["failures"])),
        f"{entry['seconds']:.1f}" if "seconds" in entry else "-",
        f"{entry['peak_mb']:.0f}" if "peak_mb" in entry else "-",
    )
