"""DDC with pairs against UMAP and a Gaussian mixture on MNIST, in turns: the time to 97 % ACC, and the ACC at the end.

Classes only score, and the time to make and score labels is not counted. UMAP lives in the peers' environment.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import torch

from ddclust import DDC
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.data.batches import BatchSource
from ddclust.data.neighbors import neighbors_of
from ddclust.training.inference import outputs
from lab.benchmarks.measure import mnist_or_none, seconds
from lab.benchmarks.peers import elsewhere

PASSED = 0.97
ITERATIONS = 1400  # two epochs
EVERY = 140
SEEDS = (0, 1)


def accuracy_over_time(X: np.ndarray, truth: np.ndarray, seed: int) -> list[tuple[float, float]]:
    """(seconds, accuracy) of one run on all threads, every fifth of an epoch. The search for neighbours counts."""
    model = DDC(10, augment="affine", neighbors=2, n_init=1, max_iter=ITERATIONS)
    items = model._items(X)
    plan = model._plan(items)
    source = BatchSource(X, plan.scaling)
    began = time.perf_counter()
    plan = replace(plan, pairs=replace(plan.pairs, neighbors=neighbors_of(source, 2)))
    spent = time.perf_counter() - began
    torch.manual_seed(seed)
    module = plan.build()
    trainer = plan.trainer(module, source, seed)
    points = []
    for until in range(EVERY, ITERATIONS + 1, EVERY):
        spent += seconds(lambda until=until: trainer.advance(until))
        labels = np.concatenate([logits.argmax(dim=1).numpy() for _, _, logits in outputs(module, source)])
        points.append((round(spent, 1), round(clustering_accuracy(truth, labels), 4)))
    return points


def figures() -> list[dict] | None:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    mnist = mnist_or_none()
    if mnist is None:
        return None
    X, truth = mnist.data, mnist.target
    ratios, ends, others, curves = [], [], [], []
    for seed in SEEDS:
        curve = accuracy_over_time(X, truth, seed)
        ((other_seconds, other_labels),) = elsewhere("umap+gmm", X)
        passed = next((spent for spent, accuracy in curve if accuracy >= PASSED), float("inf"))
        ratios.append(passed / other_seconds)
        ends.append(curve[-1][1])
        others.append(clustering_accuracy(truth, other_labels))
        curves.append(curve)
        print(f"seed {seed}: {curve}; UMAP + GMM {others[-1]:.4f} after {other_seconds:.0f} s", flush=True)

    def row(what: str, target: str, values: list[float]) -> dict:
        low, median, high = (round(float(np.quantile(values, q)), 4) for q in (0, 0.5, 1))
        return {"what": what, "target": target, "median": median, "quartiles": [low, high]}

    return [
        row("one run to 97 % ACC / UMAP + Gaussian mixture (median; lowest to highest)", "< 1", ratios)
        | {"curves": curves},
        row("ACC of such a run after two epochs", "(to know)", ends),
        row("ACC of UMAP + Gaussian mixture", "(to know)", others),
    ]
