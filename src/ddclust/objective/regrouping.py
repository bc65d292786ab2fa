"""Outputs of a network that are clusters of their own at first, and parts of fewer clusters later in training.

The orthogonality term draws clusters to one size. Of many small clusters a large class takes several and a rare one its own;
grouped, they have the sizes of the data. What is left of training then moves the borders between the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddclust.objective.loss import DDCLoss

# Chosen on images of digits, in equal and unequal numbers.
REGROUPED_AT = 0.4  # of training
FORGOTTEN = 0.02  # of the running sizes with every batch
EQUAL_SHARE = 0.1  # of equal sizes in those that clusters are drawn to, so that none vanishes


@dataclass(frozen=True)
class FineStage:
    """The first part of training, in which every output of the network is a cluster.

    ``loss`` is the one of this part, and ``n_groups`` the number of clusters afterwards.
    """

    n_groups: int
    loss: DDCLoss = field(default_factory=DDCLoss)
    until: float = REGROUPED_AT  # share of training


@dataclass
class Regrouping:
    """Which cluster each output of a network belongs to, once that is known, and the sizes of the clusters.

    Examples
    --------
    >>> regrouping = Regrouping()
    >>> logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> regrouping.joined(logits) is logits
    True
    >>> regrouping.begin(np.array([0, 1, 1]), np.array([0.6, 0.4]))
    >>> regrouping.joined(logits).exp()
    tensor([[0.5000, 0.5000]])
    """

    groups: Tensor | None = None  # (m,)
    shares: Tensor | None = None  # (k,), which sum to 1
    anchors: Tensor | None = None  # (n, k), soft assignments to learn from now on, if any were found

    @property
    def is_done(self) -> bool:
        return self.groups is not None

    def begin(
        self,
        groups: NDArray[np.int64],
        shares: NDArray[np.float64],
        anchors: NDArray[np.float32] | None = None,
    ) -> None:
        """From now on outputs are parts of clusters, numbered from 0."""
        self.groups, self.shares = torch.from_numpy(groups).clone(), torch.from_numpy(shares).clone()
        self.anchors = None if anchors is None else torch.from_numpy(anchors).clone()

    def joined(self, logits: Tensor) -> Tensor:
        """Logits of the clusters, (n, k): the logarithms of the sums of their outputs' probabilities."""
        if self.groups is None:
            return logits
        groups = self.groups.to(logits.device)
        others = torch.arange(int(groups.max()) + 1, device=logits.device)[:, None] != groups  # (k, m)
        parts = logits.log_softmax(dim=1)[:, None, :].masked_fill(others, -torch.inf)  # (n, k, m)
        return parts.logsumexp(dim=2)

    def note(self, logits: Tensor) -> None:
        """Let the sizes follow those of a batch, of which the logits of the clusters are given."""
        if self.shares is not None:
            sizes = logits.detach().softmax(dim=1).mean(dim=0).double().cpu()
            self.shares = (1 - FORGOTTEN) * self.shares + FORGOTTEN * sizes

    def sized(self, loss: DDCLoss) -> DDCLoss:
        """The loss that draws clusters to about the sizes that they have.

        Examples
        --------
        >>> regrouping = Regrouping(torch.tensor([0, 1, 1]), torch.tensor([0.9, 0.1]))
        >>> [round(share, 2) for share in regrouping.sized(DDCLoss()).cluster_sizes]
        [0.86, 0.14]
        """
        assert self.shares is not None
        sizes = (1 - EQUAL_SHARE) * self.shares + EQUAL_SHARE / len(self.shares)
        return replace(loss, cluster_sizes=sizes.tolist())

    def state(self) -> dict[str, Tensor]:
        """All that :meth:`restore` needs."""
        if self.groups is None or self.shares is None:
            return {}
        learnt = {} if self.anchors is None else {"anchors": self.anchors}
        return {"groups": self.groups, "shares": self.shares, **learnt}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from another's :meth:`state`."""
        self.groups, self.shares = tensors.get("groups"), tensors.get("shares")
        self.anchors = tensors.get("anchors")


def without_sizes(loss: DDCLoss) -> DDCLoss:
    """The loss by which runs with sizes of their own are compared: orthogonality, drawn to these, says nothing.

    Examples
    --------
    >>> without_sizes(DDCLoss()).weights
    {'orthogonality': 0.0}
    """
    return replace(loss, weights={**loss.weights, "orthogonality": 0.0})
