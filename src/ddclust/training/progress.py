"""One progress bar for all runs of a fit, and how long they still take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ddclust.progress import Bar, is_watched
from ddclust.training.record import RunRecord

POLL_SECONDS = 0.5
LOG_SECONDS = 10.0  # between two lines in a file
TRUST_SECONDS = 10.0  # after so long, the pace so far says all about what is to come
FORM = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


class Progress(Protocol):
    """Where runs report: rows of (iteration, loss), one per run, and a last row of another meaning."""

    n_runs: int

    @property
    def values(self) -> NDArray[np.float64] | None: ...


class TimeLeft:
    """The seconds that are left, from what was expected and, more and more, from the pace so far. They never rise.

    Parameters
    ----------
    expected : float
        Seconds for an iteration of any run; NaN if nothing is known.

    Examples
    --------
    >>> left = TimeLeft(expected=0.5)
    >>> left.after(0, done=0, total=100), left.after(4, done=0, total=100)
    (50.0, 50.0)
    >>> left.after(5, done=1, total=100), left.after(25, done=50, total=100)
    (49.5, 20.408163265306122)
    """

    def __init__(self, expected: float) -> None:
        self.expected = expected
        self.shown = float("inf")
        self._first: tuple[float, int] | None = (
            None  # when the first iteration had been made, and how many by then
        )

    def after(self, seconds: float, *, done: int, total: int) -> float:
        """What is left after so many seconds, in which ``done`` of ``total`` iterations were made."""
        pace = self.expected
        if self._first is None and done:
            self._first = (seconds, done)
        if self._first is not None and done > self._first[1]:
            since = seconds - self._first[0]
            measured = since / (done - self._first[1])
            trust = 1.0 if np.isnan(pace) else min(since / TRUST_SECONDS, 1.0)
            pace = measured if trust == 1.0 else trust * measured + (1 - trust) * pace
        left = pace * (total - done)
        self.shown = min(self.shown, left) if not np.isnan(left) else self.shown
        return self.shown


@contextmanager
def progress_bar(
    board: Progress, max_iter: int, verbose: bool, expected: float = float("nan")
) -> Iterator[Callable[[RunRecord], None]]:
    """A bar that follows the board; gives a function to call with a run's record when a stage of it ends.

    ``expected`` is the time for an iteration of any run, in seconds.
    """
    values = board.values
    if not verbose or values is None:
        yield lambda record: None
        return
    planned = np.full(board.n_runs, max_iter)
    ended: dict[int, int] = {}
    finished = threading.Event()
    left, begun = TimeLeft(expected), time.perf_counter()
    first = f"0 of {board.n_runs} runs done"
    bar = Bar(total=board.n_runs * max_iter, unit="it", desc=first, bar_format=FORM)

    def refresh() -> None:
        done = values[:-1, 0].copy()
        done[list(ended)] = list(ended.values())
        bar.total = int(planned.sum())
        bar.n = max(int(min(done.sum(), bar.total)), bar.n)
        bar.set_description_str(f"{len(ended)} of {board.n_runs} runs done", refresh=False)
        seconds = left.after(time.perf_counter() - begun, done=int(bar.n), total=int(bar.total))
        bar.set_postfix_str(
            f"{tqdm.format_interval(seconds)} left" if np.isfinite(seconds) else "", refresh=False
        )
        bar.refresh()

    def poll() -> None:
        while not finished.wait(POLL_SECONDS if is_watched() else LOG_SECONDS):
            refresh()

    def note(record: RunRecord) -> None:
        if record.outcome.is_final:
            planned[record.run] = ended[record.run] = record.n_iter

    refresh()
    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield note
    finally:
        finished.set()
        thread.join()
        refresh()
        bar.close()
