"""Restarts: one run from a seed to its record and weights, and which of several runs to keep."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.inference import evaluation_mode
from ddclust.networks import NetworkFactory
from ddclust.sources import ArraySource, input_shape
from ddclust.training import NonFiniteLossError, Trainer, split_batches

ClusteringLoss = Callable[[Tensor, Tensor], Any]


@dataclass(frozen=True)
class Plan:
    """All that the restarts of one fit have in common."""

    source: ArraySource
    network: NetworkFactory
    n_clusters: int
    loss: ClusteringLoss
    max_iter: int
    tol: float
    patience: int | None
    batch_size: int
    learning_rate: float
    device: torch.device

    def build(self) -> nn.Module:
        """A newly initialised network, from torch's random state."""
        module = self.network(input_shape(self.source.scaling.item_shape), self.n_clusters)
        if not isinstance(module, nn.Module):
            raise TypeError(f"network must return an nn.Module, it returned {type(module).__name__}.")
        return module.to(self.device)

    def build_from(self, weights: dict[str, Tensor] | None) -> nn.Module:
        """The network with given weights, ready to predict."""
        if weights is None:
            raise ValueError("A run that failed has no weights.")
        with torch.random.fork_rng(devices=[]):
            module = self.build()
        module.load_state_dict(weights)
        return module.eval()

    def objective(self, module: nn.Module, x: Tensor, indices: NDArray[np.intp]) -> Any:
        """The loss terms of a batch."""
        hidden, logits = module(x)
        return self.loss(hidden, logits.softmax(dim=1))


class Run(NamedTuple):
    """One finished restart."""

    record: dict[str, Any]
    weights: dict[str, Tensor] | None  # None if it failed


def run_restart(
    plan: Plan, index: int, seed: int, on_step: Callable[[Trainer, float], None] | None = None
) -> Run:
    """Train one network from a seed and judge it by the unsupervised loss on the whole data.

    Torch's random state is that of the caller again afterwards. A loss that is not finite ends the
    run, and its record says so.
    """
    start = time.perf_counter()
    record: dict[str, Any] = {"run": index, "seed": seed, "outcome": "failed", "error": None}
    record |= {"loss": None, "terms": {}, "n_iter": 0, "clusters_used": 0, "seconds": 0.0, "history": []}
    devices = [plan.device] if plan.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        module = plan.build()
        trainer = Trainer(
            module,
            plan.source,
            plan.objective,
            batch_size=plan.batch_size,
            learning_rate=plan.learning_rate,
            seed=seed,
        )
        try:
            record["outcome"] = trainer.advance(
                plan.max_iter, tol=plan.tol, patience=plan.patience, on_step=on_step
            )
        except NonFiniteLossError as error:
            record["error"] = str(error)
        trainer.close_record()
    record |= {"n_iter": trainer.iteration, "history": trainer.history}
    if record["error"] is None:
        record["terms"], record["clusters_used"] = judge(plan, module)
        record["loss"] = sum(record["terms"].values())
    record["seconds"] = round(time.perf_counter() - start, 3)
    failed = record["error"] is not None
    weights = {name: value.cpu() for name, value in module.state_dict().items()}
    return Run(record, None if failed else weights)


def judge(plan: Plan, module: nn.Module) -> tuple[dict[str, float], int]:
    """Each loss term in evaluation mode, averaged over the whole data, and how many clusters are used.

    The batches are the same for every run of the data, so that runs can be compared.
    """
    n = len(plan.source)
    order = np.random.default_rng(0).permutation(n)  # data are often sorted by class
    totals: dict[str, float] = {}
    sizes = torch.zeros(plan.n_clusters, dtype=torch.int64)
    with evaluation_mode(module) as device:
        for indices in split_batches(order, plan.batch_size):
            hidden, logits = module(plan.source.batch(indices).to(device))
            terms = plan.loss(hidden, logits.softmax(dim=1))
            sizes += torch.bincount(logits.argmax(dim=1).cpu(), minlength=plan.n_clusters)
            for name, value in zip(terms._fields, terms, strict=True):
                totals[name] = totals.get(name, 0.0) + value.item() * len(indices) / n
    return totals, int((sizes > 0).sum())


def rank_runs(records: list[dict[str, Any]], n_clusters: int) -> list[int]:
    """Positions of the runs that did not fail, best first.

    The lowest unsupervised loss wins among the runs that use all clusters; runs that use fewer come
    after them, whatever their loss.
    """
    finished = [i for i, record in enumerate(records) if record["loss"] is not None]
    return sorted(finished, key=lambda i: (records[i]["clusters_used"] < n_clusters, records[i]["loss"]))
