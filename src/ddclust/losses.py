"""The unsupervised loss of Deep Divergence-Based Clustering, Eq. (4) of the paper, as pure functions.

Kampffmeyer et al., "Deep Divergence-Based Approach to Clustering", Neural Networks 113, 2019.
Letters are the paper's: ``A`` soft assignments (n, k), ``H`` hidden representation (n, d), ``K`` its
kernel matrix (n, n), ``M`` closeness to the simplex corners (n, k).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ddclust.kernels import BANDWIDTH_RULES, BandwidthRule, gaussian_kernel

Reduction = Literal["mean", "sum"]
REDUCTIONS: tuple[str, ...] = get_args(Reduction)
# What a cluster's self-similarity is raised to, so that an empty cluster divides by no zero.
EMPTY_CLUSTER = 1e-9


class LossTerms(NamedTuple):
    """The three terms of the loss, weighted; their sum is what training minimises."""

    divergence: Tensor
    orthogonality: Tensor
    corners: Tensor


TERMS: tuple[str, ...] = LossTerms._fields


def cauchy_schwarz_similarity(A: Tensor, K: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Similarity of the clusters' densities, the argument of -log in the Cauchy-Schwarz divergence, Eq. (3).

    Parameters
    ----------
    A : Tensor of shape (n, k)
        Non-negative memberships; a column is a cluster.
    K : Tensor of shape (n, n)
        Kernel matrix.
    reduction : {"mean", "sum"}, default="mean"
        ``"mean"`` averages over the k(k-1)/2 pairs of clusters, as the group's later code does;
        ``"sum"`` sums over them and divides by k, as the paper's text does.

    Returns
    -------
    Tensor, a scalar
        With "mean" between 0 (all clusters apart) and 1 (all the same). 0 for a single cluster.

    Examples
    --------
    >>> cauchy_schwarz_similarity(torch.eye(2), torch.eye(2))
    tensor(0.)
    >>> round(cauchy_schwarz_similarity(torch.full((2, 2), 0.5), torch.eye(2)).item(), 4)
    1.0
    """
    k = A.shape[1]
    S = A.T @ K @ A  # (k, k): alpha_i^T K alpha_j
    scale = S.diagonal().clamp_min(EMPTY_CLUSTER).rsqrt()  # (k,)
    total = (S * scale[:, None] * scale[None, :]).triu(1).sum()
    return total / (k if reduction == "sum" else max(k * (k - 1) / 2, 1))


def assignment_overlap(A: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Inner products of the assignments of different points, triu(A A^T).

    Parameters
    ----------
    A : Tensor of shape (n, k)
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text, about n^2/2 times the mean and at n = 100 some hundred times
        the other terms; ``"mean"``, over the n(n-1)/2 pairs of points, is the group's later code.

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> assignment_overlap(A, reduction="sum")
    tensor(1.)
    """
    n = len(A)
    # The sum over all pairs is |sum_q alpha_q|^2: the (n, n) matrix need not be formed.
    total = (A.sum(dim=0).square().sum() - A.square().sum()) / 2
    return total / (1 if reduction == "sum" else max(n * (n - 1) / 2, 1))


def corner_closeness(A: Tensor) -> Tensor:
    """M with ``m_qi = exp(-|alpha_q - e_i|^2)``: how close each assignment is to each simplex corner.

    Parameters
    ----------
    A : Tensor of shape (n, k)

    Returns
    -------
    Tensor of shape (n, k)

    Examples
    --------
    >>> corner_closeness(torch.tensor([[1.0, 0.0]]))  # 1 and exp(-2)
    tensor([[1.0000, 0.1353]])
    """
    return torch.exp(2 * A - A.square().sum(dim=1, keepdim=True) - 1)


def ddc_loss(
    hidden: Tensor,
    assignments: Tensor,
    *,
    bandwidth: float = 0.15,
    bandwidth_rule: BandwidthRule = "squared_median",
    reduction: Reduction = "mean",
    terms: tuple[str, ...] = TERMS,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
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
        See :func:`ddclust.kernels.gaussian_kernel`; the paper's text is ``"median"``.
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text: cluster pairs summed and divided by k, triu(A A^T) summed.
        ``"mean"`` is the group's later code: both averaged over pairs, so that the three terms are
        of one size. The means come close to the paper's results, the sums do not.
    terms : tuple of str, default=("divergence", "orthogonality", "corners")
        Which terms to use (l1, l2, l3 of the paper's ablation); the others are zero.
    weights : tuple of three floats, default=(1, 1, 1)
        Factors of the three terms, in the order of ``LossTerms``.

    Returns
    -------
    LossTerms

    Examples
    --------
    >>> H = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> [round(term.item(), 3) for term in ddc_loss(H, A)]
    [0.031, 0.333, 0.295]
    """
    _check_choices(bandwidth, bandwidth_rule, reduction, terms, weights)
    K = gaussian_kernel(hidden, bandwidth=bandwidth, bandwidth_rule=bandwidth_rule)
    compute = {
        "divergence": lambda: cauchy_schwarz_similarity(assignments, K, reduction=reduction),
        "orthogonality": lambda: assignment_overlap(assignments, reduction=reduction),
        "corners": lambda: cauchy_schwarz_similarity(corner_closeness(assignments), K, reduction=reduction),
    }
    zero = assignments.new_zeros(())
    return LossTerms(
        *(
            weight * compute[term]() if term in terms else zero
            for term, weight in zip(TERMS, weights, strict=True)
        )
    )


def _check_choices(
    bandwidth: float,
    bandwidth_rule: str,
    reduction: str,
    terms: tuple[str, ...],
    weights: tuple[float, ...],
) -> None:
    """Refuse what no formula is meant by."""
    if not 0 < bandwidth < float("inf"):
        raise ValueError(f"bandwidth must be a positive number, got {bandwidth!r}.")
    if bandwidth_rule not in BANDWIDTH_RULES:
        raise ValueError(f"bandwidth_rule must be one of {BANDWIDTH_RULES}, got {bandwidth_rule!r}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {REDUCTIONS}, got {reduction!r}.")
    if not terms or not set(terms) <= set(TERMS):
        raise ValueError(f"terms must be some of {TERMS}, got {terms!r}.")
    if len(weights) != len(TERMS) or not all(0 <= weight < float("inf") for weight in weights):
        raise ValueError(f"weights must be three non-negative numbers, got {weights!r}.")


@dataclass(frozen=True)
class DDCLoss:
    """The choices of :func:`ddc_loss`, held together and checked; call it with (hidden, assignments).

    The defaults are the reading of the paper that comes close to its results. The text taken
    literally is ``DDCLoss(bandwidth_rule="median", reduction="sum")``.

    Examples
    --------
    >>> loss = DDCLoss(terms=("divergence", "corners"))
    >>> loss(torch.randn(6, 2), torch.full((6, 3), 1 / 3)).orthogonality
    tensor(0.)
    """

    bandwidth: float = 0.15
    bandwidth_rule: BandwidthRule = "squared_median"
    reduction: Reduction = "mean"
    terms: tuple[str, ...] = TERMS
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        object.__setattr__(self, "bandwidth", float(self.bandwidth))
        _check_choices(self.bandwidth, self.bandwidth_rule, self.reduction, self.terms, self.weights)

    def __call__(self, hidden: Tensor, assignments: Tensor) -> LossTerms:
        return ddc_loss(
            hidden,
            assignments,
            bandwidth=self.bandwidth,
            bandwidth_rule=self.bandwidth_rule,
            reduction=self.reduction,
            terms=self.terms,
            weights=self.weights,
        )
