"""The three terms of the loss with the Cauchy-Schwarz divergence as one autograd function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ddclust.objective.divergences import EMPTY_CLUSTER
from ddclust.objective.kernels import (
    BandwidthRule,
    centred,
    median_bandwidth,
    squared_distances_of_centred,
)
from ddclust.objective.terms import corner_closeness, size_weights


class WeightedTerms(torch.autograd.Function):
    """``factors`` times the similarity of A's columns, the orthogonality of its rows, the similarity of M's columns.

    The functions in :mod:`ddclust.objective.divergences` and :mod:`ddclust.objective.terms` compute the same, one formula
    each. Batches are small, so most of their cost is autograd's bookkeeping. Here the gradients are written out, and A
    and M = ``corner_closeness(A)`` share their matrix products as U = [A, M].

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
            orthogonality = (column_sums.dot(column_sums) - A.square().sum()) / 2
        else:
            weights = size_weights(column_sums, cluster_sizes)
            orthogonality = weights.dot(column_sums.square() - A.square().sum(dim=0)) / 2
        ctx.save_for_backward(H, K, U, KU, S, R, C, column_sums, weights)
        return factors[0] * C[:k, :k].sum(), factors[1] * orthogonality, factors[2] * C[k:, k:].sum()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_divergence: Tensor, by_orthogonality: Tensor, by_corners: Tensor
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
        by_A += factors[1] * by_orthogonality * (others if weights is None else others * weights)
        return by_hidden, by_A, None, None, None, None
