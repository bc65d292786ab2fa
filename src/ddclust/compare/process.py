"""Fits in processes of their own, each within a budget of time and memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ddclust.compare.job import JOB_FILE, RESULT_FILE, Job, Result, read_or_none
from ddclust.storage.json_files import as_json, write_sealed

LOG_FILE = "log.txt"
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Budget:
    """What one fit may take: seconds, and bytes of memory, which include its worker processes.

    Examples
    --------
    >>> Budget(seconds=60).exceeded_by(seconds=61, used_bytes=0)
    {'seconds': 60}
    """

    seconds: float = float("inf")
    bytes: float = float("inf")

    def exceeded_by(self, seconds: float, used_bytes: int) -> dict[str, float] | None:
        """The limit that a fit exceeds, or None."""
        if seconds > self.seconds:
            return {"seconds": self.seconds}
        if used_bytes > self.bytes:
            return {"bytes": self.bytes}
        return None


class _Usage(NamedTuple):
    """The most memory that a process used, and the limit that it exceeded, if any."""

    peak_bytes: int
    limit: dict[str, float] | None


def is_made(job: Job, budget: Budget) -> bool:
    """Whether the job's folder holds its result. Fits that failed, or had a smaller budget, are made again."""
    if not _is_of(job):
        return False
    result = Result.read(Path(job.folder))
    if result.peak_mb is None:
        return False
    if result.limit is not None:
        return all(getattr(budget, name) <= value for name, value in result.limit.items())
    return result.error is None and all(job.labels(title, result) is not None for title in result.titles)


def _is_of(job: Job) -> bool:
    """Whether the job's folder belongs to this very job, wherever its data and folder were."""
    found = read_or_none(Path(job.folder) / JOB_FILE, Job)
    return found is not None and as_json(asdict(replace(found, data=job.data, folder=job.folder))) == as_json(
        asdict(job)
    )


def make_fit(job: Job, budget: Budget, on_poll: Callable[[float, int], None]) -> Result:
    """Make a fit in a new process, which is killed if it exceeds the budget.

    ``on_poll`` is called with the seconds and bytes so far, ten times a second.
    """
    folder = Path(job.folder)
    if not _is_of(job):
        shutil.rmtree(folder, ignore_errors=True)  # of other parameters
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    write_sealed(folder / JOB_FILE, asdict(job))
    with (folder / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ddclust.compare.worker", folder / JOB_FILE, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        usage = _watched(process, budget, on_poll)
    if usage.limit is not None:
        result = Result(error=_described(usage.limit), limit=usage.limit)
    elif (folder / RESULT_FILE).exists():
        result = Result.read(folder)
    else:
        result = Result(error=f"The process {_ending(process.returncode)}; see {folder / LOG_FILE}.")
    result = replace(result, peak_mb=round(usage.peak_bytes / 2**20, 1))
    result.write(folder)
    if result.error is None:
        shutil.rmtree(job.checkpoints, ignore_errors=True)
    return result


def _watched(
    process: subprocess.Popen[bytes], budget: Budget, on_poll: Callable[[float, int], None]
) -> _Usage:
    """Wait for a process, and kill it with its workers if it exceeds the budget or the wait is interrupted."""
    start, peak = time.perf_counter(), 0
    try:
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            seconds, used = time.perf_counter() - start, session_bytes(process.pid)
            peak = max(peak, used)
            if process.poll() is not None:
                break
            on_poll(seconds, used)
            limit = budget.exceeded_by(seconds, used)
            if limit is not None:
                return _Usage(peak, limit)
        return _Usage(peak, None)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ending(code: int) -> str:
    """How a process ended that left no result, in words."""
    if code >= 0:
        return "crashed"
    if code == -getattr(signal, "SIGBUS", 0):
        return "could not read its data file, which shrank or lies on a failing disk"
    return "was killed, perhaps for lack of memory"


def _described(limit: dict[str, float]) -> str:
    """An exceeded limit as a sentence."""
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
