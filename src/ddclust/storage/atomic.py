"""Files that are written in full or not at all, and locks that reserve a folder for one process."""

from __future__ import annotations

import json
import os
import secrets
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
    """Write a file in full or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
