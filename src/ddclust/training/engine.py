"""Where runs train: here, in worker processes, or on whatever backend joblib has been given.

The same calls go to every place, with the same number of threads each, so the results are the same.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from joblib import delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from ddclust.data.items import Items, for_other_processes, refuse_shrunken
from ddclust.training.checkpoints import RunState, RunStore
from ddclust.training.parcels import Parcel, packed
from ddclust.training.progress import progress_bar
from ddclust.training.record import Outcome, RunRecord
from ddclust.training.run import advance_run, stages
from ddclust.training.setup import Plan, Setup
from ddclust.workers import in_workers

# Rounds in which workers die and not one run gets to its end before the fit gives up.
FRUITLESS_ROUNDS = 3
# What joblib's processes, Dask and Ray raise when a worker is gone, or the data that was with it.
LOST_WORKER = {
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "CancelledError",
    "KilledWorker",
    "RayActorError",
}


class WorkersDiedError(OSError):
    """Worker processes die again and again."""


class Board:
    """A small file through which the runs of one machine report and are told to stop.

    On another machine the file does not exist, and nothing is reported from there.
    """

    def __init__(self, path: Path, n_runs: int) -> None:
        self.path = path
        self.n_runs = n_runs
        self._values: NDArray[np.float64] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_values": None}

    @property
    def values(self) -> NDArray[np.float64] | None:
        """Rows of (iteration, loss), one per run, and a last row whose first value means "stop"."""
        if self._values is None and self.path.exists():
            shape = (self.n_runs + 1, 2)
            self._values = np.memmap(self.path, dtype=np.float64, mode="r+", shape=shape)
        return self._values

    def report(self, run: int, iteration: int, loss: float) -> None:
        if self.values is not None:
            self.values[run] = iteration, loss

    def stop(self) -> None:
        if self.values is not None:
            self.values[-1, 0] = 1

    def should_stop(self) -> bool:
        return self.values is not None and self.values[-1, 0] > 0


def run_all(
    X: Items,
    plan: Plan,
    seeds: list[int],
    *,
    n_jobs: int | None = None,
    store: RunStore | None = None,
    verbose: bool = False,
    expected_seconds: float = float("nan"),
) -> list[RunState]:
    """Train every run, in stages if hopeless ones are to be eliminated.

    Ctrl-C makes the runs stop at their next step; the states so far are returned. With ``verbose`` a bar shows the
    progress and the time left; ``expected_seconds`` is that of an iteration of any run, if it is known.
    """
    setup = plan.setup
    states: dict[int, RunState] = {}
    remaining, reached = list(range(len(seeds))), 0
    with (
        _board(len(seeds)) as board,
        _stop_on_interrupt(board),
        progress_bar(board, setup.max_iter, verbose, expected_seconds) as display,
    ):
        for until, n_survivors in stages(len(seeds), setup.n_vote, setup.max_iter, setup.halving):
            if len(remaining) > n_survivors:
                remaining, dropped = _best_first(states, remaining, n_survivors, reached)
                for run in dropped:
                    states[run].record.outcome = Outcome.ELIMINATED
                    display(states[run].record)
            calls = {
                run: (X, plan, run, seeds[run], until, states.get(run), store, board)
                for run in remaining
                if run not in states or not states[run].record.outcome.is_final
            }
            for state in _results(calls, n_workers(n_jobs, setup, len(calls))):
                states[state.record.run] = state
                display(state.record)
            if board.should_stop():
                break
            reached = until
    return [states.get(run) or RunState({}, {}, RunRecord(run, seed)) for run, seed in enumerate(seeds)]


def _best_first(
    states: dict[int, RunState], runs: list[int], keep: int, reached: int
) -> tuple[list[int], list[int]]:
    """The runs to keep and to drop, by their loss at the iteration reached; failed runs do not count.

    A state from a checkpoint may be further on (and fail only there); one that has converged was judged before.
    """
    records = {run: states[run].record for run in runs}
    alive = [run for run in runs if records[run].error is None or reached in records[run].losses_at]
    ranked = sorted(alive, key=lambda run: records[run].judged_loss(reached))
    return sorted(ranked[:keep]), ranked[keep:]


def n_workers(n_jobs: int | None, setup: Setup, n_runs: int) -> int:
    """How many of the runs train at a time; a GPU takes one."""
    return min(effective_n_jobs(n_jobs if setup.device.type == "cpu" else 1), max(n_runs, 1))


def _results(calls: dict[int, tuple], workers: int) -> Iterator[RunState]:
    """The state of each call as it ends; calls whose worker died are made again."""
    backend, _ = get_active_backend()
    if workers > 1:
        X = for_other_processes(next(iter(calls.values()))[0])
        workers = 1 if X is None else workers
        calls = {run: (X, *arguments[1:]) for run, arguments in calls.items()} if X is not None else calls
    if workers == 1 and type(backend).__name__ in ("LokyBackend", "SequentialBackend"):
        for arguments in calls.values():
            yield advance_run(*arguments)
        return
    waiting = dict(calls)
    fruitless = 0
    while waiting:
        before = len(waiting)
        shared = _once_per_worker(backend, next(iter(waiting.values()))[0])
        tasks = [delayed(_in_worker)(shared, *arguments[1:]) for arguments in waiting.values()]
        try:
            for state in in_workers(
                tasks,
                n_jobs=workers,
                return_as="generator_unordered" if backend.supports_return_generator else "list",
                batch_size=1,
                pre_dispatch="all",
            ):
                if isinstance(state, Parcel):
                    state = state.opened()
                del waiting[state.record.run]
                yield state
        except Exception as error:
            if not LOST_WORKER & {kind.__name__ for kind in type(error).__mro__}:
                raise
            refuse_shrunken(next(iter(waiting.values()))[0])
            fruitless = fruitless + 1 if len(waiting) == before else 0
            if fruitless == FRUITLESS_ROUNDS:
                # joblib's error lists the exit codes of its workers. A disk that fails under a memory map is SIGBUS.
                reason = (
                    "since the file of a memory map cannot be read; copy it to another disk"
                    if "SIGBUS" in str(error)
                    else "most likely for lack of memory; try n_jobs=1"
                )
                raise WorkersDiedError(
                    f"Worker processes died {fruitless} times without finishing a run, {reason}."
                ) from error
            warnings.warn(
                f"A worker process died; {len(waiting)} unfinished runs are started again.",
                RuntimeWarning,
                stacklevel=2,
            )


def _in_worker(X: Any, *arguments: Any) -> RunState | Parcel:
    """A call of :func:`ddclust.training.run.advance_run` in a worker.

    Ctrl-C is left to the main process, and so is what to say of a memory map that cannot be read: joblib's workers would print stacks.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if hasattr(signal, "SIGBUS"):
            signal.signal(signal.SIGBUS, signal.SIG_DFL)
    state = advance_run(X.get() if isinstance(X, _RayItems) else X, *arguments)
    board: Board = arguments[-1]
    return packed(state, board.path.parent)


class _RayItems:
    """Items in Ray's object store. joblib's own backends share large arrays by themselves."""

    def __init__(self, X: Items) -> None:
        import ray

        self.reference = ray.put(X)

    def get(self) -> Items:
        import ray

        return ray.get(self.reference)


def _once_per_worker(backend: Any, X: Items) -> Any:
    return _RayItems(X) if type(backend).__module__.startswith("ray.") else X


@contextmanager
def _board(n_runs: int) -> Iterator[Board]:
    folder = Path(tempfile.mkdtemp(prefix="ddclust-"))
    try:
        path = folder / "board"
        np.zeros((n_runs + 1, 2)).tofile(path)
        yield Board(path, n_runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _stop_on_interrupt(board: Board) -> Iterator[None]:
    """The first Ctrl-C asks the runs to stop, the second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    usual = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        board.stop()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
