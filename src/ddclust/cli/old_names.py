"""The new parameters of DDC in terms of the present ones.

To be deleted when the estimator has the new parameters: then ``options.py`` imports DDC, DDCLoss, Network and
Selection from ``ddclust`` itself. These have the signatures that are planned there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddclust import ddc

OLD_CRITERIA = {"pairs": "partners"}


@dataclass(frozen=True)
class Network:
    """Stands for ``ddclust.networks.Network``."""

    kind: str = "auto"
    init: str = "soft"


@dataclass(frozen=True)
class DDCLoss:
    """Stands for the coming ``ddclust.DDCLoss``."""

    weights: Mapping[str, float] | None = None
    cluster_sizes: Any = None


@dataclass(frozen=True)
class Selection:
    """Stands for ``ddclust.choosing.selection.Selection``."""

    criterion: str = "loss"
    halving: bool = False


def DDC(  # noqa: N802 - stands for the class
    n_clusters: int = 8,
    *,
    n_final: int | None = None,
    network: str | Network = "auto",
    loss: str | DDCLoss = "auto",
    augment: str | None = "auto",
    neighbors: int | str | None = "auto",
    n_init: int = 4,
    n_vote: int = 1,
    selection: str | Selection = "loss",
    max_iter: int = 3500,
    batch_size: int = 100,
    learning_rate: float | str = "auto",
    language: str = "english",
    n_jobs: int | None = -1,
    device: str = "auto",
    checkpoint_dir: Path | None = None,
    random_state: int | None = None,
    verbose: bool = False,
) -> ddc.DDC:
    """Translate new parameters into the present ones."""
    network = Network(network) if isinstance(network, str) else network
    loss = DDCLoss() if isinstance(loss, str) else loss
    selection = Selection(selection) if isinstance(selection, str) else selection
    return ddc.DDC(
        n_clusters,
        n_final=n_final,
        network=network.kind,
        init=network.init,
        balance=(loss.weights or {}).get("orthogonality"),
        cluster_sizes=loss.cluster_sizes,
        augment=augment,
        neighbors=neighbors,
        n_init=n_init,
        n_vote=n_vote,
        criterion=OLD_CRITERIA.get(selection.criterion, selection.criterion),
        early_elimination=selection.halving,
        max_iter=max_iter,
        batch_size=batch_size,
        learning_rate=learning_rate,
        language=language,
        n_jobs=n_jobs,
        device=device,
        checkpoint_dir=checkpoint_dir,
        random_state=random_state,
        verbose=verbose,
    )
