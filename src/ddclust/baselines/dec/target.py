"""The target of DEC's assignments, and when they have stopped changing."""

from __future__ import annotations

import torch
from torch import Tensor

from ddclust.baselines.dec.network import DECNetwork
from ddclust.data.batches import BatchSource
from ddclust.training.inference import outputs


def target_distribution(q: Tensor) -> Tensor:
    """The sharpened assignments P, the target of Q, Eq. (3): squares divided by cluster sizes, normalised.

    Examples
    --------
    >>> target_distribution(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    weights = q.square() / q.sum(dim=0)
    return weights / weights.sum(dim=1, keepdim=True)


class Target:
    """The target distribution of the whole data, and whether the clusters still change."""

    def __init__(self, module: DECNetwork, source: BatchSource, tol: float) -> None:
        self.module = module
        self.source = source
        self.tol = tol
        self.labels: Tensor | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Update the target; returns whether a smaller share of items than ``tol`` changed their cluster."""
        q = torch.cat([logits.softmax(dim=1) for _, _, logits in outputs(self.module, self.source)])
        self.distribution = target_distribution(q)
        before, self.labels = self.labels, q.argmax(dim=1)
        return before is not None and float((before != self.labels).double().mean()) < self.tol
