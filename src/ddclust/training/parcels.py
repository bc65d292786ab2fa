"""States of runs on their way from a worker to the process that it works for.

They go through files. In a pipe a large state of a worker that is killed halfway would arrive in part, and the receiver would wait
for the rest for ever, since the other workers keep the pipe open.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import torch

from ddclust.training.checkpoints import RunState, state_as_bytes, state_in
from ddclust.training.inference import Outputs

PREFIX = "outputs."


class Parcel(NamedTuple):
    """A file with the state of a run."""

    file: Path

    def opened(self) -> RunState:
        """The state; the file is gone afterwards."""
        state = state_in(self.file.read_bytes(), repr(str(self.file)))
        self.file.unlink()
        if not any(name.startswith(PREFIX) for name in state.tensors):
            return state
        # Copies, since safetensors may begin anywhere in memory.
        arrays = {name: state.tensors.pop(f"{PREFIX}{name}").clone().numpy() for name in Outputs._fields}
        return state._replace(outputs=Outputs(**arrays))


def packed(state: RunState, folder: Path) -> RunState | Parcel:
    """What a worker returns: a parcel in a folder of the process that it works for, or the state if that is elsewhere, or full."""
    if not state.plain or not folder.is_dir():  # it has not begun, or the folder is of another machine
        return state
    outputs = {} if state.outputs is None else state.outputs._asdict()
    arrays = {f"{PREFIX}{name}": torch.from_numpy(array) for name, array in outputs.items()}
    file = folder / f"run-{state.record.run:03d}-{os.getpid()}"
    try:
        file.write_bytes(state_as_bytes(state._replace(tensors=state.tensors | arrays)))
    except OSError:
        with contextlib.suppress(OSError):
            file.unlink()
        return state
    return Parcel(file)
