"""Files that are written in full or not at all, and locks that reserve a folder for one process."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]


def write_json(path: Path, content: Any) -> None:
    """Write JSON in full or not at all; NaN is refused, since it is not JSON."""
    write_file(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def write_file(path: Path, content: bytes) -> None:
    """Write a file in full or not at all. What a killed process left of an earlier attempt is removed."""
    remove_rests(path)
    temporary = temporary_name(path)
    try:
        with temporary.open("xb") as file:
            _hold(file.fileno())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_name(path: Path) -> Path:
    """A hidden name beside a path, for what becomes it when it is whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def remove_rests(path: Path) -> None:
    """Remove what processes that were killed have left under temporary names of a path.

    Whoever writes there holds a lock, so what is not locked is nobody's.
    """
    if fcntl is None:
        return
    for rest in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        with contextlib.suppress(OSError):
            descriptor = os.open(rest, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def new_folder_beside(path: Path) -> Iterator[Path]:
    """A hidden folder for the time of the block, for what becomes the path when it is whole."""
    remove_rests(path)
    staging = temporary_name(path)
    descriptor = None
    try:
        staging.mkdir()
        descriptor = os.open(staging, os.O_RDONLY) if fcntl is not None else None
        if descriptor is not None:
            _hold(descriptor)
        yield staging
    finally:
        if descriptor is not None:
            os.close(descriptor)
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block with the folder, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if descriptor is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _hold(descriptor: int) -> None:
    """Lock a file or folder that is new, so that nobody takes it for a rest."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_links(folder: Path, error: type[Exception]) -> None:
    """Refuse a folder with a symbolic link below it: what is written through it would end up elsewhere."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(root, name)):
                raise error(
                    f"{os.path.join(root, name)!r} is a symbolic link, which is not followed; remove it."
                )


def locked(path: Path) -> IO[str] | None:
    """A lock file, open and ours until it is closed or the process ends; None if another process has it.

    A symbolic link is not followed, and nothing in the file is changed: the folder may come from somebody else.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    lock = os.fdopen(os.open(path, flags, 0o666), "r+")
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
    return lock


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file; one that a killed process left behind is held by nobody."""
    if fcntl is None or path.is_symlink() or not path.is_file():
        return fcntl is None and path.is_file()
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
