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

from ddclust.inference import evaluate, outputs
from ddclust.networks import NetworkFactory
from ddclust.sources import ArraySource, input_shape
from ddclust.training import NonFiniteLossError, Trainer

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
        record["terms"] = evaluate(module, plan.source, plan.objective, plan.batch_size)
        record["loss"] = sum(record["terms"].values())
        record["clusters_used"] = len(np.unique(cluster_indices(module, plan.source)))
    record["seconds"] = round(time.perf_counter() - start, 3)
    failed = record["error"] is not None
    weights = {name: value.cpu() for name, value in module.state_dict().items()}
    return Run(record, None if failed else weights)


def cluster_indices(module: nn.Module, source: ArraySource) -> NDArray[np.int64]:
    """The index of the largest output for every item."""
    return np.concatenate([logits.argmax(dim=1).numpy() for _, _, logits in outputs(module, source)])


def rank_runs(records: list[dict[str, Any]], n_clusters: int) -> list[int]:
    """Positions of the runs that did not fail, best first.

    The lowest unsupervised loss wins among the runs that use all clusters; runs that use fewer come
    after them, whatever their loss.
    """
    finished = [i for i, record in enumerate(records) if record["loss"] is not None]
    return sorted(finished, key=lambda i: (records[i]["clusters_used"] < n_clusters, records[i]["loss"]))
