"""What training minimises: the loss of a batch, plus a term for each kind of pair."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.batches import BatchSource
from ddclust.objective.pairs import CANNOT_LINK, MUST_LINK, PAIRS, Pairs, attraction, repulsion

# (hidden, assignments) -> a named tuple of scalars. A loss may also have `at(progress)`, which gives its form at a moment of
# training from 0 to 1, `settles_at`, the moment from which on it stays the same, and `weights` of the terms of pairs.
ClusteringLoss = Callable[[Tensor, Tensor], Any]


def settles_at(loss: ClusteringLoss) -> float:
    """The share of training after which a loss no longer changes: all of it, if it changes and does not say."""
    return float(getattr(loss, "settles_at", 1.0 if hasattr(loss, "at") else 0.0))


def pair_weights(loss: ClusteringLoss) -> Mapping[str, float]:
    """Weights of the terms of pairs by name, if the loss has any; others are 1."""
    weights = getattr(loss, "weights", None)
    return weights if isinstance(weights, Mapping) else {}


@dataclass(frozen=True)
class Objective:
    """The terms that a batch contributes, all from one pass of the network.

    The loss is computed on the batch and on the items it is paired with, and averaged over both. The term of the pairs is
    the mean of -log<alpha(x), alpha(x')>. At most ``n_links`` pairs of each kind of link are drawn for a batch. With
    ``augment`` they are augmented, too.
    """

    loss: ClusteringLoss
    pairs: Pairs
    source: BatchSource
    n_links: int
    n_iterations: int

    def __call__(self, module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int) -> Any:
        """The terms of a batch at an iteration of training."""
        return self.evaluated(module, x, indices, iteration)[0]

    def evaluated(
        self, module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int | None = None
    ) -> tuple[Any, Tensor]:
        """The terms, a named tuple of scalars, and the logits of the batch; without an iteration by the final loss."""
        loss = self.loss
        if iteration is not None and hasattr(loss, "at"):
            loss = loss.at(iteration / self.n_iterations)
        other = self._paired(x, indices)
        batches = [x] if other is None else [x, other]
        n_views = len(batches)
        kinds = [
            (name, push, _drawn(links, self.n_links))
            for name, push, links in (
                (MUST_LINK, attraction, self.pairs.links.must),
                (CANNOT_LINK, repulsion, self.pairs.links.cannot),
            )
            if len(links)
        ]
        batches += [self._linked(links[:, end], x) for _, _, links in kinds for end in (0, 1)]
        if len(batches) == 1:
            hidden, logits = module(x)
            return loss(hidden, logits.softmax(dim=1)), logits

        outputs = module(torch.cat(batches))
        hidden, logits = (output.split([len(batch) for batch in batches]) for output in outputs)
        views = [loss(hidden[view], logits[view].softmax(dim=1)) for view in range(n_views)]
        terms = {name: sum(values) / n_views for name, *values in zip(views[0]._fields, *views, strict=True)}
        weights = pair_weights(loss)
        if other is not None:
            terms[PAIRS] = weights.get(PAIRS, 1.0) * attraction(logits[0], logits[1])
        for place, (name, push, _) in enumerate(kinds):
            first = n_views + 2 * place
            terms[name] = weights.get(name, 1.0) * push(logits[first], logits[first + 1])
        return _named(tuple(terms))(*terms.values()), logits[0]

    def _linked(self, positions: NDArray[np.integer], x: Tensor) -> Tensor:
        """Linked items, augmented if there is an augmentation: otherwise the network would memorise the few of them."""
        items, augment = self._items(positions, x), self.pairs.augment
        return items if augment is None else augment(items)

    def _paired(self, x: Tensor, indices: NDArray[np.intp]) -> Tensor | None:
        """The item that each item of the batch is paired with: a copy, a neighbour, or a copy of either."""
        augment, neighbors = self.pairs.augment, self.pairs.neighbors
        if neighbors is None:
            return None if augment is None else augment(x)
        choices = neighbors[indices]  # (batch, m)
        if augment is not None:
            choices = np.column_stack((choices, indices))
        chosen = torch.randint(choices.shape[1], (len(choices),)).numpy()
        paired = self._items(choices[np.arange(len(choices)), chosen], x)
        return paired if augment is None else augment(paired)

    def _items(self, positions: NDArray[np.integer], x: Tensor) -> Tensor:
        return self.source.batch(positions).to(x.device)


def _drawn(links: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The links, or a random draw of ``most`` of them, by torch's random state."""
    return links if len(links) <= most else links[torch.randint(len(links), (most,)).numpy()]


@lru_cache
def _named(fields: tuple[str, ...]) -> type:
    return namedtuple("Terms", fields)
