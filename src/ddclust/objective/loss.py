"""The unsupervised loss of Deep Divergence-Based Clustering, Eq. (4) of the paper.

Kampffmeyer et al., "Deep Divergence-Based Approach to Clustering", Neural Networks 113, 2019.
Letters are the paper's: ``A`` soft assignments (n, k), ``H`` hidden representation (n, d), ``K`` its
kernel matrix (n, n), ``M`` closeness to the simplex corners (n, k).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from torch import Tensor

from ddclust.objective.divergences import (
    DIVERGENCES,
    REDUCTIONS,
    DivergenceName,
    Reduction,
    cosine_kernel,
    kullback_leibler_similarity,
    reduction_factors,
)
from ddclust.objective.fused import WeightedTerms
from ddclust.objective.kernels import BANDWIDTH_RULES, BandwidthRule, gaussian_kernel
from ddclust.objective.pairs import PAIR_TERMS
from ddclust.objective.terms import corner_closeness, orthogonality

K_MEANS = "k-means"  # as cluster_sizes: the sizes of the clusters that k-means finds
# Start weights and equal sizes give way to the final ones within this share of training.
SETTLES_AT = 1 / 3


class LossTerms(NamedTuple):
    """The three terms of the loss, weighted; training minimises their sum."""

    divergence: Tensor
    orthogonality: Tensor
    corners: Tensor


TERMS: tuple[str, ...] = LossTerms._fields
WEIGHTED_TERMS = (*TERMS, *PAIR_TERMS)


def ddc_loss(
    hidden: Tensor,
    assignments: Tensor,
    *,
    bandwidth: float = 0.15,
    bandwidth_rule: BandwidthRule = "squared_median",
    reduction: Reduction = "mean",
    divergence: DivergenceName = "cauchy_schwarz",
    weights: Mapping[str, float] | None = None,
    cluster_sizes: Sequence[float] | None = None,
) -> LossTerms:
    """The three terms of the DDC loss for one batch, Eq. (4); differentiable.

    Parameters
    ----------
    hidden : Tensor of shape (n, d)
        Representation on which the kernel is computed.
    assignments : Tensor of shape (n, k)
        Softmax outputs.
    bandwidth : float, default=0.15
    bandwidth_rule : {"squared_median", "median"}, default="squared_median"
        See :func:`ddclust.gaussian_kernel`. The paper's text is ``"median"``.
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text: cluster pairs are summed and divided by k, triu(A A^T) is summed.
        ``"mean"`` is the group's later code: both are averaged over pairs, so that the three terms are
        of the same size. The means come close to the paper's results, the sums do not.
    divergence : {"cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"}, default="cauchy_schwarz"
        How the first and the third term compare clusters. The other two are the paper's alternatives:
        the Kullback-Leibler divergence on the Gaussian kernel, or on cosine similarities.
    weights : mapping of str to float, optional
        Weights of the terms by name: "divergence", "orthogonality", "corners" (l1, l2, l3 of the paper's ablation).
        A term that is not named has weight 1. A weight of 0 switches a term off.
    cluster_sizes : sequence of k floats, optional
        Target shares of the clusters, largest first. By default all clusters are drawn to the same size. See
        :func:`ddclust.objective.terms.orthogonality`.

    Returns
    -------
    LossTerms

    Examples
    --------
    >>> import torch
    >>> H = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> [round(term.item(), 3) for term in ddc_loss(H, A)]
    [0.031, 0.333, 0.295]
    """
    _check_choices(bandwidth, bandwidth_rule, reduction, divergence)
    n, k = assignments.shape
    by_name = {} if weights is None else weights
    first, second, third = (by_name.get(term, 1.0) for term in TERMS)
    if divergence == "cauchy_schwarz":
        per_cluster_pair, per_item_pair = reduction_factors(n, k, reduction)
        factors = (first * per_cluster_pair, second * per_item_pair, third * per_cluster_pair)
        values = WeightedTerms.apply(hidden, assignments, bandwidth, bandwidth_rule, factors, cluster_sizes)
    else:
        is_cosine = divergence == "kullback_leibler_cosine"
        K = (
            cosine_kernel(hidden)
            if is_cosine
            else gaussian_kernel(hidden, bandwidth=bandwidth, bandwidth_rule=bandwidth_rule)
        )
        values = (
            first * kullback_leibler_similarity(assignments, K, reduction=reduction),
            second * orthogonality(assignments, reduction=reduction, cluster_sizes=cluster_sizes),
            third * kullback_leibler_similarity(corner_closeness(assignments), K, reduction=reduction),
        )
    zero = assignments.new_zeros(())
    return LossTerms(
        *(v if weight else zero for v, weight in zip(values, (first, second, third), strict=True))
    )


@dataclass(frozen=True)
class DDCLoss:
    """The choices of :func:`ddclust.ddc_loss`, checked; call it with (hidden, assignments).

    The defaults are the reading of the paper that comes closest to its results. The text taken literally is
    ``DDCLoss(bandwidth_rule="median", reduction="sum")``.

    Parameters
    ----------
    bandwidth, bandwidth_rule, reduction, divergence
        See :func:`ddclust.ddc_loss`.
    weights : mapping of str to float, optional
        Weights of the terms by name: "divergence", "orthogonality", "corners", and those of pairs of items, "pairs",
        "must_link", "cannot_link", and of what is learnt from a mixture, "anchor". :class:`ddclust.DDC` fills in what is not named: 1, or the weights that suit pairs
        (see :mod:`ddclust.defaults`). A weight of 0 switches a term off.
    start_weights : mapping of str to float, optional
        Weights at the start of training. They change linearly to ``weights`` within the first third.
    cluster_sizes : sequence of k numbers or "k-means", optional
        Sizes that clusters are drawn to, as shares or counts, in any order. Training starts with equal sizes
        and moves to these within the first third, since it should be existing clusters that decide which of them is
        the largest. ``"k-means"`` takes the sizes of the clusters that k-means finds.

    Examples
    --------
    >>> import torch
    >>> loss = DDCLoss(weights={"orthogonality": 0})
    >>> loss(torch.randn(6, 2), torch.full((6, 3), 1 / 3)).orthogonality
    tensor(0.)
    """

    bandwidth: float = 0.15
    bandwidth_rule: BandwidthRule = "squared_median"
    reduction: Reduction = "mean"
    divergence: DivergenceName = "cauchy_schwarz"
    weights: Mapping[str, float] = field(default_factory=dict)
    start_weights: Mapping[str, float] = field(default_factory=dict)
    cluster_sizes: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", float(self.bandwidth))
        _check_choices(self.bandwidth, self.bandwidth_rule, self.reduction, self.divergence)
        for name in ("weights", "start_weights"):
            object.__setattr__(self, name, _checked_weights(getattr(self, name), name))
        sizes = self.cluster_sizes
        if isinstance(sizes, str) and sizes != K_MEANS:
            raise ValueError(f"cluster_sizes must be numbers or {K_MEANS!r}, got {sizes!r}.")
        if sizes is not None and not isinstance(sizes, str):
            object.__setattr__(self, "cluster_sizes", shares(sizes))

    @classmethod
    def paper(cls) -> Self:
        """The reading of the paper that comes closest to its results; docs/readings.md lists the others.

        Examples
        --------
        >>> DDCLoss.paper().weights
        {'divergence': 1.0, 'orthogonality': 1.0, 'corners': 1.0}
        """
        return cls(weights=dict.fromkeys(TERMS, 1.0))

    @property
    def settles_at(self) -> float:
        """The share of training, from 0 to 1, after which the loss no longer changes.

        Examples
        --------
        >>> DDCLoss().settles_at, round(DDCLoss(start_weights={"orthogonality": 50}).settles_at, 3)
        (0.0, 0.333)
        """
        return SETTLES_AT if self.start_weights or self.cluster_sizes is not None else 0.0

    def at(self, progress: float) -> Self:
        """The loss at a moment of training, from 0 to 1.

        Examples
        --------
        >>> loss = DDCLoss(start_weights={"orthogonality": 10})
        >>> [round(loss.at(moment).weights["orthogonality"], 6) for moment in (0, 1 / 6, 1 / 3, 1)]
        [10.0, 5.5, 1.0, 1.0]
        >>> DDCLoss(cluster_sizes=(9, 1)).at(1 / 6).cluster_sizes
        (0.7, 0.3)
        """
        if not self.settles_at:
            return self
        still = max(1 - progress / SETTLES_AT, 0.0)
        weights = dict(self.weights)
        for name, start in self.start_weights.items():
            final = weights.get(name, 1.0)
            weights[name] = final + still * (start - final)
        sizes = self.cluster_sizes
        if sizes is not None:
            sizes = tuple(still / len(sizes) + (1 - still) * size for size in sizes)
        return replace(self, weights=weights, start_weights={}, cluster_sizes=sizes)

    def __call__(self, hidden: Tensor, assignments: Tensor) -> LossTerms:
        return ddc_loss(
            hidden,
            assignments,
            bandwidth=self.bandwidth,
            bandwidth_rule=self.bandwidth_rule,
            reduction=self.reduction,
            divergence=self.divergence,
            weights=self.weights,
            cluster_sizes=self.cluster_sizes,
        )


def shares(cluster_sizes: Any) -> tuple[float, ...]:
    """Sizes of clusters, shares or counts, as shares that sum to 1, the largest first.

    Examples
    --------
    >>> shares([100, 300])
    (0.75, 0.25)
    """
    sizes = [float(size) for size in cluster_sizes]
    if not sizes or not all(0 < size < float("inf") for size in sizes):
        raise ValueError(
            f"cluster_sizes must be positive numbers, one for each cluster, got {cluster_sizes!r}."
        )
    total = sum(sizes)
    if math.isclose(total, 1, rel_tol=1e-12):
        total = 1.0  # shares already; a second division would change their last digits
    return tuple(sorted((size / total for size in sizes), reverse=True))


def _check_choices(bandwidth: float, bandwidth_rule: str, reduction: str, divergence: str) -> None:
    """Refuse values that have no meaning."""
    if divergence not in DIVERGENCES:
        raise ValueError(f"divergence must be one of {DIVERGENCES}, got {divergence!r}.")
    if not 0 < bandwidth < float("inf"):
        raise ValueError(f"bandwidth must be a positive number, got {bandwidth!r}.")
    if bandwidth_rule not in BANDWIDTH_RULES:
        raise ValueError(f"bandwidth_rule must be one of {BANDWIDTH_RULES}, got {bandwidth_rule!r}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {REDUCTIONS}, got {reduction!r}.")


def _checked_weights(weights: Mapping[str, float] | None, name: str) -> dict[str, float]:
    """Weights by term as floats, after a check of names and values."""
    weights = {} if weights is None else weights
    if not isinstance(weights, Mapping) or not set(weights) <= set(WEIGHTED_TERMS):
        raise ValueError(
            f"{name} must map names of terms to numbers, got {weights!r}; the terms are {', '.join(WEIGHTED_TERMS)}."
        )
    checked = {term: float(weight) for term, weight in weights.items()}
    if not all(0 <= weight < float("inf") for weight in checked.values()):
        raise ValueError(f"{name} must be non-negative numbers, got {weights!r}.")
    return checked
