"""Snapshots: soft assignments in the course of training, kept by a callback."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ddclust.choosing.merging import merged_assignments
from ddclust.data.batches import Sample, random_items
from ddclust.training.callbacks import Callback, Run
from ddclust.training.inference import NonFiniteOutputError, outputs

MOST_ITEMS = 2000  # in a snapshot
PREFIX = "snapshot."


class SnapshotSeries(NamedTuple):
    """Soft assignments of some training items at some epochs of a run, in the final numbering of clusters."""

    items: NDArray[np.intp]  # (m,): their places in the training data
    epochs: NDArray[np.int64]  # (s,): those of the epochs asked for that the run reached
    probabilities: NDArray[np.float32]  # (s, m, k)


@dataclass(frozen=True)
class Snapshots(Callback):
    """Keep the soft assignments of the training items (of 2,000 drawn at random, if there are more) at some epochs.

    After a fit, ``model.snapshots_`` has those of the best run and ``model.member_snapshots_`` those of every run that was
    kept, the best first. They are not saved with the model.

    Parameters
    ----------
    epochs : increasing sequence of int
        0 is before the first step.

    Examples
    --------
    >>> from ddclust import DDC
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = DDC(2, n_init=1, max_iter=4, callbacks=[Snapshots([0, 2])], random_state=0).fit(X)
    >>> model.snapshots_.probabilities.shape
    (2, 60, 2)
    """

    keeps: ClassVar[bool] = True
    epochs: Sequence[int]

    def __post_init__(self) -> None:
        epochs = tuple(self.epochs)
        are_numbers = all(isinstance(epoch, Integral) and epoch >= 0 for epoch in epochs)
        if not epochs or not are_numbers or any(a >= b for a, b in itertools.pairwise(epochs)):
            raise ValueError(
                f"epochs={self.epochs!r} must hold at least one epoch, whole numbers from 0 on, each larger than the"
                " one before."
            )
        object.__setattr__(self, "epochs", tuple(int(epoch) for epoch in epochs))

    def on_run_begin(self, run: Run) -> None:
        if run.iteration == 0:
            self._take(run)

    def on_epoch_end(self, run: Run, record: dict[str, Any] | None) -> None:
        self._take(run)

    def on_fit_end(self, model: Any, kept: list[dict[str, NDArray]]) -> None:
        items = snapshot_items(len(model.labels_))
        model.member_snapshots_ = [
            _series(kept[run], items, order, groups)
            for run, order, groups in zip(
                model.voters_, model.cluster_orders_, model.cluster_groups_, strict=True
            )
        ]
        model.snapshots_ = model.member_snapshots_[0]

    def _take(self, run: Run) -> None:
        if run.epoch not in self.epochs:
            return
        try:
            sample = Sample(run.source, snapshot_items(len(run.source)))
            logits = torch.cat([logits for _, _, logits in outputs(run.module, sample)])
        except NonFiniteOutputError:  # the run will fail by itself, and say why
            return
        run.keep(f"{PREFIX}{run.epoch}", logits.softmax(dim=1))


def snapshot_items(n: int) -> NDArray[np.intp]:
    """The items of n that are in snapshots: all, or a random sample of them, in their order.

    Examples
    --------
    >>> len(snapshot_items(70_000)), len(snapshot_items(150))
    (2000, 150)
    """
    return random_items(n, MOST_ITEMS, seed=0)


def _series(
    tensors: dict[str, NDArray],
    items: NDArray[np.intp],
    cluster_order: NDArray[np.int64],
    cluster_groups: NDArray[np.int64],
) -> SnapshotSeries:
    """The snapshots of a run from what it kept."""
    taken = {
        int(name.removeprefix(PREFIX)): A[:, cluster_order]
        for name, A in tensors.items()
        if name.startswith(PREFIX)
    }
    epochs = np.array(sorted(taken), dtype=np.int64)
    probabilities = np.empty((len(epochs), len(items), len(cluster_order)), dtype=np.float32)
    for place, epoch in enumerate(epochs):
        probabilities[place] = taken[epoch]
    return SnapshotSeries(items, epochs, merged_assignments(probabilities, cluster_groups))
