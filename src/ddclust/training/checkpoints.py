"""What a fit leaves on disk while it works, so that it can go on after anything.

A folder with ``fit.json``, which says what fit it belongs to, and for each run two files that are written in turns:
whatever happens to the newer one, the older one is whole. Each is a SHA-256 digest followed by safetensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from ddclust.storage.atomic import locked, write_file, write_json

FORMAT = "ddclust-checkpoint"
FORMAT_VERSION = 1
IDENTITY_FILE = "fit.json"
LOCK_FILE = "lock"
DIGEST_BYTES = 32
# What a fit's identity holds a fingerprint of, and what to say if it is another.
BY_FINGERPRINT = {
    "data": "the data differ",
    "must_link": "the pairs of must_link differ",
    "cannot_link": "the pairs of cannot_link differ",
}


class CheckpointError(ValueError):
    """A checkpoint folder that cannot be used."""


class RunState(NamedTuple):
    """Where a run is: the trainer's tensors and plain values, and the run's record."""

    tensors: dict[str, Tensor]
    plain: dict[str, Any]
    record: dict[str, Any]


class RunStore:
    """The checkpoints of one fit."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._lock: IO[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_lock": None}

    def claim(self, identity: dict[str, Any], seeds: list[int], *, own_seeds: bool) -> list[int]:
        """Make the folder this fit's, or check that it is, and give the seeds to use.

        Without ``own_seeds`` the caller leaves them to chance, and those in the folder are taken.
        """
        identity = json.loads(json.dumps(identity))
        file = self.folder / IDENTITY_FILE
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {IDENTITY_FILE, LOCK_FILE}
        if not file.exists() and any(
            p.name not in own and not p.name.endswith(".partial") for p in self.folder.iterdir()
        ):
            raise CheckpointError(
                f"{str(self.folder)!r} holds other files than checkpoints; choose an empty or new folder."
            )
        self._take_lock()
        for torn in self.folder.glob(".*.partial"):
            torn.unlink(missing_ok=True)
        if not file.exists():
            header = {"format": FORMAT, "format_version": FORMAT_VERSION}
            write_json(file, {**header, **identity, "seeds": seeds})
            return seeds
        found = self._read_identity(file)
        differences = _differences(found, identity)
        if own_seeds and found["seeds"] != seeds:
            differences.append("random_state is another")
        if differences:
            raise CheckpointError(
                f"The checkpoints in {str(self.folder)!r} belong to another fit: {'; '.join(differences)}."
                " Fit as before to go on, or choose another folder."
            )
        return found["seeds"]

    def release(self) -> None:
        """Let others have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        """Two fits in one folder would spoil each other's work."""
        self._lock = locked(self.folder / LOCK_FILE)
        if self._lock is None:
            raise CheckpointError(f"Another fit is using the checkpoints in {str(self.folder)!r}.")

    def save(self, state: RunState) -> None:
        """Write a run's state; the one before it stays, too."""
        plain = {"plain": state.plain, "record": state.record}
        body = save(
            {name: value.detach().cpu().contiguous() for name, value in state.tensors.items()},
            metadata={"state": json.dumps(plain, allow_nan=False)},
        )
        index = state.record["run"]
        file = self._files(index)[state.record["saves"] % 2]
        try:
            _write_checked(file, body)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the checkpoint of run {index + 1} at iteration {state.plain['iteration']} cannot"
                " be written. What was saved before is intact; make room and fit again to go on from there",
                str(self.folder),
            ) from error

    def load(self, index: int) -> RunState | None:
        """The latest whole state of a run, or None if there is none."""
        states = [state for state in map(_read_state, self._files(index)) if state is not None]
        return max(states, key=lambda state: state.record["saves"], default=None)

    def remembered(self, name: str, make: Callable[[], NDArray]) -> NDArray:
        """An array that all runs share: as an earlier fit left it, else made now and left for later ones."""
        file = self.folder / name
        body = _read_checked(file)
        if body is not None:
            return load(body)[name].numpy()
        array = make()
        _write_checked(file, save({name: torch.from_numpy(array)}))
        return array

    def records(self) -> list[dict[str, Any]]:
        """The record of every run that has a state, for people to look at."""
        identity = self._read_identity(self.folder / IDENTITY_FILE)
        states = map(self.load, range(len(identity["seeds"])))
        return [state.record | {"n_iter": state.plain["iteration"]} for state in states if state is not None]

    def _files(self, index: int) -> list[Path]:
        return [self.folder / f"run-{index:03d}.{side}" for side in "ab"]

    def _read_identity(self, file: Path) -> dict[str, Any]:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise CheckpointError(
                f"{str(file)!r} cannot be read; delete the folder to start anew."
            ) from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise CheckpointError(f"{str(file)!r} does not describe checkpoints of ddclust.")
        if found.get("format_version") != FORMAT_VERSION:
            raise CheckpointError(
                f"The checkpoints in {str(self.folder)!r} have format {found.get('format_version')}, this ddclust"
                f" reads {FORMAT_VERSION}; go on with the version that wrote them, or delete the folder."
            )
        return found


def _read_state(file: Path) -> RunState | None:
    """The state in a file, None if it is missing or damaged."""
    body = _read_checked(file)
    return None if body is None else RunState(load(body), **json.loads(_metadata(body)["state"]))


def _write_checked(file: Path, body: bytes) -> None:
    write_file(file, hashlib.sha256(body).digest() + body)


def _read_checked(file: Path) -> bytes | None:
    """What was written to a file, None if it is missing or damaged."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None


def _metadata(body: bytes) -> dict[str, str]:
    """The metadata of safetensors in memory: JSON after a length of eight bytes."""
    length = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + length])["__metadata__"]


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs between two nested dicts, in words."""
    words = []
    for key in wanted:
        if isinstance(wanted[key], dict) and isinstance(found.get(key), dict):
            words += _differences(found[key], wanted[key])
        elif found.get(key) != wanted[key]:
            words.append(
                BY_FINGERPRINT.get(key) or f"{key} is {found.get(key)!r} there and {wanted[key]!r} here"
            )
    return words
