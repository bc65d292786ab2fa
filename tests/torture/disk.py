"""What a process does to a folder: watched, made to fail at a point, recorded, and replayed as a crash would leave it.

Everything that writes files goes through ``open``, ``os.open``, ``os.fsync``, ``os.replace``, ``os.rename``, ``os.unlink``,
``os.mkdir`` and ``os.rmdir``. Within :func:`watched` each such call in a folder is an :class:`Op`.
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import io
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

# What fails, once or from then on; what stops the process, with the call not made, half made, or made.
HOWS = (
    "fail",
    "fail from there on",
    "interrupt before",
    "interrupt after",
    "kill before",
    "kill half",
    "kill after",
)
METADATA = ("create", "rename", "unlink", "mkdir", "rmdir")


class Op(NamedTuple):
    """A call that changes a folder. Paths are relative to it; a write is at the end of the file."""

    kind: str
    path: str
    to: str = ""
    data: bytes = b""


Handler = Callable[[Op, Callable[[bytes], Any]], Any]


class _Writer(io.RawIOBase):
    """A file whose writes are watched. Not a FileIO, so numpy writes through it, too."""

    def __init__(self, file: io.FileIO, path: str, handle: Handler) -> None:
        self._file, self._path, self._handle = file, path, handle

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._handle(Op("write", self._path, data=content), self._file.write)
        return len(content)

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return self._file.readable()

    def seekable(self) -> bool:
        return self._file.seekable()

    def readinto(self, buffer: Any) -> Any:
        return self._file.readinto(buffer)

    def seek(self, *arguments: Any) -> int:
        return self._file.seek(*arguments)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()


@contextmanager
def watched(folder: Path, handle: Handler) -> Iterator[None]:
    """Call ``handle(op, make)`` for every change below a folder; ``make(data)`` makes the call."""
    root = str(folder.resolve())

    def inside(path: Any, dir_fd: int | None = None) -> str | None:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        base = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        full = os.path.normpath(os.path.join(base, os.fsdecode(path)))
        return os.path.relpath(full, root) if full == root or full.startswith(root + os.sep) else None

    real = {
        name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "open")
    }
    real_open = io.open

    def one(kind: str, name: str) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            place = inside(path, named.get("dir_fd"))
            # A folder that exists already, or a file that does not, makes no difference to the disk.
            if place is None or os.path.lexists(os.path.join(root, place)) == (kind == "mkdir"):
                return real[name](path, *arguments, **named)
            return handle(Op(kind, place), lambda _: real[name](path, *arguments, **named))

        return call

    def rename(path: Any, to: Any, **named: Any) -> Any:
        places = inside(path), inside(to)
        if None in places:
            return real["replace"](path, to, **named)
        return handle(Op("rename", *places), lambda _: real["replace"](path, to, **named))

    def open_descriptor(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        place = inside(path, named.get("dir_fd"))
        if place is None or not flags & os.O_CREAT or os.path.lexists(path):
            return real["open"](path, flags, *arguments, **named)
        return handle(Op("create", place), lambda _: real["open"](path, flags, *arguments, **named))

    def open_file(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **named: Any) -> Any:
        place = None if isinstance(file, int) or not set(mode) & set("wax+") else inside(file)
        if place is None:
            return real_open(file, mode, buffering, *arguments, **named)
        raw = handle(Op("create", place), lambda _: io.FileIO(file, mode.replace("b", "").replace("t", "")))
        writer = _Writer(raw, place, handle)
        if "b" in mode:
            return writer
        return io.TextIOWrapper(writer, *arguments, **named, write_through=True)  # type: ignore[arg-type]

    patches = {
        "fsync": one("fsync", "fsync"),
        "replace": rename,
        "rename": rename,
        "unlink": one("unlink", "unlink"),
        "remove": one("unlink", "unlink"),
        "mkdir": one("mkdir", "mkdir"),
        "rmdir": one("rmdir", "rmdir"),
        "open": open_descriptor,
    }
    before = {name: getattr(os, name) for name in patches}
    try:
        for name, patch in patches.items():
            setattr(os, name, patch)
        io.open = builtins.open = open_file  # type: ignore[assignment]
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)
        io.open = builtins.open = real_open  # type: ignore[assignment]


class Reached:
    """Whether the point of :func:`failing_at` was reached."""

    def __init__(self) -> None:
        self.calls = 0
        self.op: Op | None = None

    def __bool__(self) -> bool:
        return self.op is not None


@contextmanager
def failing_at(folder: Path, n: int, how: str) -> Iterator[Reached]:
    """Let the n-th change below a folder fail, be interrupted, or be the end of the process, counted from 1."""
    reached = Reached()

    def handle(op: Op, make: Callable[[bytes], Any]) -> Any:
        reached.calls += 1
        if reached.calls < n or (reached.calls > n and how != "fail from there on"):
            return make(op.data)
        reached.op = reached.op or op
        if how.startswith("fail"):
            if op.kind == "write":
                make(op.data[: len(op.data) // 2])
            if reached.calls > n and op.kind not in ("write", "fsync", "create"):
                return make(op.data)  # a full disk lets files be removed and renamed
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), op.path)
        if how == "kill half" and op.kind == "write":
            make(op.data[: len(op.data) // 2])
        if how.endswith("after"):
            result = make(op.data)
            if how.startswith("interrupt"):
                _forget(result)
                raise KeyboardInterrupt
        if how.startswith("interrupt"):
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    with watched(folder, handle):
        yield reached


def _forget(result: Any) -> None:
    """Close what a call opened that never returned it."""
    if isinstance(result, io.IOBase):
        result.close()
    elif isinstance(result, int) and not isinstance(result, bool) and result > 2:
        os.close(result)


@contextmanager
def recording(folder: Path) -> Iterator[list[Op]]:
    """The changes below a folder, in order."""
    ops: list[Op] = []

    def handle(op: Op, make: Callable[[bytes], Any]) -> Any:
        result = make(op.data)
        ops.append(op)
        return result

    with watched(folder, handle):
        yield ops


class _File:
    """The content of a file, and how much of it is known to be on the disk."""

    def __init__(self, content: bytes = b"", synced: int = 0) -> None:
        self.content, self.synced = content, synced


Tree = dict[str, "_File | None"]  # None stands for a folder
# What is left of data that was never synced.
REMAINS: dict[str, Callable[[bytes], bytes]] = {
    "kept": lambda unsynced: unsynced,
    "lost": lambda unsynced: b"",
    "half": lambda unsynced: unsynced[: len(unsynced) // 2],
    "zeros": lambda unsynced: bytes(len(unsynced)),
}


def snapshot(folder: Path) -> Tree:
    """All that is below a folder, taken to be on the disk."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        content = None if path.is_dir() else path.read_bytes()
        tree[str(path.relative_to(folder))] = None if content is None else _File(content, len(content))
    return tree


def crashes(before: Tree, ops: list[Op], cuts: int = 3) -> Iterator[tuple[str, dict[str, bytes | None]]]:
    """Every distinct state in which a crash can leave a folder, with a name to repeat it.

    Two kinds of crash after each operation. If the process is killed, everything it did counts, and a write may be cut. If
    the power fails, changes of names happen in order, up to any of those that no sync of their folder has forced; and
    content that no sync of its file has forced is kept, lost, cut in half, or zeros.
    """
    seen: set[bytes] = set()

    def fresh(state: dict[str, bytes | None]) -> bool:
        digest = hashlib.sha256()
        for name in sorted(state):
            content = state[name]
            digest.update(repr((name, None if content is None else len(content))).encode() + (content or b""))
        known = digest.digest() in seen
        seen.add(digest.digest())
        return not known

    for i in range(len(ops) + 1):
        state = _plain(_applied(before, ops[:i], i), "kept")
        if fresh(state):
            yield f"killed after {i}", state
        if i < len(ops) and ops[i].kind == "write":
            for cut in range(1, cuts + 1):
                data = ops[i].data[: len(ops[i].data) * cut // (cuts + 1)]
                state = _plain(_applied(before, [*ops[:i], ops[i]._replace(data=data)], i + 1), "kept")
                if fresh(state):
                    yield f"killed in {i}, cut {cut}", state
        for j in range(_forced(ops, i), i + 1):
            tree = _applied(before, ops[:i], j)
            for remains in REMAINS:
                state = _plain(tree, remains)
                if fresh(state):
                    yield f"power fails after {i}, names of {j}, content {remains}", state


def _forced(ops: list[Op], i: int) -> int:
    """How many of the first i operations must have happened to the names: syncing a folder forces what came before."""
    for k in range(i - 1, -1, -1):
        if ops[k].kind == "fsync" and any(
            op.kind in METADATA
            and ops[k].path in (os.path.dirname(op.path) or ".", os.path.dirname(op.to) or ".")
            for op in ops[:k]
        ):
            return k
    return 0


def _applied(before: Tree, ops: list[Op], names_until: int) -> Tree:
    """The tree after operations; changes of names only up to a number of them. Files keep their identity over renames."""
    tree: Tree = {
        name: None if file is None else _File(file.content, file.synced) for name, file in before.items()
    }
    live = dict(tree)  # what the process sees, with the same files
    for number, op in enumerate(ops):
        trees = (live, tree) if number < names_until else (live,)
        if op.kind == "create":
            file = _File()
            for each in trees:
                each[op.path] = file
        elif op.kind == "mkdir":
            for each in trees:
                each[op.path] = None
        elif op.kind == "write":
            written = live[op.path]
            assert written is not None
            written.content += op.data
        elif op.kind == "fsync":
            synced = live.get(op.path)
            if synced is not None:
                synced.synced = len(synced.content)
        elif op.kind in ("unlink", "rmdir"):
            for each in trees:
                each.pop(op.path, None)
        elif op.kind == "rename":
            for each in trees:
                moved = [name for name in each if name == op.path or name.startswith(op.path + "/")]
                for name in moved:
                    each[op.to + name[len(op.path) :]] = each.pop(name)
    return tree


def _plain(tree: Tree, remains: str) -> dict[str, bytes | None]:
    return {
        name: None
        if file is None
        else file.content[: file.synced] + REMAINS[remains](file.content[file.synced :])
        for name, file in tree.items()
    }


def materialise(state: dict[str, bytes | None], folder: Path) -> None:
    """Write a state to a folder in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in sorted(state.items(), key=lambda entry: entry[0].count("/")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content)
