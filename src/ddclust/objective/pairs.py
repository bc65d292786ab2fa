"""What training minimises: the loss of a batch and, if items have partners or links, that they agree.

A *partner* of an item should share its cluster: a changed copy of it (``augment``), or one of its neighbours. A
*link* is a pair of items of which the user knows that they must, or must not, share a cluster.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.batches import BatchSource
from ddclust.data.links import Links
from ddclust.objective.augment import Augmentation
from ddclust.objective.losses import DDCLoss, attraction, repulsion

ClusteringLoss = Callable[[Tensor, Tensor], Any]
# What the terms of partners and links are called beside those of the loss.
PARTNERS, MUST_LINK, CANNOT_LINK = "partners", "must_link", "cannot_link"
NO_LINKS = Links(np.empty((0, 2), dtype=np.intp), np.empty((0, 2), dtype=np.intp))


@dataclass(frozen=True)
class Knowledge:
    """What is known of items beyond their values.

    ``neighbors`` are positions, (n, m). With ``augment`` too, a partner is a changed copy of the item itself or of one of
    its neighbours, each of them as likely.
    """

    augment: Augmentation | None = None
    neighbors: NDArray[np.integer] | None = None
    links: Links = NO_LINKS
    partner_weight: float = 1.0
    link_weight: float = 1.0


NOTHING = Knowledge()


@dataclass(frozen=True)
class Objective:
    """The terms that one batch of a source contributes, all from one pass of the network.

    The loss is averaged over the batch and its partners, each by itself; the term of the partners is the mean over
    pairs of -log<alpha(x), alpha(partner)>. Of each kind of links ``n_links`` pairs at most are drawn for a batch; with
    ``augment`` it is changed copies of their items that are linked.
    """

    loss: ClusteringLoss
    knowledge: Knowledge
    source: BatchSource
    n_links: int

    def at(self, progress: float) -> Objective:
        """The same at a moment of training, from 0 to 1, if the loss changes with it."""
        return replace(self, loss=self.loss.at(progress)) if isinstance(self.loss, DDCLoss) else self

    def __call__(self, module: nn.Module, x: Tensor, indices: NDArray[np.intp]) -> Any:
        return self.evaluated(module, x, indices)[0]

    def evaluated(self, module: nn.Module, x: Tensor, indices: NDArray[np.intp]) -> tuple[Any, Tensor]:
        """The terms, a named tuple of scalars, and the logits of the batch."""
        known = self.knowledge
        partner = self._partner(x, indices)
        batches = [x] if partner is None else [x, partner]
        n_views = len(batches)
        kinds = [
            (name, push, _drawn(pairs, self.n_links))
            for name, push, pairs in (
                (MUST_LINK, attraction, known.links.must),
                (CANNOT_LINK, repulsion, known.links.cannot),
            )
            if len(pairs)
        ]
        batches += [self._linked(pairs[:, end], x) for _, _, pairs in kinds for end in (0, 1)]
        if len(batches) == 1:
            hidden, logits = module(x)
            return self.loss(hidden, logits.softmax(dim=1)), logits

        outputs = module(torch.cat(batches))
        hidden, logits = (output.split([len(batch) for batch in batches]) for output in outputs)
        views = [self.loss(hidden[view], logits[view].softmax(dim=1)) for view in range(n_views)]
        terms = {name: sum(values) / n_views for name, *values in zip(views[0]._fields, *views, strict=True)}
        if partner is not None:
            terms[PARTNERS] = known.partner_weight * attraction(logits[0], logits[1])
        for place, (name, push, _) in enumerate(kinds):
            first = n_views + 2 * place
            terms[name] = known.link_weight * push(logits[first], logits[first + 1])
        return _named(tuple(terms))(*terms.values()), logits[0]

    def _linked(self, positions: NDArray[np.integer], x: Tensor) -> Tensor:
        """Linked items, changed if there are changed copies: as they are a network would learn them by heart."""
        items, augment = self._items(positions, x), self.knowledge.augment
        return items if augment is None else augment(items)

    def _partner(self, x: Tensor, indices: NDArray[np.intp]) -> Tensor | None:
        """A partner of every item of the batch, if items have any."""
        augment, neighbors = self.knowledge.augment, self.knowledge.neighbors
        if neighbors is None:
            return None if augment is None else augment(x)
        choices = neighbors[indices]  # (batch, m)
        if augment is not None:
            choices = np.column_stack((choices, indices))
        chosen = torch.randint(choices.shape[1], (len(choices),)).numpy()
        partner = self._items(choices[np.arange(len(choices)), chosen], x)
        return partner if augment is None else augment(partner)

    def _items(self, positions: NDArray[np.integer], x: Tensor) -> Tensor:
        return self.source.batch(positions).to(x.device)


def _drawn(pairs: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The pairs, or as many of them as asked for, by torch's random state."""
    return pairs if len(pairs) <= most else pairs[torch.randint(len(pairs), (most,)).numpy()]


@lru_cache
def _named(fields: tuple[str, ...]) -> type:
    return namedtuple("Terms", fields)
