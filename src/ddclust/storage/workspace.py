"""Folders of work that can be stopped and resumed: whose they are, who works in them, and what they hold.

A workspace is a folder with an identity file. It belongs to the work whose identity it names, one process at a time: fits,
comparisons, scans and experiments go on in a folder of their own kind and refuse any other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ddclust.storage.atomic import locked, refuse_links
from ddclust.storage.json_files import PLAIN, SEAL, as_json, checked, read_json, write_sealed

LOCK_FILE = "lock"


class WorkspaceError(ValueError):
    """A folder that cannot be used for this work."""


@dataclass(frozen=True)
class Kind:
    """What a workspace is for.

    Parameters
    ----------
    format : str
        Marks the identity file.
    file : str
        The name of the identity file.
    content : str
        What the folder holds, in words, as in "holds a comparison".
    work : str
        What goes on in it, in words, as in "Another comparison".
    differences : mapping of str to str
        What to say if an entry of the identity differs, where its values would say nothing.
    error : type
        What is raised.
    schema : type
        What the identity file must hold besides; see :mod:`ddclust.storage.json_files`.
    """

    format: str
    file: str
    content: str
    work: str
    differences: Mapping[str, str]
    error: type[WorkspaceError] = WorkspaceError
    version: int = 1
    schema: Any = dict[str, Any]


class Workspace:
    """A folder that this process may hold for itself."""

    def __init__(self, folder: str | os.PathLike[str], kind: Kind) -> None:
        self.folder = Path(folder)
        self.kind = kind
        self._lock: IO[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lock": None}

    @property
    def identity_file(self) -> Path:
        return self.folder / self.kind.file

    @contextmanager
    def claimed(self, identity: Mapping[str, Any], **also: Any) -> Iterator[dict[str, Any]]:
        """Hold the folder for the time of the block; gives the content of its identity file.

        A new folder is made this work's, and ``also`` is written beside the identity. One that exists must name the same
        identity.
        """
        try:
            yield self.claim(identity, **also)
        finally:
            self.release()

    def claim(self, identity: Mapping[str, Any], **also: Any) -> dict[str, Any]:
        """Take the folder; see :meth:`claimed`."""
        identity = as_json(identity)
        self._refuse_other_files()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            for torn in self.folder.glob(".*.partial"):
                torn.unlink(missing_ok=True)
            if not self.identity_file.exists():
                header = {"format": self.kind.format, "format_version": self.kind.version}
                write_sealed(self.identity_file, {**header, **identity, **also})
            found = self.read()
            self.refuse(self.differences(found, identity))
        except BaseException:
            self.release()
            raise
        return found

    def is_begun(self) -> bool:
        """Whether there is any work in the folder."""
        self._refuse_other_files()
        return self.identity_file.exists()

    def finish(self, **content: Any) -> None:
        """Write the outcome of the work into the identity file."""
        write_sealed(self.identity_file, self.read() | content)

    def release(self) -> None:
        """Let others have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read(self) -> dict[str, Any]:
        """The content of the identity file, checked."""
        file, kind = self.identity_file, self.kind
        remedy = "delete the folder to start anew"
        try:
            found = read_json(file, PLAIN, remedy=remedy, error=kind.error)
        except OSError as error:
            raise kind.error(f"{str(file)!r} cannot be read ({error.strerror}); {remedy}.") from error
        if found.get("format") != kind.format:
            raise kind.error(f"{str(file)!r} does not describe {kind.content} of ddclust.")
        if found.get("format_version") != kind.version:
            raise kind.error(
                f"{str(self.folder)!r} holds {kind.content} of format {found.get('format_version')}, this ddclust reads"
                f" {kind.version}; go on with the version that wrote it, or delete the folder."
            )
        checked(found, kind.schema, what=repr(str(file)), remedy=remedy, error=kind.error)
        found.pop(SEAL, None)
        return found

    def refuse(self, differences: list[str]) -> None:
        """An error that names all differences, if there are any."""
        if differences:
            raise self.kind.error(
                f"{str(self.folder)!r} holds {self.kind.content} of other work: {'; '.join(differences)}."
                " Repeat the same call to go on with it, or choose another folder."
            )

    def differences(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
        """What differs between two nested identities, in words."""
        words = []
        for name, value in wanted.items():
            there = found.get(name)
            if name in self.kind.differences:
                words += [] if there == value else [self.kind.differences[name]]
            elif isinstance(value, dict) and isinstance(there, dict) and value.keys() & there.keys():
                missing = dict.fromkeys(there.keys() - value.keys())
                words += self.differences(there, {**value, **missing})
            elif there != value:
                words.append(f"{name} is {there!r} there and {value!r} here")
        return words

    def discard(self, name: str) -> None:
        """Remove a folder inside, once the work is finished."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def _refuse_other_files(self) -> None:
        """Refuse a folder that holds other files, which might be in the way or be spoilt, or links to other places."""
        refuse_links(self.folder, self.kind.error)
        if self.identity_file.exists() or not self.folder.exists():
            return
        if any(p.name != LOCK_FILE and not p.name.endswith(".partial") for p in self.folder.iterdir()):
            raise self.kind.error(
                f"{str(self.folder)!r} holds other files than {self.kind.content}; choose an empty or new folder."
            )

    def _take_lock(self) -> None:
        """Two processes in one folder would spoil each other's work."""
        self._lock = locked(self.folder / LOCK_FILE)
        if self._lock is None:
            raise self.kind.error(f"{self.kind.work} is using {str(self.folder)!r}.")
