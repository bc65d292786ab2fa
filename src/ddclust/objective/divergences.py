"""How similar the densities of clusters are: Cauchy-Schwarz, and the paper's alternatives of Section 5.5.

Letters are the paper's: ``A`` soft assignments (n, k), ``K`` kernel matrix (n, n).
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Reduction = Literal["mean", "sum"]
REDUCTIONS: tuple[str, ...] = get_args(Reduction)
DivergenceName = Literal["cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"]
DIVERGENCES: tuple[str, ...] = get_args(DivergenceName)
# The self-similarity of an empty cluster is raised to this value to avoid a division by zero.
EMPTY_CLUSTER = 1e-9


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
    return total * reduction_factors(len(A), k, reduction)[0]


def kullback_leibler_similarity(A: Tensor, K: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Similarity of the clusters by the symmetrised Kullback-Leibler divergence: exp(-(KL_ij + KL_ji) / 2).

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
    return total * reduction_factors(len(A), A.shape[1], reduction)[0]


def cosine_kernel(hidden: Tensor) -> Tensor:
    """Cosine similarities moved to [0, 1]: (1 + cos) / 2, of shape (n, n).

    Examples
    --------
    >>> cosine_kernel(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))[0]
    tensor([1.0000, 0.5000, 0.0000])
    """
    directions = torch.nn.functional.normalize(hidden, dim=1)
    return (1 + directions @ directions.T) / 2


def reduction_factors(n: int, k: int, reduction: Reduction) -> tuple[float, float]:
    """Factors of the sums over pairs of clusters and over pairs of items."""
    if reduction == "sum":
        return 1 / k, 1.0
    return 1 / max(k * (k - 1) / 2, 1), 1 / max(n * (n - 1) / 2, 1)
