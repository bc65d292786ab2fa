"""One progress bar for all runs of a fit. Output that fails, to a pager that was quit say, never stops a fit."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ddclust.training.record import RunRecord

POLL_SECONDS = 0.2
# What writing to a standard error that is gone, full or closed raises.
OUTPUT_ERRORS = (OSError, ValueError)


class Progress(Protocol):
    """Where runs report: rows of (iteration, loss), one per run, and a last row of another meaning."""

    n_runs: int

    @property
    def values(self) -> NDArray[np.float64] | None: ...


def say(message: str) -> None:
    """A line on standard error, beside any progress bar."""
    with contextlib.suppress(*OUTPUT_ERRORS):
        tqdm.write(message, file=sys.stderr)


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

    try:
        bar = tqdm(total=board.n_runs * max_iter, unit="it")
    except OUTPUT_ERRORS:
        bar = tqdm(disable=True)

    def refresh() -> None:
        done = values[:-1, 0].copy()
        done[list(ended)] = list(ended.values())
        losses = values[:-1, 1][values[:-1, 0] > 0]
        with contextlib.suppress(*OUTPUT_ERRORS):
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
        with contextlib.suppress(*OUTPUT_ERRORS):
            bar.close()
