"""One fit of a comparison, in a process of its own: which methods there are, and what a fit leaves behind.

``python -m ddclust.compare.methods JOB.json PARENT`` fits for the process PARENT. It is given the data and never the truth.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ddclust.data.batches import Scaling
from ddclust.data.items import Items, blocks, with_short_indices
from ddclust.data.neighbors import Neighbors, nearest_neighbors
from ddclust.storage.atomic import write_file, write_json

N_VOTE = 3
PARENT_SECONDS = 0.2
# Enough for every method's graph, so that it is searched for once.
SHARED_NEIGHBORS = 10


@dataclass(frozen=True)
class Method:
    """How a method takes part.

    Its results stand under ``titles``. ``choices`` are the hyperparameters that the paper's protocol has nine of, the default first. With ``restarts``
    each choice is fitted once per run with another seed; the others restart within a fit, or not at all. ``options`` are
    those of the comparison's that concern it.
    """

    fit: Callable[[Job], Fit]
    titles: tuple[str, ...]
    choices: tuple[dict[str, Any], ...] = ({},)
    restarts: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A fit to be made: a method with one choice of parameters and a seed, and where its data and results are."""

    method: str
    params: dict[str, Any]
    n_clusters: int
    seed: int
    options: dict[str, int]
    data: str
    folder: str

    def items(self) -> Any:
        """The data as they are: an array, mapped into memory, or a CSR matrix."""
        if self.data.endswith(".npz"):
            return scipy.sparse.load_npz(self.data)
        return np.load(self.data, mmap_mode="r", allow_pickle=False)

    def vectors(self) -> Any:
        """The data as one vector per item, scaled as DDC does it."""
        items = self.items()
        return with_short_indices(items) if scipy.sparse.issparse(items) else scaled_vectors(items)


@dataclass
class Fit:
    """What came of it: labels under each title, the method's own objective, the lower the better, and seconds that
    an earlier fit spent for this one too.
    """

    labels: dict[str, NDArray[np.int64]]
    objective: float | None = None
    shared_seconds: float = 0.0


def scaled_vectors(items: Items) -> NDArray[np.float32]:
    """Items as float32 rows, in the scaling that DDC's networks get."""
    scaling = Scaling.of(items)
    vectors = np.empty((len(items), int(np.prod(items.shape[1:]))), dtype=np.float32)
    start = 0
    for block in blocks(items):
        vectors[start : start + len(block)] = scaling(block).numpy().reshape(len(block), -1)
        start += len(block)
    return vectors


def _k_means(job: Job) -> Fit:
    from sklearn.cluster import KMeans

    model = KMeans(job.n_clusters, n_init=1, random_state=job.seed).fit(job.vectors())
    return Fit({"k-means": model.labels_.astype(np.int64)}, float(model.inertia_))


def _itc(job: Job) -> Fit:
    from ddclust.baselines import ITC

    model = ITC(job.n_clusters, random_state=job.seed, n_init=job.options["runs"], **job.params).fit(
        job.vectors()
    )
    return Fit({f"ITC ({job.params['density']})": model.labels_})


def _sec(job: Job) -> Fit:
    from ddclust.baselines import SEC

    X = job.vectors()
    neighbors, seconds = _shared_neighbors(job, X)
    model = SEC(job.n_clusters, random_state=job.seed, **job.params).fit(X, neighbors=neighbors)
    return Fit({"SEC": model.labels_}, shared_seconds=seconds)


def _ldmgi(job: Job) -> Fit:
    from ddclust.baselines import LDMGI

    X = job.vectors()
    neighbors, seconds = _shared_neighbors(job, X)
    model = LDMGI(job.n_clusters, random_state=job.seed, **job.params).fit(X, neighbors=neighbors)
    return Fit({"LDMGI": model.labels_}, shared_seconds=seconds)


def _dec(job: Job) -> Fit:
    from ddclust.baselines import DEC

    model = DEC(job.n_clusters, random_state=job.seed, **job.params).fit(job.items())
    return Fit({"DEC": model.labels_}, model.runs_[0]["loss"])


def _ddc(job: Job) -> Fit:
    from ddclust import DDC

    model = DDC(
        job.n_clusters,
        n_init=job.options["runs"],
        n_vote=min(N_VOTE, job.options["runs"]),
        max_iter=job.options["max_iter"],
        random_state=job.seed,
        checkpoint_dir=Path(job.folder) / "checkpoints",
        **job.params,
    ).fit(job.items())
    best = model.member_probabilities(job.items())[0].argmax(axis=1)
    labels = {"DDC": best} | ({"DDC-VOTE": model.labels_} if len(model.voters_) == N_VOTE else {})
    return Fit(labels, model.runs_[model.voters_[0]]["loss"])


def _shared_neighbors(job: Job, X: Any) -> tuple[Neighbors, float]:
    """The nearest neighbours, found by the first fit that needs them, which leaves them beside the data.

    The second value is how long that took, 0 for the fit that does it: its own time has it already.
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


# Nine choices each where a method has hyperparameters. LDMGI's are its paper's own; for the others the DDC paper says
# no more than that there were nine.
METHODS = {
    "k-means": Method(_k_means, ("k-means",), restarts=True),
    "itc-parzen": Method(
        _itc,
        ("ITC (parzen)",),
        tuple({"density": "parzen", "bandwidth": b} for b in (0.15, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)),
        options=("runs",),
    ),
    "itc-knn": Method(
        _itc,
        ("ITC (knn)",),
        tuple(
            {"density": "knn", "n_neighbors": k, "seed_size": size, "alpha": alpha}
            for k, size in ((1, 3), (2, 4), (5, 8))
            for alpha in (1.0, 0.2, 0.01)
        ),
        options=("runs",),
    ),
    "sec": Method(
        _sec,
        ("SEC",),
        tuple({"mu": mu, "gamma": gamma} for mu in (1.0, 1e-3, 1e-6) for gamma in (1.0, 1e-3, 1e3)),
    ),
    "ldmgi": Method(
        _ldmgi,
        ("LDMGI",),
        tuple({"reg_lambda": 10.0**power} for power in (0, -8, -6, -4, -2, 2, 4, 6, 8)),
    ),
    "dec": Method(_dec, ("DEC",), restarts=True),
    "ddc": Method(_ddc, ("DDC", "DDC-VOTE"), options=("runs", "max_iter")),
}


def main(job_file: Path, parent: int) -> None:
    """Fit as a job file says, and leave result.json and the labels beside it."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    job = Job(**json.loads(job_file.read_text(encoding="utf-8")))
    folder = Path(job.folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            fit = METHODS[job.method].fit(job)
        except (ValueError, ArithmeticError, MemoryError, OSError) as error:
            write_json(folder / "result.json", {"error": f"{type(error).__name__}: {error}"})
            return
        seconds = time.perf_counter() - start
    for title, labels in fit.labels.items():
        content = io.BytesIO()
        np.save(content, labels)
        write_file(folder / f"{title}.npy", content.getvalue())
    messages = sorted({str(w.message) for w in caught if issubclass(w.category, UserWarning)})
    result = {
        "seconds": round(seconds + fit.shared_seconds, 3),
        "objective": fit.objective,
        "titles": sorted(fit.labels),
        "warnings": messages,
    }
    write_json(folder / "result.json", result)


def _end_with(parent: int) -> None:
    """Kill this process and its workers when the comparison that started it is gone: it would be in the way later."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
