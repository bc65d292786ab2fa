"""Restarts: one run from a seed to its state, and which of several runs to keep.

A run goes in stages. Each stage takes the state that the last one left, wherever that was.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.choosing.selection import COMPARED_ITEMS, agreement, labels_of
from ddclust.data.batches import BatchSource, Sample, Scaling, input_shape, random_items
from ddclust.data.items import Items
from ddclust.networks import NetworkFactory
from ddclust.objective.losses import BALANCE_FALLS_IN, DDCLoss
from ddclust.objective.pairs import NOTHING, PARTNERS, ClusteringLoss, Knowledge, Objective
from ddclust.training.checkpoints import RunState, RunStore
from ddclust.training.inference import NonFiniteOutputError, evaluation_mode, outputs
from ddclust.training.trainer import NonFiniteLossError, Trainer, cosine_decay, split_batches

CRITERIA = ("loss", "divergence", PARTNERS, "agreement")  # of the choice of a run

Record = dict[str, Any]

# Checkpoints are at least this far apart, and far enough that writing them takes under 2 % of the time.
CHECKPOINT_SECONDS = 1.0
CHECKPOINT_SHARE = 0.02
# How a run can end; one that is under way has none of these outcomes.
ENDED = ("converged", "budget", "failed", "eliminated")
# At most so many items are in a snapshot, and its tensors are called so, followed by the epoch.
SNAPSHOT_ITEMS = 2000
SNAPSHOT_PREFIX = "snapshot."
# Torch has one random state for a process; runs in threads of one process wait for each other.
_ONE_RUN_AT_A_TIME = threading.RLock()


class AllRunsFailedError(ArithmeticError):
    """Not one restart can be used."""


class SnapshotPlan(NamedTuple):
    """At which epochs the soft assignments of which items are kept."""

    epochs: tuple[int, ...]
    items: NDArray[np.intp]


@dataclass(frozen=True)
class Plan:
    """All that the restarts of one fit have in common, but for the data."""

    scaling: Scaling
    network: NetworkFactory
    n_clusters: int
    loss: ClusteringLoss
    max_iter: int
    tol: float
    patience: int | None
    batch_size: int
    learning_rate: float
    device: torch.device
    threads: int
    rate_decays: bool = False
    knowledge: Knowledge = NOTHING
    snapshots: SnapshotPlan | None = None

    def build(self) -> nn.Module:
        """A newly initialised network, from torch's random state."""
        module = self.network(input_shape(self.scaling.item_shape), self.n_clusters)
        if not isinstance(module, nn.Module):
            raise TypeError(f"network must return an nn.Module, it returned {type(module).__name__}.")
        return module.to(self.device)

    def build_from(self, tensors: dict[str, Tensor]) -> nn.Module:
        """The network of a run's state, ready to predict."""
        with torch.random.fork_rng(devices=[]):
            module = self.build()
        weights = {
            name.removeprefix("module."): t for name, t in tensors.items() if name.startswith("module.")
        }
        module.load_state_dict(weights)
        return module.eval()

    @property
    def settled(self) -> int:
        """The iteration from which on the loss stays the same."""
        changes = isinstance(self.loss, DDCLoss) and self.loss.changes
        return math.ceil(self.max_iter * BALANCE_FALLS_IN) if changes else 0

    def objective(self, source: BatchSource) -> Objective:
        """What training on a source minimises."""
        return Objective(self.loss, self.knowledge, source, n_links=self.batch_size // 2)

    def trainer(self, module: nn.Module, source: BatchSource, seed: int) -> Trainer:
        """What trains a network on a source, with everything that changes in the course of it."""
        objective, rate = self.objective(source), self.learning_rate
        trainer = Trainer(
            module,
            source,
            lambda module, x, indices: objective.at(trainer.iteration / self.max_iter)(module, x, indices),
            batch_size=self.batch_size,
            learning_rate=cosine_decay(rate, self.max_iter) if self.rate_decays else rate,
            seed=seed,
        )
        return trainer


class Monitor(Protocol):
    """Where runs say how far they are, and learn that they should stop."""

    def report(self, run: int, iteration: int, loss: float) -> None: ...

    def should_stop(self) -> bool: ...


def new_record(index: int, seed: int) -> Record:
    """The record of a run that has not begun."""
    return {
        "run": index,
        "seed": seed,
        "outcome": "waiting",
        "error": None,
        "loss": None,
        "terms": {},
        "n_iter": 0,
        "clusters_used": 0,
        "seconds": 0.0,
        "rungs": {},
        "history": [],
        "saves": 0,
    }


def advance_run(
    X: Items,
    plan: Plan,
    index: int,
    seed: int,
    until: int,
    state: RunState | None = None,
    store: RunStore | None = None,
    monitor: Monitor | None = None,
) -> RunState:
    """Train a run up to an iteration and judge it by the unsupervised loss on the whole data.

    It goes on from ``state``, or from what ``store`` holds, and leaves its own there. A loss that is
    not finite ends the run, and its record says so. The caller's random state and number of threads
    are the same again afterwards.
    """
    stored = store.load(index) if store is not None else None
    if stored is not None and (state is None or stored.plain["iteration"] >= state.plain["iteration"]):
        state = stored
    record = dict(state.record) if state is not None else new_record(index, seed)
    if state is not None and (record["outcome"] in ENDED or str(until) in record["rungs"]):
        return state
    if state is None and monitor is not None and monitor.should_stop():
        return RunState({}, {}, record)  # it need not begin

    start, source = time.perf_counter(), BatchSource(X, plan.scaling)
    with own_threads_and_randomness(seed, plan.device, plan.threads):
        module = plan.build()
        trainer = plan.trainer(module, source, seed)
        if state is not None:
            trainer.restore(state.tensors, state.plain)
        camera = None
        if plan.snapshots is not None:
            camera = _Camera(plan.snapshots, trainer, source, {} if state is None else state.tensors)
        record["outcome"] = "running"
        seconds_before = record["seconds"]

        def current() -> RunState:
            record["seconds"] = round(seconds_before + time.perf_counter() - start, 3)
            tensors, plain = trainer.state()
            return RunState(tensors if camera is None else tensors | camera.taken, plain, record)

        on_step = _Watch(current, record, store, monitor, camera)
        try:
            ending = trainer.advance(
                until, tol=plan.tol, patience=plan.patience, settled=plan.settled, on_step=on_step
            )
        except NonFiniteLossError as error:
            ending = "failed"
            record["error"] = str(error)
        if ending == "stopped":
            on_step.save()  # what comes below is for the caller; the run goes on from here
        if ending == "budget" and until < plan.max_iter:
            ending = "running"
        if ending != "running":
            trainer.close_record()
        record["outcome"] = "interrupted" if ending == "stopped" else ending
        record |= {"n_iter": trainer.iteration, "history": trainer.history}
        if ending != "failed":
            terms, record["clusters_used"] = judge(plan, module, source)
            if not all(map(math.isfinite, terms.values())):
                record["outcome"] = ending = "failed"
                record["error"] = (
                    f"The trained network's loss on the whole data is not finite; most likely"
                    f" learning_rate={plan.learning_rate:g} is too large."
                )
        if ending != "failed":
            record |= {"terms": terms, "loss": sum(terms.values())}
            if ending != "stopped":
                record["rungs"] = record["rungs"] | {str(until): record["loss"]}
        if ending != "stopped":
            on_step.save()
        return current()


class _Camera:
    """Keeps soft assignments of a sample at chosen epochs, as tensors of the run's state."""

    def __init__(
        self, plan: SnapshotPlan, trainer: Trainer, source: BatchSource, earlier: dict[str, Tensor]
    ) -> None:
        self.taken = {name: t for name, t in earlier.items() if name.startswith(SNAPSHOT_PREFIX)}
        self.epochs = {epoch * trainer.batches_per_epoch: epoch for epoch in plan.epochs}  # by iteration
        self.sample = Sample(source, plan.items)
        if trainer.iteration == 0:
            self.look(trainer)

    def look(self, trainer: Trainer) -> None:
        """Take a snapshot if this is the iteration for one."""
        epoch = self.epochs.get(trainer.iteration)
        if epoch is None:
            return
        try:
            logits = torch.cat([logits for _, _, logits in outputs(trainer.module, self.sample)])
            probabilities = logits.softmax(dim=1)
        except NonFiniteOutputError:  # the run will fail by itself, and say why
            return
        self.taken[f"{SNAPSHOT_PREFIX}{epoch}"] = probabilities


def snapshot_items(n: int, seed: int) -> NDArray[np.intp]:
    """The items that are in snapshots of n: all, or a random sample of them, in their order.

    Examples
    --------
    >>> len(snapshot_items(70_000, seed=0)), len(snapshot_items(150, seed=0))
    (2000, 150)
    """
    return random_items(n, SNAPSHOT_ITEMS, seed)


class _Watch:
    """After every step: take a snapshot of it, report it, now and then save it, and ask whether to stop."""

    def __init__(
        self,
        current: Callable[[], RunState],
        record: Record,
        store: RunStore | None,
        monitor: Monitor | None,
        camera: _Camera | None,
    ) -> None:
        self.current = current
        self.record = record
        self.store = store
        self.monitor = monitor
        self.camera = camera
        self.due = time.perf_counter() + CHECKPOINT_SECONDS

    def __call__(self, trainer: Trainer, loss: float) -> bool:
        if self.camera is not None:
            self.camera.look(trainer)
        if self.monitor is not None:
            self.monitor.report(self.record["run"], trainer.iteration, loss)
            if self.monitor.should_stop():
                return True
        if time.perf_counter() >= self.due:
            self.save()
        return False

    def save(self) -> None:
        """Write a checkpoint, if there is a place for it, and see how long that takes."""
        if self.store is not None:
            start = time.perf_counter()
            self.record["saves"] += 1
            self.store.save(self.current())
            now = time.perf_counter()
            self.due = now + max(CHECKPOINT_SECONDS, (now - start) / CHECKPOINT_SHARE)


@contextmanager
def own_threads_and_randomness(seed: int, device: torch.device, threads: int) -> Iterator[None]:
    """A number of threads and torch's random state from a seed, and the caller's own again afterwards."""
    threads_before = torch.get_num_threads()
    devices = [device] if device.type == "cuda" else []
    with _ONE_RUN_AT_A_TIME, torch.random.fork_rng(devices=devices):
        torch.set_num_threads(threads)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would touch devices that are not ours
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(threads_before)


def judge(plan: Plan, module: nn.Module, source: BatchSource) -> tuple[dict[str, float], int]:
    """Each term in evaluation mode, averaged over the whole data, and how many clusters are used.

    The batches are the same for every run of the data, and so is all that chance decides in them (changed copies,
    neighbours, links), so that runs can be compared.
    """
    n, objective = len(source), plan.objective(source)
    order = source.order(np.random.default_rng(0))  # data are often sorted by class
    totals: dict[str, float] = {}
    sizes = torch.zeros(plan.n_clusters, dtype=torch.int64)
    with evaluation_mode(module) as device, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        for indices in split_batches(order, plan.batch_size):
            terms, logits = objective.evaluated(module, source.batch(indices).to(device), indices)
            sizes += torch.bincount(logits.argmax(dim=1).cpu(), minlength=plan.n_clusters)
            for name, value in zip(terms._fields, terms, strict=True):
                totals[name] = totals.get(name, 0.0) + value.item() * len(indices) / n
    return totals, int((sizes > 0).sum())


def rank_runs(records: list[Record], n_clusters: int, criterion: str = "loss") -> list[int]:
    """Positions of the runs that can be chosen, best first.

    The lowest unsupervised loss, or the best by another criterion, wins among the runs that use so many clusters;
    runs that use fewer come after them, whatever their loss. Failed and eliminated runs are left out.
    """
    # Departs from the paper: the lowest loss can be that of a run that merged clusters, which is not
    # what was asked for.
    return sorted(
        usable_runs(records),
        key=lambda i: (records[i]["clusters_used"] < n_clusters, badness(records[i], criterion)),
    )


def usable_runs(records: list[Record]) -> list[int]:
    """Positions of the runs that can be chosen."""
    return [
        i
        for i, record in enumerate(records)
        if record["loss"] is not None and record["outcome"] not in ("failed", "eliminated")
    ]


def badness(record: Record, criterion: str) -> float:
    """What is small for a good run: its loss, one of the loss's terms, or the lack of agreement with other runs.

    Examples
    --------
    >>> record = {"loss": 0.9, "terms": {"divergence": 0.2}, "agreement": 0.7}
    >>> [badness(record, criterion) for criterion in ("loss", "divergence", "agreement")]
    [0.9, 0.2, -0.7]
    """
    if criterion == "agreement":
        return -record["agreement"]
    return record["loss"] if criterion == "loss" else record["terms"][criterion]


def note_agreement(records: list[Record], states: list[RunState], plan: Plan, source: BatchSource) -> None:
    """Write into the record of each usable run how far it agrees with the other ones."""
    some = Sample(source, random_items(len(source), COMPARED_ITEMS, seed=0))
    usable = usable_runs(records)
    labelings = [labels_of(plan.build_from(states[run].tensors), some) for run in usable]
    for run, value in zip(usable, agreement(labelings).tolist(), strict=True):
        records[run]["agreement"] = value


def stages(n_runs: int, n_keep: int, max_iter: int, eliminate: bool) -> list[tuple[int, int]]:
    """(iteration, runs that reach it) of each stage.

    With elimination, successive halving: all runs train for an eighth of the budget, the better half
    of them for a quarter, of these the better half for a half, and again the better half to the end;
    never fewer than ``n_keep``.

    Examples
    --------
    >>> stages(20, 3, 8000, eliminate=True)
    [(1000, 20), (2000, 10), (4000, 5), (8000, 3)]
    >>> stages(20, 3, 8000, eliminate=False)
    [(8000, 20)]
    """
    if not eliminate:
        return [(max_iter, n_runs)]
    plan = []
    for halvings in range(4):
        iteration = math.ceil(max_iter / 2 ** (3 - halvings))
        survivors = max(math.ceil(n_runs / 2**halvings), min(n_keep, n_runs))
        plan.append((iteration, survivors))
    return plan
