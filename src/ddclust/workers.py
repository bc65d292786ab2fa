"""Worker processes that end with the process that started them, and leave Ctrl-C to it.

A worker imports this module first, so it imports nothing that takes long.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# How often a worker looks whether the process that it works for is still there.
PARENT_SECONDS = 0.5


def in_workers(tasks: Iterable[Any], **settings: Any) -> Iterator[Any]:
    """The results of joblib's ``Parallel(**settings)(tasks)``; its own processes are prepared by :func:`begin_worker`."""
    from multiprocessing import resource_tracker

    from joblib import Parallel
    from joblib.parallel import get_active_backend

    if type(get_active_backend()[0]).__name__ != "LokyBackend":
        return iter(Parallel(**settings)(tasks))
    from joblib.externals.loky.backend import resource_tracker as joblib_tracker

    for tracker in (joblib_tracker, resource_tracker):
        tracker.ensure_running()  # its start would let interrupts through again
    parallel = Parallel(initializer=begin_worker, initargs=(os.getpid(),), **settings)
    with interrupts_later():
        return iter(parallel(tasks))


def begin_worker(parent: int) -> None:
    """Prepare a process that was started for another one: it ignores Ctrl-C, and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block.

    Processes that start in the block never see it, also while they import what they need.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(parent: int) -> None:
    """End this process once its parent is gone, be it before this begins: nobody else would."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)
