"""Fuzzing: mutated files of every kind are read, or refused with a sentence; nothing is run, and little is taken.

    python -m torture.fuzz TARGET [FILE ...]     read files as a case does, such as one that failed
    python -m torture.fuzz TARGET --cases 100 [--first 0] [--seed 0]

Cases are read in forked batches, with limits of memory and time, and with an audit hook that notes what no file may cause.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ddclust
from commands import PROCESS
from ddclust.cli.errors import one_sentence
from torture.table import Part, Result
from torture.targets import TARGETS, CommandFailedError, Target, refuse_nameless

FAILURES = Path(__file__).parent / "failures"
BATCH = 2500  # cases of one process, which takes a while to begin
CASE_SECONDS = 20.0
WARM_SECONDS = 60.0  # more for the good files before them
MOST_BYTES = 2 * 2**30
# What ends with exit code 2 and a sentence, see ddclust.cli.main.
EXPECTED = (ValueError, OSError, ArithmeticError, MemoryError)
FORBIDDEN = {
    *(
        "pickle.find_class",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "subprocess.Popen",
        "pty.spawn",
    ),
    *("marshal.loads", "socket.connect", "ctypes.dlopen", "code.__new__", "webbrowser.open"),
}
KNOWN_CODE = tuple(
    str(Path(path))
    for path in (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        Path(ddclust.__file__).parent,
        "<frozen",
    )
)
IN_COMMAND = 500  # every so many cases also go through the command line


class Audit:
    """Notes forbidden events while it is on: hooks cannot be taken away again."""

    def __init__(self) -> None:
        self.events: list[str] | None = None
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple) -> None:
        if self.events is None:
            return
        if event in FORBIDDEN and not (event == "marshal.loads" and _importing()):
            self.events.append(f"{event} {arguments!r:.200}")
        elif event == "exec" and not _is_known(arguments[0]) and not _importing():
            self.events.append(f"exec of {arguments[0]!r:.200}")


def _is_known(code: Any) -> bool:
    return getattr(code, "co_filename", "").startswith(KNOWN_CODE)


def _importing() -> bool:
    """Whether a module of ours or of a library is being imported just now."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "exec_module" and "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def judged(target: Target, folder: Path, content: bytes, audit: Audit | None = None) -> str:
    """What is wrong with how a content is read, if anything is."""
    path = target.place(folder, content)
    before = _peak_bytes(begin=True)
    failure = ""
    if audit is not None:
        audit.events = []
    try:
        target.read(path)
    except CommandFailedError as error:
        failure = str(error)
    except EXPECTED as error:
        line = one_sentence(error)
        if isinstance(error, MemoryError):
            if _peak_bytes() - before > MOST_BYTES // 4:
                failure = f"takes more than {MOST_BYTES >> 30} GB"
        elif not line or "\n" in line:
            failure = f"no sentence: {error!r}"
        else:
            try:
                refuse_nameless(error, path)
            except AssertionError as nameless:
                failure = str(nameless)
    except BaseException as error:
        failure = f"traceback: {error!r:.300}{_where(error)}"
    events, _ = (audit.events, setattr(audit, "events", None)) if audit is not None else ([], None)
    return f"{failure} {events}" if events else failure


def _where(error: BaseException) -> str:
    trace, last = error.__traceback__, ""
    while trace is not None:
        last = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return last


def _peak_bytes(*, begin: bool = False) -> int:
    """The most memory that this process had since the last begin."""
    if begin:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def case(target: Target, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """The content of a case, a function of the seeds, the seed and its number."""
    rng = np.random.default_rng([seed, zlib.crc32(target.name.encode()), number])
    return target.mutate(seeds, rng)


def batch(target: Target, folder: Path, seed: int, first: int, n: int) -> Iterator[Result]:
    """The results of n cases, read in a process of their own; if that dies or hangs, the others go on in another one."""
    seeds = target.all_seeds()
    done = 0
    while done < n:
        begin = first + done
        marks = mmap.mmap(-1, 16)  # number of the case under way, and when it began
        marks[:] = struct.pack("<qd", begin, time.monotonic() + WARM_SECONDS)
        pid = os.fork()
        if pid == 0:
            _read_cases(target, seeds, folder, seed, range(begin, first + n), marks)
        ended = _watched(pid, marks)
        finished = int(struct.unpack("<q", marks[:8])[0]) - begin
        failures = _reported(folder)
        for number in range(begin, begin + finished):
            failure = failures.get(number, "")
            yield Result(target.name, failure and _kept(target, seeds, seed, number, failure))
        done += finished
        if ended:
            number = first + done
            yield Result(target.name, _kept(target, seeds, seed, number, ended))
            done += 1


def _read_cases(
    target: Target, seeds: Sequence[bytes], folder: Path, seed: int, numbers: range, marks: mmap.mmap
) -> None:
    """Read cases and end this process."""
    try:
        limit = _own_bytes() + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        warnings.simplefilter("ignore")
        _import_all(target, seeds, folder)
        audit = Audit()
        report = (folder / "report").open("w")
        for number in numbers:
            marks[:] = struct.pack("<qd", number, time.monotonic())
            failure = judged(target, folder, case(target, seeds, seed, number), audit)
            if failure:
                report.write(json.dumps([number, failure]) + "\n")
                report.flush()
        marks[:] = struct.pack("<qd", numbers.stop, time.monotonic())
        os._exit(0)
    except BaseException:
        import traceback

        (folder / "broken").write_text(traceback.format_exc())
        os._exit(3)


def _import_all(target: Target, seeds: Sequence[bytes], folder: Path) -> None:
    """Read a few good files, so that what libraries run when they are imported is not taken for a case's."""
    for content in seeds[:20]:
        with contextlib.suppress(Exception):
            target.read(target.place(folder, content))


def _own_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _watched(pid: int, marks: mmap.mmap) -> str:
    """Wait for a batch; what ended it early, if anything did."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == 3:
                raise RuntimeError("the harness itself failed, see the file 'broken'")
            return "" if code == 0 else f"the process ended with {code}"
        since = struct.unpack("<qd", marks[:16])[1]
        if time.monotonic() - since > CASE_SECONDS:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"takes more than {CASE_SECONDS:.0f} s"
        time.sleep(0.005)


def _reported(folder: Path) -> dict[int, str]:
    file = folder / "report"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return dict(json.loads(line) for line in lines)


def _kept(target: Target, seeds: Sequence[bytes], seed: int, number: int, failure: str) -> str:
    """Keep a failing case; the failure with a line that repeats it."""
    FAILURES.mkdir(exist_ok=True)
    file = FAILURES / f"{target.name}-{seed}-{number}"
    file.write_bytes(case(target, seeds, seed, number))
    return (
        f"{failure} (repeat: PYTHONPATH=tests python -m torture.fuzz {target.name} {os.path.relpath(file)})"
    )


def commands(target: Target, folder: Path, seed: int, numbers: Sequence[int]) -> Iterator[Result]:
    """Cases through the command line, in a forked process each."""
    seeds = target.all_seeds()
    for number in numbers:
        content = case(target, seeds, seed, number)
        out = folder / f"out-{number}"
        arguments = target.command(target.place(folder, content), out)
        failure = forked_command(arguments, folder / "printed")
        yield Result(
            "command line", failure and _kept(target, seeds, seed, number, f"{arguments}: {failure}")
        )


def forked_command(arguments: list[str], printed: Path, seconds: float = 60.0) -> str:
    """Run the command line in a fork of this process, which has imported everything; what is wrong with its end."""
    from ddclust.cli.main import main

    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            descriptor = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(io.FileIO(fd, "w"), write_through=True) for fd in (1, 2)
            )
            main(arguments, prog_name="ddclust")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return f"takes more than {seconds:.0f} s"
        time.sleep(0.005)
    return command_failure(os.waitstatus_to_exitcode(ended[1]), printed.read_text(errors="replace"))


def command_failure(code: int, text: str) -> str:
    """What is wrong with how a command ended, if anything is: 0, or 2 with one line that is an error."""
    lines = [line for line in text.splitlines() if line.startswith("Error:")]
    if "Traceback" in text:
        return f"a traceback: {text[-1500:]}"
    if code not in (0, 2):
        return f"exit code {code}: {text[-500:]}"
    if code == 2 and len(lines) != 1:
        return f"{len(lines)} lines of errors: {text[-500:]}"
    return ""


def processes(target: Target, folder: Path, seed: int, numbers: Sequence[int]) -> Iterator[Result]:
    """Cases through the command line as a user starts it."""
    seeds = target.all_seeds()
    for number in numbers:
        content = case(target, seeds, seed, number)
        arguments = target.command(target.place(folder, content), folder / f"process-{number}")
        done = subprocess.run(
            [*PROCESS, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        failure = command_failure(done.returncode, done.stderr)
        yield Result("process", failure and _kept(target, seeds, seed, number, f"{arguments}: {failure}"))


def corpus(target: Target, folder: Path) -> Iterator[Result]:
    """The kept files: good ones are read, those that once were read wrongly are refused by now."""
    for file in target.kept():
        content = file.read_bytes()
        yield Result("corpus", (failure := judged(target, folder, content)) and f"{file.name}: {failure}")


def run(folder: Path, scale: float, seed: int) -> Iterator[Result]:
    """Cases of every target, by their shares."""
    whole = sum(target.share for target in TARGETS.values())
    for number, target in enumerate(TARGETS.values()):
        place = folder / target.name
        place.mkdir(parents=True)
        yield from corpus(target, place)
        n = max(int(PART.about * scale * target.share / whole), 5)
        for first in range(0, n, BATCH):
            yield from batch(target, place, seed, first, min(BATCH, n - first))
        yield from commands(target, place, seed, range(0, n, IN_COMMAND))
        if number % 4 == 0:
            yield from processes(target, place, seed, [n // 2])


PART = Part("fuzz", "cases", 100_000, run)


def main() -> None:
    """Read the files that are given, or cases, and print what is wrong."""
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    target = TARGETS[options.target]
    with tempfile.TemporaryDirectory() as folder:
        failures = []
        if options.files:
            _import_all(target, target.all_seeds(), Path(folder))
            audit = Audit()
            for file in options.files:
                failures.append(judged(target, Path(folder), file.read_bytes(), audit))
                print(f"{file}: {failures[-1] or 'as it should be'}")
        else:
            begun = time.monotonic()
            for result in batch(target, Path(folder), options.seed, options.first, options.cases):
                failures.append(result.failure)
                if result.failure:
                    print(result.failure)
            print(
                f"{len(failures)} cases, {sum(map(bool, failures))} failures, {time.monotonic() - begun:.0f} s"
            )
    sys.exit(any(failures))


if __name__ == "__main__":
    main()
