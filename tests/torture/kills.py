"""Kills: signals to a fit, its workers or all of them, at random moments. What goes on ends as if nothing had happened.

    python -m torture.kills FOLDER --kills 50 [--jobs 2] [--halving]

prints a line of JSON. The fits are forked from a process that has imported everything, so that signals hit the training, the
start of workers and the writing of checkpoints rather than imports.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import make_blobs

from ddclust import DDC, Selection
from ddclust.training import run as _runs
from torture.table import Part, Result

X, _ = make_blobs(400, centers=3, random_state=0)
GONE_SECONDS = 5.0  # within which no process of a fit may be left
END_SECONDS = 120.0  # within which a fit must end that goes on
STOPPED = 130


class Kill(NamedTuple):
    """Who gets which signal, when, of a fit with how many jobs."""

    who: str  # parent, worker, group
    signal: str
    when: str  # starting, training
    n_jobs: int
    halving: bool = False

    def __str__(self) -> str:
        return (
            f"{self.signal} to the {self.who}, {self.when}, n_jobs={self.n_jobs}" + ", halving" * self.halving
        )


# With one job the parent is the group.
ONE_JOB = [
    Kill("group", name, when, 1, halving)
    for name in ("SIGKILL", "SIGTERM", "SIGINT")
    for when in ("starting", "training")
    for halving in (False, True)
]
TWO_JOBS = [
    Kill(who, name, when, 2)
    for who in ("parent", "worker", "group")
    for name in ("SIGKILL", "SIGTERM", "SIGINT")
    for when in ("starting", "training")
]


def fit(folder: Path, n_jobs: int, halving: bool) -> bool:
    """Fit with a checkpoint at nearly every step; whether it got to its end."""
    _runs.CHECKPOINT_SECONDS, _runs.CHECKPOINT_SHARE = 0.0, 1.0
    model = DDC(3, n_init=4, n_vote=3, max_iter=60, learning_rate=1e-3, random_state=0, n_jobs=n_jobs)
    model.set_params(checkpoint_dir=folder / "checkpoints", selection=Selection(halving=halving))
    model.fit(X)
    if any(run["outcome"] in ("interrupted", "running") for run in model.runs_):
        return False
    model.save(folder / "model", overwrite=True)
    return True


def start(folder: Path, n_jobs: int, halving: bool) -> int:
    """The process id of a fit in a session of its own. What it prints goes to a file."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        (folder / "tmp").mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(folder / "tmp")
        printed = os.open(folder / "printed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        code = 0 if fit(folder, n_jobs, halving) else STOPPED
    except KeyboardInterrupt:
        code = STOPPED
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # its workers see that it is gone


def session(leader: int) -> list[int]:
    """The processes of a session that live."""
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    members.append(int(entry))
    return members


def workers(leader: int) -> list[int]:
    """The processes of a session that joblib started to work."""
    found = []
    for pid in session(leader):
        with contextlib.suppress(OSError):
            if b"popen_loky" in Path("/proc", str(pid), "cmdline").read_bytes():
                found.append(pid)
    return found


def last_saved(folder: Path) -> int:
    """When the latest checkpoint was written."""
    latest = 0
    for file in (folder / "checkpoints").glob("run-*"):
        with contextlib.suppress(OSError):
            latest = max(latest, file.stat().st_mtime_ns)
    return latest


def wait(pid: int, seconds: float) -> int | None:
    """The exit status of a process, as subprocess gives it; None if it does not end in time."""
    until = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(0.002)


class Undisturbed:
    """What a fit ends with that nothing happens to."""

    def __init__(self, folder: Path, halving: bool) -> None:
        folder.mkdir(parents=True)
        if wait(start(folder, 1, halving), END_SECONDS) != 0:
            raise RuntimeError(f"The undisturbed fit failed: {(folder / 'printed').read_text()}")
        self.model = DDC.load(folder / "model")

    def differs(self, folder: Path) -> str:
        """How the fit in a folder ended otherwise, if it did."""
        try:
            other = DDC.load(folder / "model")
        except Exception as error:
            return f"there is no model at the end: {error}"
        first, second = (
            [{key: value for key, value in run.items() if key != "seconds"} for run in model.runs_]
            for model in (self.model, other)
        )
        keys = {
            key
            for ours, theirs in zip(first, second, strict=True)
            for key in ours
            if ours[key] != theirs[key]
        }
        apart = float(np.abs(self.model.probabilities_ - other.probabilities_).max())
        if not keys and apart == 0:
            return ""
        return f"the end differs from an undisturbed fit's: probabilities by {apart:g}, of the runs {sorted(keys)}"


class Chain:
    """A fit that gets signals again and again, until it ends and is compared; then another one."""

    def __init__(self, folder: Path, undisturbed: Undisturbed) -> None:
        self.folder, self.undisturbed = folder, undisturbed
        self.n_ended = self.torn = 0
        self._begin()

    def _begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def kill(self, kill: Kill, rng: np.random.Generator) -> str | None:
        """Send one signal; what went wrong, "" if nothing did, None if the fit was over before."""
        before = last_saved(self.folder)
        pid = start(self.folder, kill.n_jobs, kill.halving)
        try:
            target = self._moment(kill, pid, before, rng)
            if target is None:
                return self._ended(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) or None
            (os.killpg if kill.who == "group" else os.kill)(target, getattr(signal, kill.signal))
            goes_on = kill.who == "worker"
            status = wait(pid, END_SECONDS)
            if status is None:
                return "does not end"
            self.torn += any((self.folder / "checkpoints").glob(".*.partial"))
            left = self._left(pid)
            if left:
                return left
            if goes_on and status != 0:
                return f"ended with status {status}: {self._printed()}"
            if kill.signal == "SIGINT" and status not in (0, STOPPED, -signal.SIGINT):
                return f"ended with status {status}: {self._printed()}"
            if "Traceback" in (self.folder / "printed").read_text() and kill.signal == "SIGINT":
                return f"prints a traceback: {self._printed()}"
            return self._ended(0) if status == 0 else ""
        finally:
            for rest in session(pid):
                with contextlib.suppress(OSError):
                    os.kill(rest, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def finish(self, kill: Kill) -> str:
        """Let the fit end, in one process, which makes no difference; what went wrong."""
        return self._ended(wait(start(self.folder, 1, kill.halving), END_SECONDS))

    def _moment(self, kill: Kill, pid: int, before: int, rng: np.random.Generator) -> int | None:
        """Wait for the moment; the process or group to send the signal to, None if the fit ends before."""
        begun, delay = time.monotonic(), rng.uniform(0, 0.03)
        if kill.when == "starting":
            delay = rng.uniform(0, 2.0 if kill.n_jobs > 1 else 0.1)
        while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            ready = kill.when == "starting" or last_saved(self.folder) > before
            found = workers(pid) if kill.who == "worker" and ready else [pid]
            if ready and found:
                time.sleep(delay)
                with contextlib.suppress(ProcessLookupError):
                    target = found[int(rng.integers(len(found)))]
                    os.kill(target, 0)
                    if os.getpgid(pid) == pid:
                        return target
            if time.monotonic() - begun > END_SECONDS:
                return pid
            time.sleep(0.002)
        return None

    def _ended(self, status: int | None) -> str:
        if status != 0:
            return f"ended with status {status}: {self._printed()}"
        self.n_ended += 1
        failure = self.undisturbed.differs(self.folder)
        self._begin()
        return failure

    def _left(self, pid: int) -> str:
        until = time.monotonic() + GONE_SECONDS
        while left := session(pid):
            if time.monotonic() > until:
                return f"{len(left)} processes are left after {GONE_SECONDS:.0f} s"
            time.sleep(0.02)
        return ""

    def _printed(self) -> str:
        return (self.folder / "printed").read_text()[-2000:]


def kills(folder: Path, kill: Kill, n: int, undisturbed: Undisturbed, seed: int) -> Iterator[Result]:
    """Send a signal n times, and see that each fit ends as it should."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    chain = Chain(folder, undisturbed)
    for number in range(n):
        failure = None
        for _ in range(20):
            failure = chain.kill(kill, rng)
            if failure is not None:
                break
        yield Result(
            f"{kill.signal} to the {kill.who}, {kill.when}, n_jobs={kill.n_jobs}",
            failure and f"kill {number}: {failure}",
        )
    failure = chain.finish(kill)
    if failure:
        yield Result(
            f"{kill.signal} to the {kill.who}, {kill.when}, n_jobs={kill.n_jobs}", f"at the end: {failure}"
        )


def run(folder: Path, scale: float, seed: int) -> Iterator[Result]:
    """The whole matrix; most of it with one job, which is started in no time."""
    torch.set_num_threads(1)
    ends = {halving: Undisturbed(folder / f"undisturbed-{halving}", halving) for halving in (False, True)}
    many, few = max(round(78 * scale), 1), max(round(4 * scale), 1)
    for kill, n in itertools.chain(((k, many) for k in ONE_JOB), ((k, few) for k in TWO_JOBS)):
        yield from kills(folder / str(kill).replace(" ", "-"), kill, n, ends[kill.halving], seed)


PART = Part("kill", "kills", 1_000, run)


def main() -> None:
    """Kill one kind of fit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--halving", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    kill = Kill("group", "SIGKILL", "training", options.jobs, options.halving)
    undisturbed = Undisturbed(options.folder / "undisturbed", options.halving)
    chain, rng = Chain(options.folder / "chain", undisturbed), np.random.default_rng(0)
    failures, done = [], 0
    while done < options.kills:
        failure = chain.kill(kill, rng)
        done += failure is not None
        failures += [failure] if failure else []
    failures += [failure] if (failure := chain.finish(kill)) else []
    print(
        json.dumps(
            {
                "kills": done,
                "in the middle of a write": chain.torn,
                "fits": chain.n_ended,
                "failures": failures,
            }
        )
    )


if __name__ == "__main__":
    main()
