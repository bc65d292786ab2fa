"""Faults of the surroundings: outputs that are closed or full, full and read-only disks, data that change during a fit.

Every command ends within a time limit, with exit code 0, or 2 and one line; what was there before stays, and what was
begun can be resumed.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from ddclust.cli.main import main
from ddclust.datasets import read_labels
from torture.fuzz import command_failure
from torture.table import Part, Result

SECONDS = 90.0
FLUSH_FAILED = 120  # Python's exit code if standard output cannot be flushed at its end
X, _ = make_blobs(60, centers=2, random_state=0)
FIT = ("-k", "2", "--runs", "2", "--max-iter", "6", "--jobs", "1", "--no-report", "--augment", "none")


def command(
    arguments: list[str],
    printed: Path,
    *,
    before: Callable[[], None] = lambda: None,
    meanwhile: Callable[[int], None] = lambda pid: None,
    may_end_with: tuple[int, ...] = (),
) -> str:
    """Run the command line in a fork of this process; what is wrong with how it ended, if anything is.

    ``before`` is called in the new process, ``meanwhile`` in this one. Output goes to a file unless ``before`` says otherwise.
    """
    printed.write_text("")
    pid = os.fork()
    if pid == 0:
        _run(arguments, printed, before)
    meanwhile(pid)
    until = time.monotonic() + SECONDS
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"hangs: more than {SECONDS:.0f} s"
        time.sleep(0.01)
    code, text = os.waitstatus_to_exitcode(ended[1]), printed.read_text(errors="replace")
    if code in may_end_with and "Traceback" not in text:
        return ""
    if code == 2 and not text:  # nobody could read the line
        return ""
    return command_failure(code, text)


def _run(arguments: list[str], printed: Path, before: Callable[[], None]) -> None:
    code = 70
    try:
        os.setsid()
        file = os.open(printed, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        before()
        sys.stdout, sys.stderr = _stream(1), _stream(2)  # type: ignore[assignment]
        main(arguments, prog_name="ddclust")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        import traceback

        with open(printed, "a") as file_of_traceback:
            traceback.print_exc(file=file_of_traceback)
    finally:
        with contextlib.suppress(ValueError):
            try:
                if sys.stdout is not None:
                    sys.stdout.flush()
            except OSError:
                code = code or FLUSH_FAILED
        os._exit(code)


def _stream(descriptor: int) -> io.TextIOWrapper | None:
    """A standard stream as Python opens it: None if it is closed."""
    try:
        os.fstat(descriptor)
    except OSError:
        return None
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False)), line_buffering=descriptor == 2
    )


def _full(descriptor: int) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)


def _unread(descriptor: int) -> None:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.dup2(writer, descriptor)
    os.close(writer)
    os.close(reader)


def _stuffed(descriptor: int) -> None:
    """A pipe that is nearly full, and whose reader goes soon."""
    reader, writer = os.pipe()
    os.dup2(writer, descriptor)
    os.close(writer)
    if os.fork() == 0:
        for output in {1, 2} - {reader}:  # else it would wait for itself
            with contextlib.suppress(OSError):
                os.close(output)
        os.read(reader, 100)
        os._exit(0)
    os.close(reader)


STREAMS: dict[str, Callable[[int], None]] = {
    "fine": lambda descriptor: None,
    "full": _full,
    "unread": _unread,
    "read for a moment": _stuffed,
    "closed": os.close,
}


class Place:
    """A folder with data and a complete fit, made once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.printed = folder, folder / "printed"
        self.data, self.result = folder / "data.npy", folder / "result"
        np.save(self.data, X)
        (folder / "truth.csv").write_text(
            "\n".join(["item,cluster", *(f"{i},{i % 2}" for i in range(len(X)))]) + "\n"
        )
        failure = command(["fit", str(self.data), *FIT, "--out", str(self.result)], self.printed)
        if failure:
            raise RuntimeError(failure)
        self.labels = (self.result / "labels.csv").read_bytes()

    def commands(self) -> dict[str, list[str]]:
        result, data = str(self.result), str(self.data)
        scan = ["--from", "2", "--to", "2", "--runs", "2", "--max-iter", "2", "--jobs", "1"]
        return {
            "fit": ["fit", data, *FIT, "--out", str(self.folder / "new")],
            "scan": ["scan", data, *scan, "--out", str(self.folder / "new")],
            "runs": ["runs", result],
            "predict": ["predict", result, data],
            "evaluate": ["evaluate", result, str(self.folder / "truth.csv")],
            "explain": ["explain", result, data, "--items", "0", "--out", str(self.folder / "new")],
            "datasets": ["datasets"],
            "help": ["fit", "--help"],
            "a wrong folder": ["runs", str(self.folder / "nothing")],
            "a wrong option": ["fit", "--nonsense"],
        }

    def cleared(self) -> None:
        shutil.rmtree(self.folder / "new", ignore_errors=True)

    def lost(self, folder: Path | None = None) -> str:
        """Whether the labels of the fit in a folder are other ones than they should be."""
        file = (folder or self.result) / "labels.csv"
        if not file.exists():
            return "labels.csv is not there"
        return "" if file.read_bytes() == self.labels else "labels.csv differs"


def outputs(place: Path, *, every: int = 1) -> Iterator[Result]:
    """Every command with every kind of standard output and standard error."""
    made, number = Place(place), 0
    for name, arguments in made.commands().items():
        for out, spoil_out in STREAMS.items():
            for err, spoil_err in STREAMS.items():
                number += 1
                if number % every or (out == err == "fine"):
                    continue
                made.cleared()

                def before(spoil_out: Callable = spoil_out, spoil_err: Callable = spoil_err) -> None:
                    spoil_out(1)
                    spoil_err(2)

                # Output that nobody reads any more ends a command quietly, as it ends others.
                quiet = (1, FLUSH_FAILED) if out in ("unread", "read for a moment") else ()
                full = (FLUSH_FAILED,) if out == "full" else ()
                failure = command(arguments, made.printed, before=before, may_end_with=quiet + full)
                if not failure and name == "fit":
                    failure = made.lost(made.folder / "new")
                failure = failure or made.lost()
                yield Result("outputs", failure and f"{name}, stdout {out}, stderr {err}: {failure}")


def processes(place: Path, *, every: int = 1) -> Iterator[Result]:
    """The same with processes as the shell starts them."""
    made = Place(place)
    redirections = [
        "> /dev/full",
        "2> /dev/full",
        ">&-",
        "2>&-",
        ">&- 2>&-",
        "> /dev/full 2> /dev/full",
        "2> >(head -c 20)",
    ]
    for number, redirection in enumerate(redirections):
        if number % every:
            continue
        for name in ("fit", "runs", "help"):
            made.cleared()
            line = " ".join([sys.executable, "-m", "ddclust", *made.commands()[name], redirection])
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, timeout=SECONDS, check=False
            )
            failure = ""
            if done.returncode not in (0, 2) or "Traceback" in done.stderr or done.stderr.count("Error:") > 1:
                failure = f"{name} {redirection}: exit code {done.returncode}, {done.stderr[-500:]}"
            yield Result("outputs of processes", failure or made.lost())


@contextlib.contextmanager
def disk(folder: Path, size: int) -> Iterator[Callable[[str], None]]:
    """A small disk at a folder; gives a function that mounts it again with other options."""
    folder.mkdir(parents=True, exist_ok=True)

    def mount(options: str, *, again: bool = True) -> None:
        options = f"remount,{options}" if again else options
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True
        )

    mount(f"size={size}", again=False)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def can_mount(folder: Path) -> bool:
    """Whether this process may mount disks, as root may."""
    try:
        with disk(folder, 2**16):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def full_disks(place: Path, sizes: list[int]) -> Iterator[Result]:
    """Fits on disks of so many times 64 KB; with more room they go on to the same end."""
    made, small = Place(place), place / "disk"
    if not can_mount(small):
        return
    for size in sizes:
        with disk(small, size * 2**16) as mount:
            out = small / "run"
            failure = command(["fit", str(made.data), *FIT, "--out", str(out)], made.printed)
            if not failure:
                mount("size=64m")
                if (out / "run.json").exists():
                    failure = command(["resume", str(out)], made.printed)
                else:
                    failure = command(["fit", str(made.data), *FIT, "--out", str(out)], made.printed)
            yield Result("disk full", (failure := failure or made.lost(out)) and f"{size} x 64 KB: {failure}")


def short_files(place: Path, sizes: list[int]) -> Iterator[Result]:
    """Fits that may not write files above a size."""
    made = Place(place)
    for size in sizes:
        made.cleared()
        out = place / "new"

        def before(size: int = size) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size * 2**16, size * 2**16))

        failure = command(["fit", str(made.data), *FIT, "--out", str(out)], made.printed, before=before)
        if not failure:
            again = (
                ["resume", str(out)]
                if (out / "run.json").exists()
                else ["fit", str(made.data), *FIT, "--out", str(out)]
            )
            failure = command(again, made.printed)
        yield Result("files limited", (failure := failure or made.lost(out)) and f"{size} x 64 KB: {failure}")


def read_only(place: Path) -> Iterator[Result]:
    """Commands whose files are on a disk that cannot be written."""
    small = place / "disk"
    if not can_mount(small):
        return
    with disk(small, 2**26) as mount:
        made = Place(small / "place")
        printed = place / "printed"
        mount("ro")
        for name, arguments in (
            made.commands() | {"report": ["report", str(made.result), str(made.data)]}
        ).items():
            failure = command(arguments, printed)
            text = printed.read_text()
            if not failure and name in ("fit", "scan", "report", "explain") and "Read-only" not in text:
                failure = f"does not say that the disk is read-only: {text[-300:]}"
            if not failure and name in ("runs", "predict", "evaluate") and "Error" in text:
                failure = text
            yield Result("read-only disk", (failure := failure or made.lost()) and f"{name}: {failure}")
        mount("rw")


def changing_data(place: Path, n: int) -> Iterator[Result]:
    """Data that are deleted, replaced or truncated during a fit; afterwards the fit goes on with the data as they were."""
    made = Place(place)
    rng = np.random.default_rng(0)
    big = place / "big.npy"
    values = np.vstack([X + rng.normal(size=X.shape) for _ in range(2000)]).astype(np.float32)
    changes: dict[str, Callable[[], object]] = {
        "deleted": big.unlink,
        "replaced": lambda: (
            big.with_suffix(".tmp").write_bytes(b"other"),
            big.with_suffix(".tmp").replace(big),
        ),
        "truncated": lambda: os.truncate(big, 4096),
        "emptied": lambda: os.truncate(big, 0),
    }
    options = [*FIT, "--max-iter", "400", "--learning-rate", "0.001"]
    for number in range(n):
        for name, change in changes.items():
            made.cleared()
            np.save(big, values)

            def meanwhile(pid: int, number: int = number, change: Callable = change) -> None:
                until = time.monotonic() + SECONDS / 2
                while not any((place / "new" / "checkpoints").glob("fit.json")) and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(0.1 * number)
                with contextlib.suppress(OSError):
                    change()

            failure = command(
                ["fit", str(big), *options, "--out", str(place / "new")], made.printed, meanwhile=meanwhile
            )
            if (
                not failure
                and not (place / "new" / "labels.csv").exists()
                and (place / "new" / "run.json").exists()
            ):
                np.save(big, values)
                failure = command(["resume", str(place / "new")], made.printed)
                if not failure and len(read_labels(place / "new" / "labels.csv").labels) != len(values):
                    failure = "other labels"
            yield Result("data changed", failure and f"{name}: {failure}")


def run(folder: Path, scale: float, seed: int) -> Iterator[Result]:
    """All faults; at small scales each so many-th."""
    every = max(round(1 / scale), 1)
    sizes = list(range(1, 49, min(every, 12)))
    yield from outputs(folder / "outputs", every=every)
    yield from processes(folder / "processes", every=min(every, 7))
    yield from full_disks(folder / "full", sizes)
    yield from short_files(folder / "short", sizes[:12])
    yield from read_only(folder / "read-only")
    yield from changing_data(folder / "changing", max(round(3 * scale), 1))


PART = Part("fault", "faults", 340, run)
