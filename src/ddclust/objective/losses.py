"""The unsupervised loss of Deep Divergence-Based Clustering, Eq. (4) of the paper, as pure functions.

Kampffmeyer et al., "Deep Divergence-Based Approach to Clustering", Neural Networks 113, 2019.
Letters are the paper's: ``A`` soft assignments (n, k), ``H`` hidden representation (n, d), ``K`` its
kernel matrix (n, n), ``M`` closeness to the simplex corners (n, k).

Beside it, what pairs of items that should or should not share a cluster add to it: :func:`attraction` and
:func:`repulsion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ddclust.objective.kernels import (
    BANDWIDTH_RULES,
    BandwidthRule,
    centred,
    gaussian_kernel,
    median_bandwidth,
    squared_distances_of_centred,
)

Reduction = Literal["mean", "sum"]
REDUCTIONS: tuple[str, ...] = get_args(Reduction)
DivergenceName = Literal["cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"]
DIVERGENCES: tuple[str, ...] = get_args(DivergenceName)
# What a cluster's self-similarity is raised to, so that an empty cluster divides by no zero.
EMPTY_CLUSTER = 1e-9
# Weights of the averaged overlap with partners, chosen on MNIST: what keeps them from merging clusters at the start,
# and what is left when there are clusters, whose sizes should then follow the data.
PARTNERS_START_BALANCE, PARTNERS_BALANCE = 50.0, 5.0
# The share of training in which the first of them falls to the second.
BALANCE_FALLS_IN = 1 / 3


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
    return total * _reduction_factors(len(A), k, reduction)[0]


def kullback_leibler_similarity(A: Tensor, K: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """The same by the symmetrised Kullback-Leibler divergence: exp(-(KL_ij + KL_ji) / 2) of pairs of clusters.

    The density of cluster i at point q is estimated by p_i(q) = sum_r K_qr alpha_ri / sum_r alpha_ri, and
    KL_ij = sum_q w_qi log(p_i(q) / p_j(q)) with the weights w_qi = alpha_qi / sum_r alpha_ri. The paper tries this in
    Section 5.5 without giving a formula; this one is ours, bounded like the Cauchy-Schwarz similarity.

    Parameters
    ----------
    A : Tensor of shape (n, k)
    K : Tensor of shape (n, n)
        Non-negative.
    reduction : {"mean", "sum"}, default="mean"

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> round(kullback_leibler_similarity(torch.full((2, 2), 0.5), torch.eye(2)).item(), 4)
    1.0
    """
    W = A / A.sum(dim=0).clamp_min(EMPTY_CLUSTER)  # (n, k)
    log_density = (K @ W).clamp_min(EMPTY_CLUSTER).log()  # (n, k): log p_j(q)
    cross = W.T @ log_density  # (k, k): the mean of log p_j under cluster i
    KL = cross.diagonal()[:, None] - cross
    total = torch.exp(-(KL + KL.T) / 2).triu(1).sum()
    return total * _reduction_factors(len(A), A.shape[1], reduction)[0]


def cosine_kernel(hidden: Tensor) -> Tensor:
    """Cosine similarities moved to [0, 1]: (1 + cos) / 2, of shape (n, n).

    Examples
    --------
    >>> cosine_kernel(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))[0]
    tensor([1.0000, 0.5000, 0.0000])
    """
    directions = torch.nn.functional.normalize(hidden, dim=1)
    return (1 + directions @ directions.T) / 2


def assignment_overlap(
    A: Tensor, *, reduction: Reduction = "mean", cluster_sizes: Sequence[float] | None = None
) -> Tensor:
    """Inner products of the assignments of different points, triu(A A^T).

    With ``cluster_sizes`` the products are weighted, sum_i alpha_qi alpha_ri / (k s_i): for large n and certain
    assignments that is sum_i p_i^2 / s_i up to a factor, where p_i is the share of items in cluster i, and by the
    Cauchy-Schwarz inequality it is least at p = s. Without them it is least for clusters of one size.

    Parameters
    ----------
    A : Tensor of shape (n, k)
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text, about n^2/2 times the mean and at n = 100 some hundred times
        the other terms; ``"mean"``, over the n(n-1)/2 pairs of points, is the group's later code.
    cluster_sizes : sequence of k floats, optional
        Shares of the items that the clusters should have, the largest first. The cluster that is the largest in A
        gets the largest share, and so on.

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> assignment_overlap(A, reduction="sum")
    tensor(1.)
    >>> assignment_overlap(A, reduction="sum", cluster_sizes=(2 / 3, 1 / 3))  # 1 / (2 * 2 / 3)
    tensor(0.7500)
    """
    n, k = A.shape
    # The sum over all pairs is |sum_q alpha_q|^2: the (n, n) matrix need not be formed.
    per_cluster = (A.sum(dim=0).square() - A.square().sum(dim=0)) / 2  # (k,)
    weights = size_weights(A.sum(dim=0), cluster_sizes)
    return (per_cluster * weights).sum() * _reduction_factors(n, k, reduction)[1]


def size_weights(column_sums: Tensor, cluster_sizes: Sequence[float] | None) -> Tensor:
    """1 / (k s_i) for each cluster, where the largest cluster is meant to have the largest share s; 1 without shares.

    Examples
    --------
    >>> size_weights(torch.tensor([3.0, 5.0]), (0.8, 0.2))
    tensor([2.5000, 0.6250])
    """
    weights = torch.ones_like(column_sums)
    if cluster_sizes is not None:
        if len(cluster_sizes) != len(column_sums):
            raise ValueError(f"There are {len(cluster_sizes)} cluster_sizes for {len(column_sums)} clusters.")
        shares = column_sums.new_tensor(cluster_sizes)
        weights[column_sums.detach().argsort(descending=True)] = 1 / (len(shares) * shares)
    return weights


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


def log_agreement(logits: Tensor, others: Tensor) -> Tensor:
    """The logarithm of <alpha, alpha'>, how likely two items share a cluster if each draws one by its assignment.

    From logits rather than assignments: however small the inner product, neither it nor its gradient vanishes.

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
    """The logarithm of 1 - <alpha, alpha'>, as the sum over all pairs of different clusters: nothing cancels.

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

    Zero if every pair is wholly in one and the same cluster, so it also asks for certainty.

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


def ddc_loss(
    hidden: Tensor,
    assignments: Tensor,
    *,
    bandwidth: float = 0.15,
    bandwidth_rule: BandwidthRule = "squared_median",
    reduction: Reduction = "mean",
    terms: tuple[str, ...] = TERMS,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    divergence: DivergenceName = "cauchy_schwarz",
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
        See :func:`ddclust.objective.kernels.gaussian_kernel`; the paper's text is ``"median"``.
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text: cluster pairs summed and divided by k, triu(A A^T) summed.
        ``"mean"`` is the group's later code: both averaged over pairs, so that the three terms are
        of one size. The means come close to the paper's results, the sums do not.
    terms : tuple of str, default=("divergence", "orthogonality", "corners")
        Which terms to use (l1, l2, l3 of the paper's ablation); the others are zero.
    weights : tuple of three floats, default=(1, 1, 1)
        Factors of the three terms, in the order of ``LossTerms``.
    divergence : {"cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"}, default="cauchy_schwarz"
        How the first and the third term compare clusters. The other two are the paper's alternatives:
        :func:`kullback_leibler_similarity` on the Gaussian kernel, or on :func:`cosine_kernel`.
    cluster_sizes : sequence of k floats, optional
        Shares of the items that the second term draws clusters to, the largest first; by default equal ones. See
        :func:`assignment_overlap`.

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
    _check_choices(bandwidth, bandwidth_rule, reduction, terms, weights, divergence)
    n, k = assignments.shape
    if divergence == "cauchy_schwarz":
        per_cluster_pair, per_item_pair = _reduction_factors(n, k, reduction)
        factors = (weights[0] * per_cluster_pair, weights[1] * per_item_pair, weights[2] * per_cluster_pair)
        values = _WeightedTerms.apply(hidden, assignments, bandwidth, bandwidth_rule, factors, cluster_sizes)
    else:
        is_cosine = divergence == "kullback_leibler_cosine"
        K = (
            cosine_kernel(hidden)
            if is_cosine
            else gaussian_kernel(hidden, bandwidth=bandwidth, bandwidth_rule=bandwidth_rule)
        )
        values = (
            weights[0] * kullback_leibler_similarity(assignments, K, reduction=reduction),
            weights[1] * assignment_overlap(assignments, reduction=reduction, cluster_sizes=cluster_sizes),
            weights[2] * kullback_leibler_similarity(corner_closeness(assignments), K, reduction=reduction),
        )
    zero = assignments.new_zeros(())
    return LossTerms(*(value if term in terms else zero for term, value in zip(TERMS, values, strict=True)))


class _WeightedTerms(torch.autograd.Function):
    """``factors`` times the similarity of A's columns, the overlap of its rows, the similarity of M's columns.

    The functions above say the same, one formula each. A batch is small, so that what they cost is
    mostly the number of operations that autograd records and walks back through; here the gradients
    are written out, and A and M = ``corner_closeness(A)`` share their matrix products as U = [A, M].

    With S = U^T K U, r_i = S_ii^(-1/2) and C_ij = r_i r_j S_ij for a pair of clusters i < j,
    d C_ij / d S_ij = r_i r_j and d C_ij / d S_ii = -C_ij r_i^2 / 2. E is twice the gradient with
    respect to S, made symmetric: that with respect to U is K U E, that with respect to K is U E U^T / 2.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        A: Tensor,
        bandwidth: float,
        bandwidth_rule: BandwidthRule,
        factors: tuple[float, float, float],
        cluster_sizes: Sequence[float] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        k = A.shape[1]
        H = centred(hidden)
        squared = squared_distances_of_centred(H)
        sigma_squared = median_bandwidth(squared, bandwidth, bandwidth_rule).item()
        K = squared.mul_(-0.5 / sigma_squared).exp_()  # (n, n)
        U = torch.cat((A, corner_closeness(A)), dim=1)  # (n, 2k)
        KU = K @ U  # (n, 2k)
        S = U.T @ KU  # (2k, 2k), of which the two (k, k) blocks on the diagonal have a meaning
        r = S.diagonal().clamp_min(EMPTY_CLUSTER).rsqrt()  # (2k,)
        R = torch.outer(r, r)
        C = (S * R).triu_(1)
        column_sums = A.sum(dim=0)  # (k,)
        ctx.sigma_squared, ctx.factors = sigma_squared, factors
        if cluster_sizes is None:
            weights = None
            overlap = (column_sums.dot(column_sums) - A.square().sum()) / 2
        else:
            weights = size_weights(column_sums, cluster_sizes)
            overlap = weights.dot(column_sums.square() - A.square().sum(dim=0)) / 2
        ctx.save_for_backward(H, K, U, KU, S, R, C, column_sums, weights)
        return factors[0] * C[:k, :k].sum(), factors[1] * overlap, factors[2] * C[k:, k:].sum()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_divergence: Tensor, by_overlap: Tensor, by_corners: Tensor
    ) -> tuple[Tensor | None, ...]:
        H, K, U, KU, S, R, C, column_sums, weights = ctx.saved_tensors
        factors, k = ctx.factors, len(column_sums)
        A, M = U[:, :k], U[:, k:]
        by_pair = torch.block_diag(  # (2k, 2k)
            (factors[0] * by_divergence).expand(k, k), (factors[2] * by_corners).expand(k, k)
        )
        C = C * by_pair
        E = R * by_pair
        # An empty cluster's self-similarity was raised to a constant.
        own = R.diagonal() * (S.diagonal() > EMPTY_CLUSTER)
        E.diagonal().copy_((C.sum(dim=0) + C.sum(dim=1)) * own).neg_()
        # The exponents carry the gradient on to the distances |h_i - h_j|^2, and these to the points.
        pull = (U @ E @ U.T).mul_(K)  # (n, n)
        pull.diagonal().sub_(pull.sum(dim=1))
        by_hidden = pull.div_(ctx.sigma_squared) @ H

        by_U = KU @ E  # (n, 2k)
        by_exponent = by_U[:, k:] * M  # M = exp(2 A - |alpha|^2 - 1)
        by_A = by_U[:, :k] + 2 * (by_exponent - A * by_exponent.sum(dim=1, keepdim=True))
        others = column_sums - A  # what each item meets in its clusters
        by_A += factors[1] * by_overlap * (others if weights is None else others * weights)
        return by_hidden, by_A, None, None, None, None


def _reduction_factors(n: int, k: int, reduction: Reduction) -> tuple[float, float]:
    """What the sums over pairs of clusters and over pairs of items are multiplied by."""
    if reduction == "sum":
        return 1 / k, 1.0
    return 1 / max(k * (k - 1) / 2, 1), 1 / max(n * (n - 1) / 2, 1)


def _check_choices(
    bandwidth: float,
    bandwidth_rule: str,
    reduction: str,
    terms: tuple[str, ...],
    weights: tuple[float, ...],
    divergence: str,
) -> None:
    """Refuse what no formula is meant by."""
    if divergence not in DIVERGENCES:
        raise ValueError(f"divergence must be one of {DIVERGENCES}, got {divergence!r}.")
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
    literally is ``DDCLoss(bandwidth_rule="median", reduction="sum")``. ``start_balance`` is the weight of the second
    term when training starts, from which it falls to its own within the first third (see :meth:`at`). In the same third
    the sizes that clusters are drawn to go over from equal ones to ``cluster_sizes``: which cluster is to be the largest
    is better decided by clusters that exist than by the accidents of the start.

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
    divergence: DivergenceName = "cauchy_schwarz"
    cluster_sizes: tuple[float, ...] | None = None
    start_balance: float | None = None

    def __post_init__(self) -> None:
        if self.start_balance is not None:
            object.__setattr__(self, "start_balance", float(self.start_balance))
            if not 0 <= self.start_balance < float("inf"):
                raise ValueError(f"start_balance must be a non-negative number, got {self.start_balance!r}.")
        if self.cluster_sizes is not None:
            object.__setattr__(self, "cluster_sizes", shares(self.cluster_sizes))
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        object.__setattr__(self, "bandwidth", float(self.bandwidth))
        _check_choices(
            self.bandwidth, self.bandwidth_rule, self.reduction, self.terms, self.weights, self.divergence
        )

    @classmethod
    def paper(cls) -> Self:
        """The reading of the paper that comes closest to its results; docs/readings.md says which others were tried.

        Examples
        --------
        >>> DDCLoss.paper() == DDCLoss()
        True
        """
        return cls(bandwidth=0.15, bandwidth_rule="squared_median", reduction="mean")

    @classmethod
    def for_partners(cls, n_clusters: int) -> Self:
        """The loss that goes with partners (``augment``, ``neighbors``), which pull clusters together.

        The mean overlap of assignments has a weight of 50 at the start, since with a weight of 1 clusters merge, and
        of 5 later. The other two terms weigh (k - 1) / 4 times their means, half of what they would in the paper's text:
        with all of that one of five starts on MNIST was far behind after 400 iterations, with half of it none.

        Examples
        --------
        >>> DDCLoss.for_partners(10).weights
        (2.25, 5.0, 2.25)
        """
        divergence = (n_clusters - 1) / 4
        return cls(weights=(divergence, PARTNERS_BALANCE, divergence), start_balance=PARTNERS_START_BALANCE)

    @property
    def changes(self) -> bool:
        """Whether the loss changes in the first third of training."""
        return self.start_balance is not None or self.cluster_sizes is not None

    def at(self, progress: float) -> Self:
        """The loss at a moment of training, from 0 to 1.

        Examples
        --------
        >>> [round(DDCLoss(start_balance=10).at(moment).weights[1], 6) for moment in (0, 1 / 6, 1 / 3, 1)]
        [10.0, 5.5, 1.0, 1.0]
        >>> DDCLoss(cluster_sizes=(9, 1)).at(1 / 6).cluster_sizes
        (0.7, 0.3)
        """
        if not self.changes:
            return self
        still = max(1 - progress / BALANCE_FALLS_IN, 0.0)
        divergence, balance, corners = self.weights
        if self.start_balance is not None:
            balance += still * (self.start_balance - balance)
        sizes = self.cluster_sizes
        if sizes is not None:
            sizes = tuple(still / len(sizes) + (1 - still) * size for size in sizes)
        return replace(self, weights=(divergence, balance, corners), cluster_sizes=sizes, start_balance=None)

    def __call__(self, hidden: Tensor, assignments: Tensor) -> LossTerms:
        return ddc_loss(
            hidden,
            assignments,
            bandwidth=self.bandwidth,
            bandwidth_rule=self.bandwidth_rule,
            reduction=self.reduction,
            terms=self.terms,
            weights=self.weights,
            divergence=self.divergence,
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
    return tuple(sorted((size / sum(sizes) for size in sizes), reverse=True))
