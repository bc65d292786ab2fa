"""The second and third term of the loss, Eq. (4) of the paper, as pure functions.

The first is :func:`ddclust.objective.divergences.cauchy_schwarz_similarity`; the third applies it to
:func:`corner_closeness`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ddclust.objective.divergences import Reduction, reduction_factors


def orthogonality(
    A: Tensor, *, reduction: Reduction = "mean", cluster_sizes: Sequence[float] | None = None
) -> Tensor:
    """Inner products of the assignments of different points, triu(A A^T).

    It is smallest for clusters of equal size. With ``cluster_sizes`` the products are weighted, sum_i alpha_qi alpha_ri /
    (k s_i). For large n and certain assignments this is sum_i p_i^2 / s_i up to a factor, where p_i is the share of items
    in cluster i. By the Cauchy-Schwarz inequality it is smallest at p = s.

    Parameters
    ----------
    A : Tensor of shape (n, k)
    reduction : {"mean", "sum"}, default="mean"
        ``"sum"`` is the paper's text, about n^2/2 times the mean and at n = 100 some hundred times
        the other terms; ``"mean"``, over the n(n-1)/2 pairs of points, is the group's later code.
    cluster_sizes : sequence of k floats, optional
        Target shares of the clusters, largest first. The largest cluster of A gets the largest share, and so on.

    Returns
    -------
    Tensor, a scalar

    Examples
    --------
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> orthogonality(A, reduction="sum")
    tensor(1.)
    >>> orthogonality(A, reduction="sum", cluster_sizes=(2 / 3, 1 / 3))  # 1 / (2 * 2 / 3)
    tensor(0.7500)
    """
    n, k = A.shape
    # The sum over all pairs is |sum_q alpha_q|^2: the (n, n) matrix need not be formed.
    per_cluster = (A.sum(dim=0).square() - A.square().sum(dim=0)) / 2  # (k,)
    weights = size_weights(A.sum(dim=0), cluster_sizes)
    return (per_cluster * weights).sum() * reduction_factors(n, k, reduction)[1]


def size_weights(column_sums: Tensor, cluster_sizes: Sequence[float] | None) -> Tensor:
    """Weights 1 / (k s_i) of the clusters; the largest cluster gets the largest share s. All 1 without shares.

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
