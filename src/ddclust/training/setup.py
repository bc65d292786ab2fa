"""Setup: everything that a fit depends on, resolved against the data; and Plan: a setup together with the data's pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust import __version__
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items, fingerprint
from ddclust.networks import NetworkFactory
from ddclust.objective.augment import Augmentation
from ddclust.objective.objective import ClusteringLoss, Objective, settles_at
from ddclust.objective.pairs import Pairs
from ddclust.objective.regrouping import FineStage, Regrouping
from ddclust.storage.plain import CUSTOM, to_plain
from ddclust.training.randomness import own_randomness
from ddclust.training.rates import Rate
from ddclust.training.trainer import EarlyStopping, Trainer

if TYPE_CHECKING:
    from ddclust.training.callbacks import Callback

AFTER_TRAINING = {"after_training": True}  # fields that a trained run does not depend on


@dataclass(frozen=True)
class Setup:
    """All parameters of a fit with every "auto" resolved; ``print`` shows them as a table."""

    n_clusters: int
    network: NetworkFactory
    loss: ClusteringLoss
    augment: Augmentation | None
    neighbors: int | None
    max_iter: int
    batch_size: int
    learning_rate: Rate
    early_stopping: EarlyStopping | None
    n_init: int
    halving: bool
    threads: int
    n_vote: int = field(metadata=AFTER_TRAINING)
    n_final: int | None = field(metadata=AFTER_TRAINING)
    criterion: str = field(metadata=AFTER_TRAINING)
    device: torch.device = field(metadata=AFTER_TRAINING)
    precision: str = "float32"
    fine: FineStage | None = None  # in which n_clusters are trained, before they are grouped
    anchor: str | None = None  # what is learnt: "k-means", or the covariances of a Gaussian mixture
    encoder: str | None = None  # whose features are clustered, and the beginning of its digest
    start: str | None = None  # the method whose clusters runs begin with

    @property
    def has_pairs(self) -> bool:
        """Whether items are paired with copies or neighbours."""
        return self.augment is not None or self.neighbors is not None

    @property
    def settles_at(self) -> int:
        """The iteration from which on the loss no longer changes."""
        fine_until = 0.0 if self.fine is None else self.fine.until
        return math.ceil(self.max_iter * max(settles_at(self.loss), fine_until))

    @property
    def pairs_in_words(self) -> str:
        """What each item is paired with."""
        near = f"one of its {self.neighbors} nearest neighbours" if self.neighbors is not None else ""
        if self.augment is None:
            return near or "nothing"
        name = getattr(self.augment, "__name__", None) or type(self.augment).__name__
        return f"a randomly changed copy ({name}) of itself{' or of ' + near if near else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The setup as plain JSON values."""
        return {f.name: to_plain(getattr(self, f.name)) for f in fields(self)}

    def identity(self) -> dict[str, Any]:
        """What the training of a run depends on; two fits of the same identity can continue each other's runs."""
        after = {f.name for f in fields(self) if f.metadata.get("after_training")}
        if self.halving:
            after -= {"n_vote"}  # so many runs survive
        return {name: value for name, value in self.to_dict().items() if name not in after}

    def __str__(self) -> str:
        rows = [(name, _in_words(value)) for name, value in self.to_dict().items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _in_words(value: Any) -> str:
    """A plain value on one line: objects as calls."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, content),) = value.items()
        if name == CUSTOM:
            return str(content)
        if isinstance(content, dict):
            return f"{name}({', '.join(f'{key}={_in_words(part)}' for key, part in content.items())})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_in_words(part)}" for key, part in value.items()) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Plan:
    """What all runs of a fit have in common: the setup, and what was found in the data for it."""

    setup: Setup
    scaling: Scaling
    pairs: Pairs = Pairs()  # noqa: RUF009 - frozen
    callbacks: tuple[Callback, ...] = ()
    # (module, objective, number of outputs, number of groups) -> groups, shares and perhaps anchors, for a fine stage
    find_groups: Callable[..., tuple[Any, ...]] | None = None
    weights: NDArray[np.float64] | None = None  # of the items, if they differ
    # (source, n_clusters, seed) -> the assignments that a run begins with
    find_start: Callable[[BatchSource, int, int], NDArray[np.float32]] | None = None

    def source(self, X: Items) -> BatchSource:
        """The items as runs train on them and are judged."""
        return BatchSource(X, self.scaling, self.weights)

    def identity(self, X: Items) -> dict[str, Any]:
        """What the runs of a fit of X depend on, but for their seeds."""
        weighted = {} if self.weights is None else {"sample_weight": fingerprint(self.weights)}
        return {
            "ddclust": __version__,
            "torch": torch.__version__,
            "data": fingerprint(X),
            **weighted,
            "must_link": fingerprint(self.pairs.links.must),
            "cannot_link": fingerprint(self.pairs.links.cannot),
            "setup": self.setup.identity(),
            "kept_by": [to_plain(callback) for callback in self.callbacks if callback.keeps],
        }

    def build(self) -> nn.Module:
        """A newly initialised network, from torch's random state."""
        module = self.setup.network(input_shape(self.scaling.item_shape), self.setup.n_clusters)
        if not isinstance(module, nn.Module):
            raise TypeError(f"network must return an nn.Module, it returned {type(module).__name__}.")
        return module.to(self.setup.device)

    def build_from(self, tensors: dict[str, Tensor]) -> nn.Module:
        """The network of a run's state, ready to predict."""
        with own_randomness():
            module = self.build()
        weights = {
            name.removeprefix("module."): t for name, t in tensors.items() if name.startswith("module.")
        }
        module.load_state_dict(weights)
        return module.eval()

    def objective(self, source: BatchSource, regrouping: Regrouping | None = None) -> Objective:
        """What training on a source minimises, with the network in float32; outputs may be in groups already."""
        setup, find_groups = self.setup, None
        if setup.fine is not None and self.find_groups is not None:
            find_groups = partial(self.find_groups, n_outputs=setup.n_clusters, n_groups=setup.fine.n_groups)
        return Objective(
            setup.loss,
            self.pairs,
            source,
            n_links=setup.batch_size // 2,
            n_iterations=setup.max_iter,
            fine=setup.fine,
            find_groups=find_groups,
            regrouping=Regrouping() if regrouping is None else regrouping,
        )

    def trainer(
        self, module: nn.Module, source: BatchSource, seed: int, regrouping: Regrouping | None = None
    ) -> Trainer:
        """What trains a network on a source."""
        setup, objective = self.setup, self.objective(source, regrouping)
        if self.find_start is not None:
            anchors = self.find_start(source, setup.n_clusters, seed)
            objective = replace(objective, pairs=replace(objective.pairs, anchors=anchors))
        return Trainer(
            module,
            source,
            replace(objective, precision=setup.precision),
            batch_size=setup.batch_size,
            learning_rate=setup.learning_rate.schedule(setup.max_iter),
            seed=seed,
        )


def regrouping_of(tensors: dict[str, Tensor]) -> Regrouping:
    """Which clusters the outputs of the network of a run's state are parts of, if it has come so far."""
    regrouping, prefix = Regrouping(), "objective."
    regrouping.restore(
        {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    )
    return regrouping
