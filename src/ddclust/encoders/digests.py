"""Digests of what an encoder is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of_files(files: Iterable[Path], folder: Path) -> str:
    """SHA-256 of the content of files and of their names below a folder, in any order."""
    digest = hashlib.sha256()
    for name, file in sorted((file.relative_to(folder).as_posix(), file) for file in files):
        with file.open("rb") as opened:
            digest.update(f"{name} {hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
