"""How long a fit will take, from a few trial steps."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from ddclust.data.batches import BatchSource
from ddclust.data.items import Items
from ddclust.data.neighbors import seconds_to_find
from ddclust.progress import in_words
from ddclust.training.engine import n_workers
from ddclust.training.randomness import own_randomness, own_threads
from ddclust.training.run import stages
from ddclust.training.setup import Plan, Setup
from ddclust.training.trainer import NonFiniteLossError, Trainer

WARM_UP = 2  # steps that are not timed: the first ones allocate memory
TIMED = 10
TRIAL_SECONDS = 1.0
WORKER_SECONDS = 4.0  # until worker processes have started


@dataclass(frozen=True)
class Estimate:
    """What a fit does, and about how long that takes; ``print`` says it in words.

    ``n_workers`` runs train at a time, ``seconds_per_iteration`` is the time of one run alone, and ``neighbor_seconds``
    that of the search for neighbours before, ``encoding_seconds`` that of computing features that are not at hand. That runs
    may converge early is not in it.
    """

    setup: Setup
    n_workers: int
    seconds_per_iteration: float
    neighbor_seconds: float = 0.0
    encoding_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The expected duration of the fit, NaN if nothing is known of it."""
        return self.encoding_seconds + self.neighbor_seconds + self.training_seconds

    @property
    def training_seconds(self) -> float:
        """The expected duration of the training alone."""
        setup, in_turn, reached = self.setup, 0, 0
        for until, n_runs in stages(setup.n_init, setup.n_vote, setup.max_iter, setup.halving):
            in_turn += math.ceil(n_runs / self.n_workers) * (until - reached)
            reached = until
        return in_turn * self.seconds_per_iteration + (WORKER_SECONDS if self.n_workers > 1 else 0)

    def __str__(self) -> str:
        setup = self.setup
        runs = "1 run" if setup.n_init == 1 else f"{setup.n_init} runs"
        at_most = "up to " if setup.halving or setup.early_stopping is not None else ""
        beside = f", {self.n_workers} at a time" if 1 < self.n_workers < setup.n_init else ""
        duration = "" if math.isnan(self.seconds) else f": about {in_words(self.training_seconds)}"
        first = [
            f"; {what} before that: {in_words(seconds)}"
            for what, seconds in (("encoding", self.encoding_seconds), ("neighbours", self.neighbor_seconds))
            if seconds >= 2
        ]
        return f"{runs} of {at_most}{setup.max_iter:,} iterations{beside}{duration}{''.join(first)}."


def estimated(plan: Plan, X: Items, n_jobs: int | None) -> Estimate:
    """What the runs of a plan will take on this machine."""
    setup = plan.setup
    to_find = 0.0
    if setup.neighbors is not None and plan.pairs.neighbors is None:
        to_find = seconds_to_find(
            BatchSource(X, plan.scaling), setup.neighbors, by_topics=setup.encoder is not None
        )
    return Estimate(setup, n_workers(n_jobs, setup, setup.n_init), _seconds_per_iteration(plan, X), to_find)


def _seconds_per_iteration(plan: Plan, X: Items) -> float:
    """The time of a training step, from a few on a network that is thrown away."""
    setup, source = plan.setup, BatchSource(X, plan.scaling)
    if setup.neighbors is not None and plan.pairs.neighbors is None:  # any will do
        drawn = np.random.default_rng(0).integers(len(X), size=(len(X), setup.neighbors), dtype=np.int32)
        plan = replace(plan, pairs=replace(plan.pairs, neighbors=drawn))
    times: list[float] = []

    def note(trainer: Trainer, loss: float) -> bool:
        times.append(time.perf_counter())
        return times[-1] - begun > TRIAL_SECONDS and len(times) > 1

    with own_threads(setup.threads), own_randomness(0, setup.device):
        trainer = plan.trainer(plan.build(), source, seed=0)
        begun = time.perf_counter()
        with contextlib.suppress(NonFiniteLossError):  # the fit itself will say more
            trainer.advance(min(WARM_UP + TIMED, setup.max_iter), on_step=note)
    timed = times[min(WARM_UP, len(times) - 2) :] if len(times) > 1 else []
    return float(np.median(np.diff(timed))) if len(timed) > 1 else float("nan")
