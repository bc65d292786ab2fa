"""What a fit leaves on disk while it works, so that it can go on after anything.

A workspace with ``fit.json``, which says what fit it belongs to, and two files for each run that are written in turns:
whatever happens to the newer one, the older one is whole. Each is a SHA-256 digest followed by safetensors.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from ddclust.storage.atomic import write_file
from ddclust.storage.workspace import Kind, Workspace, WorkspaceError
from ddclust.training.record import RunRecord

DIGEST_BYTES = 32


class CheckpointError(WorkspaceError):
    """A checkpoint folder that cannot be used."""


CHECKPOINTS = Kind(
    format="ddclust-checkpoint",
    version=2,
    file="fit.json",
    content="checkpoints",
    work="Another fit",
    differences={
        "data": "the data differ",
        "must_link": "the pairs of must_link differ",
        "cannot_link": "the pairs of cannot_link differ",
        "seeds": "random_state is another",
        "kept_by": "the callbacks keep other things",
    },
    error=CheckpointError,
)


class RunState(NamedTuple):
    """Where a run is: the trainer's tensors and plain values, and the run's record."""

    tensors: dict[str, Tensor]
    plain: dict[str, Any]
    record: RunRecord


class RunStore(Workspace):
    """The checkpoints of one fit."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder, CHECKPOINTS)

    def save(self, state: RunState) -> None:
        """Write a run's state; the one before it stays, too."""
        record = state.record
        body = save(
            {name: value.detach().cpu().contiguous().clone() for name, value in state.tensors.items()},
            metadata={
                "state": json.dumps({"plain": state.plain, "record": record.to_dict()}, allow_nan=False)
            },
        )
        file = self._files(record.run)[record.saves % 2]
        try:
            _write_checked(file, body)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the checkpoint of run {record.run + 1} at iteration {state.plain['iteration']}"
                " cannot be written. What was saved before is intact; make room and fit again to go on from there",
                str(self.folder),
            ) from error

    def load(self, index: int) -> RunState | None:
        """The latest whole state of a run, or None if there is none."""
        states = [state for state in map(_read_state, self._files(index)) if state is not None]
        return max(states, key=lambda state: state.record.saves, default=None)

    def remembered(self, name: str, make: Callable[[], NDArray]) -> NDArray:
        """An array that all runs share: as an earlier fit left it, else made now and left for later ones."""
        file = self.folder / name
        body = _read_checked(file)
        if body is not None:
            return load(body)[name].numpy()
        array = make()
        _write_checked(file, save({name: torch.from_numpy(array)}))
        return array

    def records(self) -> list[RunRecord]:
        """The record of every run that has a state."""
        records = []
        for state in map(self.load, range(len(self.read()["seeds"]))):
            if state is not None:
                state.record.n_iter = state.plain["iteration"]
                records.append(state.record)
        return records

    def _files(self, index: int) -> list[Path]:
        return [self.folder / f"run-{index:03d}.{side}" for side in "ab"]


def _read_state(file: Path) -> RunState | None:
    """The state in a file, None if it is missing or damaged."""
    body = _read_checked(file)
    if body is None:
        return None
    state = json.loads(_metadata(body)["state"])
    return RunState(load(body), state["plain"], RunRecord.from_dict(state["record"]))


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
