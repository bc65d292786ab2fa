"""Callbacks: code of a user's own that is called in the course of every run of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ddclust.data.batches import BatchSource
    from ddclust.training.record import RunRecord
    from ddclust.training.setup import Setup

KEPT = "kept."  # the prefix of what callbacks keep, among the tensors of a run's state


@dataclass
class Run:
    """What a callback sees of a run.

    ``iteration`` counts batches and ``epoch`` passes through the data. ``module`` is the network that is being trained, in
    training mode; ``source`` gives the batches of the whole data.
    """

    setup: Setup
    record: RunRecord
    module: nn.Module
    source: BatchSource
    iteration: int = 0
    epoch: int = 0
    kept: dict[str, Tensor] = field(default_factory=dict)

    @property
    def index(self) -> int:
        """The number of the run, counted from 0."""
        return self.record.run

    def keep(self, name: str, tensor: Tensor) -> None:
        """Keep a copy of a tensor with the state of the run: in checkpoints, and until ``on_fit_end``."""
        self.kept[KEPT + name] = tensor.detach().cpu().clone()


def kept_arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray]:
    """What callbacks have kept, among the tensors of a run's state."""
    return {name.removeprefix(KEPT): t.numpy() for name, t in tensors.items() if name.startswith(KEPT)}


class Callback:
    """The base of all callbacks; every method may be left out.

    Runs often train in worker processes, each with its own copy of the callback. So a callback should be picklable, open
    files in ``on_run_begin``, and hand results back by :meth:`Run.keep`. What a callback draws from torch's random state
    does not change the training.

    Examples
    --------
    >>> class Print(Callback):
    ...     def on_epoch_end(self, run, record):
    ...         print(f"run {run.index}, epoch {run.epoch}")
    """

    # Whether runs keep tensors for it. If so, checkpoints of a fit without it are of no use to one with it.
    keeps: ClassVar[bool] = False

    def on_run_begin(self, run: Run) -> None:
        """A run begins, or goes on from a checkpoint (then ``run.iteration`` is above 0)."""

    def on_epoch_end(self, run: Run, record: dict[str, Any] | None) -> None:
        """An epoch has ended. ``record`` is the entry that it added to ``history_``, None if it added none."""

    def on_run_end(self, run: Run) -> None:
        """A run has ended, or was stopped; ``run.record`` says how, with its loss on the whole data.

        It is not called for runs that are eliminated by halving: others decide that between two stages.
        """

    def on_fit_end(self, model: Any, kept: list[dict[str, NDArray]]) -> None:
        """A fit has ended, in the main process; ``kept`` is what was kept by each run of ``model.runs_``."""
