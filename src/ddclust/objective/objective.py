"""What training minimises: the loss of a batch, plus a term for each kind of pair."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.batches import BatchSource
from ddclust.objective.loss import DDCLoss
from ddclust.objective.pairs import (
    ANCHOR,
    CANNOT_LINK,
    MUST_LINK,
    PAIRS,
    Pairs,
    attraction,
    divergence_from_anchors,
    repulsion,
)
from ddclust.objective.precision import outputs_in
from ddclust.objective.regrouping import FineStage, Regrouping, without_sizes

# (hidden, assignments) -> a named tuple of scalars. A loss may also have `at(progress)`, which gives its form at a moment of
# training from 0 to 1, `settles_at`, the moment from which on it stays the same, and `weights` of the terms of pairs.
ClusteringLoss = Callable[[Tensor, Tensor], Any]
# (module, objective) -> the cluster that each output is a part of, the shares of these clusters and, perhaps, soft assignments
# of all items to learn.
FindGroups = Callable[[nn.Module, "Objective"], tuple[Any, ...]]


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
    the mean of -log<alpha(x), alpha(x')>, that of anchors the mean divergence of alpha(x) from x's anchor. At most ``n_links`` pairs of each kind of link are drawn for a batch. With
    ``augment`` they are augmented, too.

    With a ``fine`` stage, training begins with its loss and a cluster for each output. When it ends, ``find_groups`` says which
    outputs are one cluster; the ``regrouping`` is the state of that.
    """

    loss: ClusteringLoss
    pairs: Pairs
    source: BatchSource
    n_links: int
    n_iterations: int
    precision: str = "float32"  # of the network
    fine: FineStage | None = None
    find_groups: FindGroups | None = None
    regrouping: Regrouping = field(default_factory=Regrouping)

    def __call__(self, module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int) -> Any:
        """The terms of a batch at an iteration of training."""
        if self.find_groups is not None and not self.regrouping.is_done and self._is_past_fine(iteration):
            self.regrouping.begin(*self.find_groups(module, self))
        terms, logits = self.evaluated(module, x, indices, iteration)
        self.regrouping.note(logits)
        return terms

    def state(self) -> dict[str, Tensor]:
        """What the objective has learned in training, as tensors by name."""
        return self.regrouping.state()

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from another's :meth:`state`."""
        self.regrouping.restore(tensors)

    def _is_past_fine(self, iteration: int) -> bool:
        return self.fine is not None and iteration >= self.fine.until * self.n_iterations

    def _loss_at(self, iteration: int | None) -> ClusteringLoss:
        """The loss at an iteration of training, or the one by which runs are judged."""
        loss = self.loss
        if self.fine is not None:
            if self.regrouping.is_done:
                assert isinstance(loss, DDCLoss)
                return without_sizes(loss) if iteration is None else self.regrouping.sized(loss)
            loss = self.fine.loss
        if iteration is not None and hasattr(loss, "at"):
            return loss.at(iteration / self.n_iterations)
        return loss

    def evaluated(
        self,
        module: nn.Module,
        x: Tensor,
        indices: NDArray[np.intp],
        iteration: int | None = None,
        *,
        known: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Any, Tensor]:
        """The terms, a named tuple of scalars, and the logits of the batch; without an iteration by the final loss.

        ``known`` is what the network makes of the batch itself, if it has been asked before.
        """
        loss = self._loss_at(iteration)
        other = self.paired(x, indices)
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
        anchors = self._anchors(indices, is_training=iteration is not None)
        if len(batches) == 1 and anchors is None:
            hidden, logits = self._outputs(module, batches, known)
            return loss(hidden, logits.softmax(dim=1)), logits

        outputs = self._outputs(module, batches, known)
        hidden, logits = (output.split([len(batch) for batch in batches]) for output in outputs)
        views = [loss(hidden[view], logits[view].softmax(dim=1)) for view in range(n_views)]
        terms = {name: sum(values) / n_views for name, *values in zip(views[0]._fields, *views, strict=True)}
        weights = pair_weights(loss)
        if other is not None:
            terms[PAIRS] = weights.get(PAIRS, 1.0) * attraction(logits[0], logits[1])
        for place, (name, push, _) in enumerate(kinds):
            first = n_views + 2 * place
            terms[name] = weights.get(name, 1.0) * push(logits[first], logits[first + 1])
        if anchors is not None:
            terms[ANCHOR] = weights.get(ANCHOR, 1.0) * divergence_from_anchors(
                logits[0], anchors.to(x.device)
            )
        return _named(tuple(terms))(*terms.values()), logits[0]

    def _anchors(self, indices: NDArray[np.intp], *, is_training: bool) -> Tensor | None:
        """What the items are to learn. Runs are judged without what each has found for itself."""
        if self.pairs.anchors is not None:
            return torch.from_numpy(self.pairs.anchors[indices])
        found = self.regrouping.anchors
        return found[torch.from_numpy(indices)] if found is not None and is_training else None

    def _outputs(
        self, module: nn.Module, batches: list[Tensor], known: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """The hidden representation, and the logits of the clusters; those of the first batch may be known."""
        unknown = batches if known is None else batches[1:]
        found: list[tuple[Tensor, ...]] = [] if known is None else [known]
        if unknown:
            found.append(outputs_in(self.precision, module, _together(unknown)))
        hidden, logits = (_together(parts) for parts in zip(*found, strict=True))
        return hidden, self.regrouping.joined(logits)

    def _linked(self, positions: NDArray[np.integer], x: Tensor) -> Tensor:
        """Linked items, augmented if there is an augmentation: otherwise the network would memorise the few of them."""
        items, augment = self._items(positions, x), self.pairs.augment
        return items if augment is None else augment(items)

    def paired(self, x: Tensor, indices: NDArray[np.intp]) -> Tensor | None:
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


def _together(parts: Sequence[Tensor]) -> Tensor:
    """Batches as one; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts))


def _drawn(links: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The links, or a random draw of ``most`` of them, by torch's random state."""
    return links if len(links) <= most else links[torch.randint(len(links), (most,)).numpy()]


@lru_cache
def _named(fields: tuple[str, ...]) -> type:
    return namedtuple("Terms", fields)
