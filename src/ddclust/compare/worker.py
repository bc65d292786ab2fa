"""One fit of a comparison, in a process of its own.

``python -m ddclust.compare.worker JOB.json PARENT`` makes the fit for the process PARENT. It is given the data, never the
known classes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust.compare.job import Job, Result, write_labels
from ddclust.compare.methods import METHODS
from ddclust.data.neighbors import Neighbors, nearest_neighbors
from ddclust.storage.json_files import read_json

PARENT_SECONDS = 0.2
SHARED_NEIGHBORS = 10  # enough for the graph of every method, so that the search is made once


class Fit(NamedTuple):
    """The labels under each title, the objective, and the seconds that an earlier fit spent for this one too."""

    labels: dict[str, NDArray[np.int64]]
    objective: float | None
    shared_seconds: float


def main(job_file: Path, parent: int) -> None:
    """Make the fit that a job file describes, and write its result and labels to the job's folder."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    job = read_json(job_file, Job, remedy="start the comparison again")
    folder = Path(job.folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            fit = fitted(job)
        except (ValueError, ArithmeticError, MemoryError, OSError) as error:
            Result(error=f"{type(error).__name__}: {error}").write(folder)
            return
        seconds = time.perf_counter() - start
    digests = {title: write_labels(job.labels_file(title), fit.labels[title]) for title in sorted(fit.labels)}
    Result(
        seconds=round(seconds + fit.shared_seconds, 3),
        objective=fit.objective,
        titles=tuple(digests),
        digests=digests,
        warnings=tuple(sorted({str(w.message) for w in caught if issubclass(w.category, UserWarning)})),
    ).write(folder)


def fitted(job: Job) -> Fit:
    """Fit the job's method to its data."""
    method = METHODS[job.method]
    module, _, name = method.estimator.rpartition(".")
    params = {"random_state": job.seed, **method.settings(job), **job.params}
    model = getattr(import_module(module), name)(n_clusters=job.n_clusters, **params)
    X = job.vectors() if method.takes_vectors else job.items()
    shared_seconds = 0.0
    if method.takes_neighbors:
        neighbors, shared_seconds = _shared_neighbors(job, X)
        model.fit(X, neighbors=neighbors)
    else:
        model.fit(X)
    objective = None if method.objective is None else float(method.objective(model))
    found = zip(method.titles, method.labels(model, X), strict=False)
    return Fit({title: np.asarray(labels, np.int64) for title, labels in found}, objective, shared_seconds)


def _shared_neighbors(job: Job, X: Any) -> tuple[Neighbors, float]:
    """The nearest neighbours, and the seconds that an earlier fit took to find them.

    The first fit that needs them finds them and leaves them beside the data. Its own time includes the search.
    """
    file = Path(job.data).with_name("neighbors.npz")
    if not file.exists():
        start = time.perf_counter()
        found = nearest_neighbors(X, min(SHARED_NEIGHBORS, X.shape[0] - 1))
        partial = file.with_name("partial.npz")
        np.savez(partial, **found._asdict(), seconds=time.perf_counter() - start)
        partial.rename(file)
        return found, 0.0
    with np.load(file, allow_pickle=False) as arrays:
        return Neighbors(arrays["indices"], arrays["distances"]), float(arrays["seconds"])


def _end_with(parent: int) -> None:
    """Kill this process and its workers once the comparison that started it is gone."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
