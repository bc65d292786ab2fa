"""Pairs of items that should, or should not, share a cluster.

What is known beyond the values of items comes as pairs: an item and an augmented copy of it, an item and one of its nearest
neighbours, and links that the user gives. Each kind adds a term to the loss. Where a simple method explains the data, its
assignments of the items are known too: the anchors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.links import Links
from ddclust.objective.augment import Augmentation

# Names of the terms that pairs add to the loss: copies and neighbours, and the two kinds of links.
PAIRS, MUST_LINK, CANNOT_LINK = "pairs", "must_link", "cannot_link"
ANCHOR = "anchor"  # the term of the assignments by a simple method
PAIR_TERMS = (PAIRS, MUST_LINK, CANNOT_LINK, ANCHOR)
NO_LINKS = Links(np.empty((0, 2), dtype=np.intp), np.empty((0, 2), dtype=np.intp))


@dataclass(frozen=True)
class Pairs:
    """What is known of the items of a data set beyond their values.

    ``neighbors`` are positions, (n, m). With ``augment`` too, an item is paired with an augmented copy of itself or of one
    of its neighbours, each with the same probability. ``anchors`` are soft assignments to learn, (n, k).
    """

    augment: Augmentation | None = None
    neighbors: NDArray[np.integer] | None = None
    links: Links = NO_LINKS
    anchors: NDArray[np.float32] | None = None


def log_agreement(logits: Tensor, others: Tensor) -> Tensor:
    """Log <alpha, alpha'>: the log-probability that two items draw the same cluster from their assignments.

    Computed from logits, so that neither the value nor its gradient vanishes when the inner product is tiny.

    Parameters
    ----------
    logits, others : Tensor of shape (n, k)
        Row i of one belongs to row i of the other; the assignments are their softmax.

    Returns
    -------
    Tensor of shape (n,)

    Examples
    --------
    >>> log_agreement(torch.tensor([[0.0, 0.0]]), torch.tensor([[9.0, 1.0]])).exp()
    tensor([0.5000])
    """
    return torch.logsumexp(logits.log_softmax(dim=1) + others.log_softmax(dim=1), dim=1)


def log_disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """log(1 - <alpha, alpha'>), summed over all pairs of different clusters so that no digits cancel.

    Parameters
    ----------
    logits, others : Tensor of shape (n, k)
        With k of at least 2: items cannot disagree on a single cluster.

    Returns
    -------
    Tensor of shape (n,)

    Examples
    --------
    >>> log_disagreement(torch.tensor([[60.0, 0.0]]), torch.tensor([[60.0, 0.0]]))  # log(2 exp(-60))
    tensor([-59.3069])
    """
    k = logits.shape[1]
    pairs = logits.log_softmax(dim=1)[:, :, None] + others.log_softmax(dim=1)[:, None, :]  # (n, k, k)
    same = torch.eye(k, dtype=torch.bool, device=logits.device)
    return torch.logsumexp(pairs.masked_fill(same, -torch.inf).flatten(1), dim=1)


def attraction(logits: Tensor, others: Tensor) -> Tensor:
    """The mean of -log<alpha, alpha'> over pairs of items that should share a cluster.

    It is zero only if both items of each pair are assigned to one cluster with certainty.

    Parameters
    ----------
    logits, others : Tensor of shape (n, k)

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> attraction(torch.zeros(3, 4), torch.zeros(3, 4))  # undecided between four: log 4
    tensor(1.3863)
    """
    return -log_agreement(logits, others).mean()


def divergence_from_anchors(logits: Tensor, anchors: Tensor) -> Tensor:
    """The mean of KL(anchor || alpha), 0 where every item has the assignment that it is to learn.

    Parameters
    ----------
    logits, anchors : Tensor of shape (n, k)

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> divergence_from_anchors(torch.zeros(2, 4), torch.eye(4)[:2])  # undecided between four: log 4
    tensor(1.3863)
    """
    return nn.functional.kl_div(logits.log_softmax(dim=1), anchors, reduction="batchmean")


def repulsion(logits: Tensor, others: Tensor) -> Tensor:
    """The mean of -log(1 - <alpha, alpha'>) over pairs of items that should not share a cluster.

    Parameters
    ----------
    logits, others : Tensor of shape (n, k)
        With k of at least 2.

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> repulsion(torch.zeros(3, 4), torch.zeros(3, 4))  # log(4 / 3)
    tensor(0.2877)
    """
    return -log_disagreement(logits, others).mean()
