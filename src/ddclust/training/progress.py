"""One progress bar for all runs of a fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ddclust.progress import Bar
from ddclust.training.record import RunRecord

POLL_SECONDS = 0.2


class Progress(Protocol):
    """Where runs report: rows of (iteration, loss), one per run, and a last row of another meaning."""

    n_runs: int

    @property
    def values(self) -> NDArray[np.float64] | None: ...


@contextmanager
def progress_bar(board: Progress, max_iter: int, verbose: bool) -> Iterator[Callable[[RunRecord], None]]:
    """A bar that follows the board; gives a function to call with a run's record when a stage of it ends."""
    values = board.values
    if not verbose or values is None:
        yield lambda record: None
        return
    planned = np.full(board.n_runs, max_iter)
    ended: dict[int, int] = {}
    finished = threading.Event()

    bar = Bar(total=board.n_runs * max_iter, unit="it")

    def refresh() -> None:
        done = values[:-1, 0].copy()
        done[list(ended)] = list(ended.values())
        losses = values[:-1, 1][values[:-1, 0] > 0]
        bar.total = int(planned.sum())
        bar.set_description(f"{len(ended)}/{board.n_runs} runs done", refresh=False)
        if len(losses):
            bar.set_postfix(lowest_loss=f"{losses.min():.4f}", refresh=False)
        bar.update(int(min(done.sum(), bar.total)) - bar.n)

    def poll() -> None:
        while not finished.wait(POLL_SECONDS):
            refresh()

    def note(record: RunRecord) -> None:
        if record.outcome.is_final:
            planned[record.run] = ended[record.run] = record.n_iter

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield note
    finally:
        finished.set()
        thread.join()
        refresh()
        bar.close()
