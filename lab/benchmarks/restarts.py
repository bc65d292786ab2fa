"""Runs side by side, and the cost of checkpoints."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ddclust import DDC
from ddclust.training.checkpoints import RunStore
from ddclust.training.engine import run_all
from lab.benchmarks.measure import seconds, summary

X = np.random.default_rng(0).integers(0, 255, size=(1000, 28, 28), dtype=np.uint8)
STEPS = 100


def plan(threads: int):
    model = DDC(10, augment=None, max_iter=STEPS, early_stopping=None)
    model.item_shape_ = X.shape[1:]
    plan = model._plan(X)
    return replace(plan, setup=replace(plan.setup, threads=threads))


def side_by_side(repeats=6) -> list[dict]:
    """Two runs of the MNIST-shaped network in turns: one after the other, in two processes, on two threads."""
    ways = {
        "one single-thread worker": partial(run_all, X, plan(1), [1, 2], n_jobs=1),
        "two single-thread workers": partial(run_all, X, plan(1), [1, 2], n_jobs=2),
        "one process on two threads": partial(run_all, X, plan(2), [1, 2], n_jobs=1),
    }
    for way in ways.values():
        way()
    times = [{name: seconds(way) for name, way in ways.items()} for _ in range(repeats)]

    def faster(other):
        return summary([t[other] / t["two single-thread workers"] for t in times])

    return [
        {
            "what": "throughput of two workers / one single-thread worker",
            "target": ">= 1.6",
            **faster("one single-thread worker"),
        },
        {
            "what": "throughput of two workers / one process on two threads",
            "target": ">= 1",
            **faster("one process on two threads"),
        },
    ]


def checkpoint_overhead(repeats=6) -> dict:
    """A run of 300 steps with checkpoints over the same without."""
    steps = plan(torch.get_num_threads())
    steps = replace(steps, setup=replace(steps.setup, max_iter=300))
    values = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            with_checkpoints = seconds(lambda: run_all(X, steps, [1], n_jobs=1, store=RunStore(folder)))
        values.append(with_checkpoints / seconds(lambda: run_all(X, steps, [1], n_jobs=1)))
    return {"what": "run with checkpoints / without", "target": "< 1.03", **summary(values)}


def figures() -> list[dict]:
    """What the benchmark measures."""
    return [*side_by_side(), checkpoint_overhead()]
