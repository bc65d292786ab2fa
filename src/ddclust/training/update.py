"""A trained network learns from new items without forgetting: only its output layer changes.

The network below the output layer stays as it is, so what is known of the hidden representation of earlier items stays true.
The output layer may get further rows, one for each new cluster. It is trained in the one loop, on hidden representations: those
of the new items and of copies of them, and in place of the earlier items, which need not be there any more, random draws
from the Gaussians that a model keeps for each of its outputs (generative replay).
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import head_of
from ddclust.objective.augment import Augmentation
from ddclust.objective.loss import TERMS, DDCLoss
from ddclust.objective.objective import Objective
from ddclust.objective.pairs import ANCHOR, Pairs
from ddclust.objective.regrouping import Regrouping
from ddclust.training.inference import CHUNK, evaluation_mode
from ddclust.training.randomness import own_randomness
from ddclust.training.rates import CosineRate
from ddclust.training.trainer import Record, Source, Trainer

# Chosen on fits of eight of the ten digits, two of 8 x 8 pixels and one of MNIST, with the classes in sight.
ITERATIONS, RATE, BATCH_SIZE = 300, 1e-2, 200
ANCHOR_WEIGHT = 10.0
COPIES = 2  # of each new item
NEIGHBORS = 3
# Draws in place of earlier items, at least 50 for each output. With 3,000 of them 98.4 % of the earlier items of MNIST kept
# their clusters, with 12,000 99.1 %.
REPLAYED = 12_000


class OutputLayer(nn.Module):
    """The output layer of a network, as a network that takes hidden representations."""

    def __init__(self, output: nn.Linear) -> None:
        super().__init__()
        self.output = output

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return hidden, self.output(hidden)


class Rows(NamedTuple):
    """Hidden representations to learn from, (n, d), the clusters that they should keep or get, (n, k), and what each is paired with.

    A row of zeros among the anchors leaves an item free.
    """

    hidden: NDArray[np.float32]
    anchors: NDArray[np.float32]
    neighbors: NDArray[np.int64]


def grown(module: nn.Module, n_more: int) -> nn.Module:
    """A copy of a network with further outputs, which are nothing to any item yet."""
    module = copy.deepcopy(module)
    head = head_of(module)
    if head is None:
        raise ValueError(
            "partial_fit needs one of the built-in networks; the output layer of other networks is not known."
        )
    old = head.output
    head.output = nn.Linear(old.in_features, old.out_features + n_more).to(old.weight)
    with torch.no_grad():
        head.output.weight.zero_()
        head.output.bias.zero_()
        head.output.weight[: old.out_features] = old.weight
        head.output.bias[: old.out_features] = old.bias
    return module


def hidden_copies(module: nn.Module, source: Source, augment: Augmentation, seed: int) -> NDArray[np.float32]:
    """Hidden representations of copies of all items of a source, (COPIES * n, d): all items once, then all again."""
    found = []
    with evaluation_mode(module) as device, own_randomness(seed):
        for _ in range(COPIES):
            for start in range(0, len(source), CHUNK):
                x = source.batch(slice(start, start + CHUNK)).to(device)
                found.append(module(augment(x))[0].cpu().numpy())
    return np.concatenate(found)


def rows_of(
    replayed: NDArray[np.float32],
    replayed_anchors: NDArray[np.float32],
    hidden: NDArray[np.float32],
    anchors: NDArray[np.float32],
    neighbors: NDArray[np.integer] | None,
    copies: NDArray[np.float32] | None,
) -> Rows:
    """Draws in place of earlier items, new items, and copies of these, if there are any, one below the other.

    A new item is paired with its copies and its neighbours, a copy with its item, and a draw with itself.
    """
    r, n = len(replayed), len(hidden)
    places = r + np.arange(n)
    n_copies = 0 if copies is None else len(copies) // n
    pairs = [places + n * (copy + 1) for copy in range(n_copies)]
    pairs += [] if neighbors is None else [r + column for column in neighbors.T]
    of_items = np.stack(pairs or [places], axis=1)
    width = of_items.shape[1]
    of_draws = np.repeat(np.arange(r)[:, None], width, axis=1)
    of_copies = np.repeat(np.tile(places, n_copies)[:, None], width, axis=1)
    return Rows(
        np.concatenate([replayed, hidden] if copies is None else [replayed, hidden, copies]),
        np.concatenate([replayed_anchors, anchors, *[anchors] * n_copies]),
        np.concatenate([of_draws, of_items, of_copies]).astype(np.int64),
    )


def trained_output(
    module: nn.Module, rows: Rows, groups: NDArray[np.int64], *, n_old: int, seed: int
) -> tuple[list[Record], dict[str, float]]:
    """Train the further outputs of a network in place; gives the history, and the last terms.

    Parameters
    ----------
    module : nn.Module
        As :func:`grown` gives it.
    rows : Rows
    groups : ndarray of shape (n_outputs,)
        The cluster of each output.
    n_old : int
        So many outputs come first and stay as they are.
    seed : int
    """
    head = head_of(module)
    assert head is not None
    k = rows.anchors.shape[1]
    weight = (k - 1) / 4  # as of every fit with pairs
    loss = DDCLoss(weights=dict(zip(TERMS, (weight, 0.0, weight), strict=True)) | {ANCHOR: ANCHOR_WEIGHT})
    source = BatchSource(rows.hidden, Scaling.none(rows.hidden))
    regrouping = Regrouping()
    regrouping.begin(groups, np.full(k, 1 / k))
    objective = Objective(
        loss,
        Pairs(neighbors=rows.neighbors, anchors=rows.anchors),
        source,
        n_links=0,
        n_iterations=ITERATIONS,
        regrouping=regrouping,
    )
    layer = OutputLayer(head.output)
    held = [p.register_hook(lambda gradient: _without_first(gradient, n_old)) for p in layer.parameters()]
    with own_randomness(seed):
        trainer = Trainer(
            layer,
            source,
            objective,
            batch_size=BATCH_SIZE,
            learning_rate=CosineRate(RATE).schedule(ITERATIONS),
            seed=seed,
        )
        trainer.advance(ITERATIONS)
    for hook in held:
        hook.remove()
    trainer.close_record()
    module.eval()
    last = trainer.history[-1]
    return trainer.history, {name: last[name] for name in last if name not in ("epoch", "iteration", "loss")}


def _without_first(gradient: Tensor, n: int) -> Tensor:
    """A gradient whose first rows are zero, so that Adam leaves their weights as they are."""
    gradient = gradient.clone()
    gradient[:n] = 0
    return gradient
