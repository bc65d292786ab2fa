"""One run, from its seed to its state.

A run goes in stages. Each stage takes the state that the last one left, wherever that was.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from ddclust.data.batches import BatchSource
from ddclust.data.items import Items
from ddclust.objective.regrouping import Regrouping
from ddclust.training.callbacks import KEPT, Run
from ddclust.training.checkpoints import REMEDY, CheckpointError, RunState, RunStore
from ddclust.training.inference import Gathered, Outputs, evaluation_mode, known_items, outputs_in_order
from ddclust.training.randomness import own_randomness, own_threads
from ddclust.training.record import Outcome, RunRecord
from ddclust.training.setup import Plan, Setup
from ddclust.training.trainer import NonFiniteLossError, Trainer, split_batches

# Checkpoints are at least this far apart, and far enough that writing them takes under 2 % of the time.
CHECKPOINT_SECONDS = 1.0
CHECKPOINT_SHARE = 0.02
# The outputs of all runs of a fit for all items are kept for what comes after training if they take less memory.
MOST_OUTPUT_BYTES = 256 * 2**20


class Monitor(Protocol):
    """Where runs report their progress, and learn that they should stop."""

    def report(self, run: int, iteration: int, loss: float) -> None: ...

    def should_stop(self) -> bool: ...


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

    It goes on from ``state``, or from what ``store`` holds, and leaves its own state there. A loss that is not finite ends
    the run, and its record says so. The caller's random state and number of threads are restored afterwards.
    """
    state = _latest(state, store.load(index) if store is not None else None)
    if state is None and monitor is not None and monitor.should_stop():
        return RunState({}, {}, RunRecord(index, seed))  # it need not begin
    if state is not None and (state.record.outcome.is_final or until in state.record.losses_at):
        return state
    setup, source = plan.setup, plan.source(X)
    with own_threads(setup.threads), own_randomness(seed, setup.device):
        stage = _Stage(plan, index, seed, source, state, store, monitor)
        ending = stage.train(until)
        if ending is Outcome.INTERRUPTED:
            stage.save()  # what comes below is for the caller; the run goes on from here
        if ending is Outcome.BUDGET and until < setup.max_iter:
            ending = Outcome.RUNNING
        stage.end(ending, until)
        if ending is not Outcome.INTERRUPTED:
            stage.save()
        return stage.state()


def _latest(state: RunState | None, stored: RunState | None) -> RunState | None:
    """The one of two states that is further on."""
    if stored is None or (state is not None and stored.plain["iteration"] < state.plain["iteration"]):
        return state
    return stored


class _Stage:
    """A stage of a run: the trainer, the record, and what watches after every step."""

    def __init__(
        self,
        plan: Plan,
        index: int,
        seed: int,
        source: BatchSource,
        state: RunState | None,
        store: RunStore | None,
        monitor: Monitor | None,
    ) -> None:
        self.plan, self.source, self.store, self.monitor = plan, source, store, monitor
        self.module = plan.build()
        self.regrouping = Regrouping()
        self.trainer = plan.trainer(self.module, source, seed, self.regrouping)
        self.record = RunRecord(index, seed)
        if state is not None:
            self.record = RunRecord.from_dict(state.record.to_dict())
            self._restore(state)
        self.run = Run(plan.setup, self.record, self.module, source)
        if state is not None:
            self.run.kept |= {name: t for name, t in state.tensors.items() if name.startswith(KEPT)}
        self.record.outcome = Outcome.RUNNING
        self.seconds_before, self.begun = self.record.seconds, time.perf_counter()
        self.due = self.begun + CHECKPOINT_SECONDS
        self.outputs: Outputs | None = None

    def _restore(self, state: RunState) -> None:
        try:
            self.trainer.restore(state.tensors, state.plain)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"The saved state of run {self.record.run + 1} does not fit its network ({reason}); {REMEDY}."
            ) from error

    def train(self, until: int) -> Outcome:
        """Train up to an iteration; says how that ended."""
        setup = self.plan.setup
        self._call("on_run_begin")
        try:
            ending = self.trainer.advance(
                until,
                early_stopping=setup.early_stopping,
                settled=setup.settles_at,
                on_step=self._after_step,
            )
        except NonFiniteLossError as error:
            self.record.error = str(error)
            return Outcome.FAILED
        return Outcome.INTERRUPTED if ending == "stopped" else Outcome(ending)

    def end(self, ending: Outcome, until: int) -> None:
        """Judge the run and complete its record."""
        record, trainer = self.record, self.trainer
        if ending is not Outcome.RUNNING:
            trainer.close_record()
        record.outcome, record.n_iter, record.history = ending, trainer.iteration, trainer.history
        if ending is not Outcome.FAILED:
            terms, record.clusters_used, outputs = judge(
                self.plan,
                self.module,
                self.source,
                self.regrouping,
                keeps_outputs=ending is not Outcome.RUNNING,
            )
            self.outputs = outputs
            if not all(map(math.isfinite, terms.values())):
                record.outcome = Outcome.FAILED
                record.error = (
                    "The trained network's loss on the whole data is not finite; most likely"
                    f" learning_rate={self.plan.setup.learning_rate.rate:g} is too large."
                )
            else:
                record.terms, record.loss = terms, sum(terms.values())
                if ending is not Outcome.INTERRUPTED:
                    record.losses_at = record.losses_at | {until: record.loss}
        if record.outcome is not Outcome.RUNNING:
            self._call("on_run_end")

    def state(self) -> RunState:
        """All that the run needs to go on."""
        self.record.seconds = round(self.seconds_before + time.perf_counter() - self.begun, 3)
        tensors, plain = self.trainer.state()
        return RunState(tensors | self.run.kept, plain, self.record, self.outputs)

    def save(self) -> None:
        """Write a checkpoint, if there is a place for it, and see how long that takes."""
        if self.store is not None:
            start = time.perf_counter()
            self.record.saves += 1
            self.store.save(self.state())
            now = time.perf_counter()
            self.due = now + max(CHECKPOINT_SECONDS, (now - start) / CHECKPOINT_SHARE)

    def _after_step(self, trainer: Trainer, loss: float) -> bool:
        """Call the callbacks, report, save now and then; returns whether to stop."""
        if trainer.iteration % trainer.batches_per_epoch == 0:
            newest = trainer.history[-1] if trainer.history else None
            is_new = newest is not None and newest["iteration"] == trainer.iteration
            self._call("on_epoch_end", newest if is_new else None)
        if self.monitor is not None:
            self.monitor.report(self.record.run, trainer.iteration, loss)
            if self.monitor.should_stop():
                return True
        if time.perf_counter() >= self.due:
            self.save()
        return False

    def _call(self, method: str, *arguments: object) -> None:
        """Call every callback, with a random state of its own so that the training does not depend on it."""
        if self.plan.callbacks:
            self.run.iteration = self.trainer.iteration
            self.run.epoch = self.trainer.iteration // self.trainer.batches_per_epoch
            with own_randomness():
                for callback in self.plan.callbacks:
                    getattr(callback, method)(self.run, *arguments)


class Judgement(NamedTuple):
    """How good a run is, and what its network makes of the items if that was to be kept."""

    terms: dict[str, float]  # in evaluation mode, averaged over the whole data
    clusters_used: int
    outputs: Outputs | None = None


def judge(
    plan: Plan,
    module: nn.Module,
    source: BatchSource,
    regrouping: Regrouping | None = None,
    *,
    keeps_outputs: bool = False,
) -> Judgement:
    """The terms of a trained network on the whole data, and the clusters that it uses.

    The batches are the same for every run, and so are the random choices in them (copies, neighbours, links), so that
    runs can be compared. With ``keeps_outputs`` the network's outputs for all items are kept unless they take too much memory.
    """
    n, objective, setup = len(source), plan.objective(source, regrouping), plan.setup
    order = source.order(np.random.default_rng(0))  # data are often sorted by class
    totals: dict[str, float] = {}
    sizes = torch.zeros(setup.n_clusters, dtype=torch.int64)
    sizes_of_batches = map(len, split_batches(order, setup.batch_size))
    gathered: Gathered | None = None
    with evaluation_mode(module) as device, own_randomness(0):
        batches = outputs_in_order(module, source, order, sizes_of_batches, device)
        for number, (indices, x, *known) in enumerate(batches):
            if number == 0 and keeps_outputs and outputs_are_kept(setup, source, known[0].shape[1]):
                gathered = Gathered(n)
            if gathered is not None:
                gathered.add(indices, *known)
            terms, logits = objective.evaluated(module, x, indices, known=(known[0], known[1]))
            sizes += torch.bincount(logits.argmax(dim=1).cpu(), minlength=setup.n_clusters)
            for name, value in zip(terms._fields, terms, strict=True):
                totals[name] = totals.get(name, 0.0) + value.item() * len(indices) / n
    outputs = None if gathered is None else gathered.outputs()
    if outputs is not None and not np.isfinite(outputs.assignments).all():
        outputs = None  # whoever asks the network again gets an error that names the item
    return Judgement(totals, int((sizes > 0).sum()), outputs)


def outputs_are_kept(setup: Setup, source: BatchSource, n_hidden: int) -> bool:
    """Whether the outputs of all runs for all items fit into memory. Judging leaves out items that have no weight."""
    n = len(source)
    numbers = n * setup.n_clusters + len(known_items(n)) * n_hidden
    return source.weights is None and 4 * numbers * setup.n_init <= MOST_OUTPUT_BYTES


def stages(n_runs: int, n_keep: int, max_iter: int, halving: bool) -> list[tuple[int, int]]:
    """(iteration, runs that reach it) of each stage.

    With halving, all runs train for an eighth of the budget, the better half
    of them for a quarter, of these the better half for a half, and again the better half to the end,
    but never fewer than ``n_keep``.

    Examples
    --------
    >>> stages(20, 3, 8000, halving=True)
    [(1000, 20), (2000, 10), (4000, 5), (8000, 3)]
    >>> stages(20, 3, 8000, halving=False)
    [(8000, 20)]
    """
    if not halving:
        return [(max_iter, n_runs)]
    plan = []
    for halvings in range(4):
        iteration = math.ceil(max_iter / 2 ** (3 - halvings))
        survivors = max(math.ceil(n_runs / 2**halvings), min(n_keep, n_runs))
        plan.append((iteration, survivors))
    return plan
