"""What a fit leaves on disk while it works, so that it can go on after anything.

A workspace with ``fit.json``, which says what fit it belongs to, and two files for each run that are written in turns:
whatever happens to the newer one, the older one is whole. Each is a SHA-256 digest followed by safetensors.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ddclust.objective.precision import PRECISIONS
from ddclust.storage.atomic import write_file
from ddclust.storage.json_files import parsed
from ddclust.storage.limits import read_bytes
from ddclust.storage.workspace import Kind, Workspace, WorkspaceError
from ddclust.training.inference import Outputs
from ddclust.training.record import RunRecord

DIGEST_BYTES = 32
NEIGHBORS_FILE = "neighbors"  # of the items, which all runs share


REMEDY = "delete the folder of the checkpoints to start anew"


class CheckpointError(WorkspaceError):
    """A checkpoint folder that cannot be used."""


class _Setup(TypedDict):
    """What is used of a setup."""

    precision: NotRequired[str]


class _FitFile(TypedDict):
    """What is used of fit.json, apart from comparing it."""

    seeds: list[int]
    setup: NotRequired[_Setup]


class _PlainState(TypedDict):
    """The plain values of a trainer."""

    iteration: int
    history: list[dict[str, int | float]]
    open: dict[str, int | float]


class _SavedState(TypedDict):
    """What a checkpoint holds besides tensors."""

    plain: _PlainState
    record: RunRecord


class _Metadata(TypedDict):
    state: str


_Header = TypedDict("_Header", {"__metadata__": _Metadata})


CHECKPOINTS = Kind(
    format="ddclust-checkpoint",
    version=2,
    file="fit.json",
    content="checkpoints",
    work="Another fit",
    differences={
        "data": "the data differ",
        "sample_weight": "the weights of the items differ",
        "must_link": "the pairs of must_link differ",
        "cannot_link": "the pairs of cannot_link differ",
        "seeds": "random_state is another",
        "kept_by": "the callbacks keep other things",
    },
    error=CheckpointError,
    schema=_FitFile,
)


class RunState(NamedTuple):
    """Where a run is: the trainer's tensors and plain values, and the run's record.

    Of a run that has just ended, it may hold the outputs for all items, too; checkpoints do not.
    """

    tensors: dict[str, Tensor]
    plain: dict[str, Any]
    record: RunRecord
    outputs: Outputs | None = None


class RunStore(Workspace):
    """The checkpoints of one fit."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder, CHECKPOINTS)

    def save(self, state: RunState) -> None:
        """Write a run's state; the one before it stays, too."""
        record = state.record
        file = self._files(record.run)[record.saves % 2]
        try:
            _write_checked(file, state_as_bytes(state))
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
            return _loaded(body, repr(str(file)), name)[name].numpy()
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


def continued_precision(workspace: Workspace, precision: str) -> str:
    """The precision of the work that a folder holds, which is said if it is another, or else ``precision``.

    What "auto" stands for depends on the machine, and work may go on on another one.
    """
    if not workspace.is_begun():
        return precision
    begun = workspace.read().get("setup", {}).get("precision")
    if begun == precision or begun not in PRECISIONS:
        return precision
    warnings.warn(
        f"The runs in {str(workspace.folder)!r} were begun in {begun} and go on in it; on this machine they would begin in"
        f" {precision}.",
        UserWarning,
        stacklevel=5,
    )
    return begun


def state_as_bytes(state: RunState) -> bytes:
    """A run's state without its outputs, as safetensors."""
    return save(
        {name: value.detach().cpu().contiguous().clone() for name, value in state.tensors.items()},
        metadata={
            "state": json.dumps({"plain": state.plain, "record": state.record.to_dict()}, allow_nan=False)
        },
    )


def _read_state(file: Path) -> RunState | None:
    """The state in a file, None if it is missing or damaged."""
    body = _read_checked(file)
    return None if body is None else state_in(body, repr(str(file)))


def state_in(body: bytes, what: str) -> RunState:
    """The state that :func:`state_as_bytes` has written; errors name ``what`` it comes from."""
    length = int.from_bytes(body[:8], "little")  # of the JSON at the beginning of safetensors
    header = parsed(body[8 : 8 + length], _Header, what=what, remedy=REMEDY, error=CheckpointError)
    content = header["__metadata__"]["state"].encode("utf-8", "surrogatepass")
    state = parsed(content, _SavedState, what=what, remedy=REMEDY, error=CheckpointError)
    if not state["record"].is_whole:
        raise CheckpointError(
            f"{what} describes a run that has ended, or was judged, without a loss or an error; {REMEDY}."
        )
    return RunState(_loaded(body, what), state["plain"], state["record"])


def _loaded(body: bytes, what: str, *names: str) -> dict[str, Tensor]:
    """The tensors in the content of a file, among them those of these names."""
    try:
        tensors = load(body)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{what} holds no tensors ({error}); {REMEDY}.") from error
    if not tensors.keys() >= set(names):
        raise CheckpointError(f"{what} lacks the tensor {names[0]!r}; {REMEDY}.")
    return tensors


def _write_checked(file: Path, body: bytes) -> None:
    write_file(file, hashlib.sha256(body).digest() + body)


def _read_checked(file: Path) -> bytes | None:
    """What was written to a file, None if it is missing or damaged."""
    try:
        content = read_bytes(file, CheckpointError)
    except FileNotFoundError:
        return None
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None
