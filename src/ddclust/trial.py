"""A trial of the network, the loss and the augmentation on two items, so that a wrong one fails early and clearly."""

from __future__ import annotations

from typing import Any

import torch

from ddclust.data.batches import BatchSource
from ddclust.data.items import Items
from ddclust.objective.objective import pair_weights
from ddclust.objective.pairs import PAIR_TERMS, PAIRS
from ddclust.training.randomness import own_randomness
from ddclust.training.setup import Plan


def try_out(plan: Plan, X: Items) -> int:
    """Check what the network, the loss and the augmentation return; gives the size of the hidden representation."""
    setup = plan.setup
    with own_randomness():
        module = plan.build().eval()
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise TypeError("The network has no parameters to train.")
        x = BatchSource(X, plan.scaling).batch(slice(0, 2)).to(setup.device)
        hidden, logits = _checked_outputs(module(x), len(x), setup.n_clusters)
        terms = setup.loss(hidden, logits.softmax(dim=1))
        if setup.augment is not None:
            _check_copy(x, setup.augment(x.clone()))
    _check_terms(terms)
    _check_criterion(plan, terms._fields)
    return hidden.shape[1]


def _checked_outputs(result: Any, n: int, n_clusters: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden representation and logits, if that is what a network has returned."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError("The network's forward must return a tuple (hidden, logits).")
    hidden, logits = result
    if hidden.ndim != 2 or logits.shape != (n, n_clusters):
        raise ValueError(
            f"The network must return hidden of shape (n, d) and logits of shape (n, {n_clusters}),"
            f" got {tuple(hidden.shape)} and {tuple(logits.shape)} for n={n}."
        )
    return hidden, logits


def _check_terms(terms: Any) -> None:
    """Refuse what is no named tuple of differentiable scalars."""
    are_scalars = hasattr(terms, "_fields") and all(
        isinstance(t, torch.Tensor) and t.ndim == 0 for t in terms
    )
    if not are_scalars or not any(term.requires_grad for term in terms):
        raise TypeError(
            "loss must return a named tuple of scalar tensors that depend on its arguments, such as"
            f" ddclust.objective.loss.LossTerms; it returned {terms!r:.200}."
        )
    taken = set(PAIR_TERMS) & set(terms._fields)
    if taken:
        raise ValueError(f"A term of the loss is called {min(taken)!r}, as a term of pairs is; rename it.")


def _check_criterion(plan: Plan, fields: tuple[str, ...]) -> None:
    """Refuse to select runs by a term that the loss does not have."""
    criterion, loss = plan.setup.criterion, plan.setup.loss
    if criterion == "divergence" and criterion not in fields:
        raise ValueError(
            f"selection='divergence' needs a loss with a term of that name; this one has {fields}."
        )
    if criterion == PAIRS and not (plan.setup.has_pairs and pair_weights(loss).get(PAIRS, 1.0) > 0):
        raise ValueError(
            "selection='pairs' needs pairs (augment or neighbors) and a weight of the term 'pairs' above 0."
        )


def _check_copy(x: torch.Tensor, copy: Any) -> None:
    """Refuse what is no changed copy of a batch."""
    if not isinstance(copy, torch.Tensor) or copy.shape != x.shape or copy.dtype != x.dtype:
        got = (
            f"{tuple(copy.shape)} of {copy.dtype}" if isinstance(copy, torch.Tensor) else type(copy).__name__
        )
        raise TypeError(
            f"augment must return a tensor like the batch it is given, of shape {tuple(x.shape)} and {x.dtype}; it"
            f" returned {got}."
        )
