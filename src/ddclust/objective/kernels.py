"""Pairwise distances and the Gaussian kernel on a batch's hidden representation."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

BandwidthRule = Literal["squared_median", "median"]
BANDWIDTH_RULES: tuple[str, ...] = get_args(BandwidthRule)


def squared_distances(H: Tensor) -> Tensor:
    """Squared Euclidean distances between the rows of a matrix.

    Parameters
    ----------
    H : Tensor of shape (n, d)

    Returns
    -------
    Tensor of shape (n, n)
        Non-negative, with a diagonal of zeros.

    Examples
    --------
    >>> squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[ 0., 25.],
            [25.,  0.]])
    """
    return squared_distances_of_centred(centred(H))


def centred(H: Tensor) -> Tensor:
    """The rows of a matrix less their mean, which carries no gradient.

    Examples
    --------
    >>> centred(torch.tensor([[0.0], [4.0]]))
    tensor([[-2.],
            [ 2.]])
    """
    return H - H.mean(dim=0).detach()


def squared_distances_of_centred(H: Tensor) -> Tensor:
    """:func:`squared_distances` of rows that lie around the origin.

    The expansion ``|x|^2 - 2xy + |y|^2`` is a single matrix product, but loses digits far from there.
    """
    G = H @ H.T  # (n, n): inner products, on the diagonal those of each row with itself
    norms = G.diagonal()
    return (norms[:, None] + norms).sub(G, alpha=2).clamp_min(0)


def median_bandwidth(
    squared: Tensor, bandwidth: float = 0.15, rule: BandwidthRule = "squared_median"
) -> Tensor:
    """The kernel's sigma^2, from the median of the pairwise distances. No gradient flows through it.

    Parameters
    ----------
    squared : Tensor of shape (n, n)
        Squared distances.
    bandwidth : float
        The fraction of the median; the paper's is 0.15.
    rule : {"squared_median", "median"}
        See :func:`gaussian_kernel`.

    Returns
    -------
    Tensor, a positive scalar

    Examples
    --------
    >>> d2 = squared_distances(torch.tensor([[0.0], [1.0], [3.0]]))  # distances 1, 2, 3
    >>> median_bandwidth(d2, 0.5)
    tensor(2.)
    >>> median_bandwidth(d2, 0.5, "median")
    tensor(1.)
    """
    if rule not in BANDWIDTH_RULES:
        raise ValueError(f"bandwidth_rule must be one of {BANDWIDTH_RULES}, got {rule!r}.")
    n = len(squared)
    tiny = torch.finfo(squared.dtype).tiny ** 0.5
    if n < 2:
        return squared.new_tensor(1.0)
    # In order, the matrix has its diagonal of n zeros first and then every pair twice.
    middle = n + 2 * ((n * (n - 1) // 2 - 1) // 2)
    # Numpy selects in half of torch's time, less for large n, and the pairs need not be gathered first.
    values = squared.detach().cpu().numpy()
    median = float(np.partition(values, middle, axis=None)[middle])
    # Departs from the paper: where more than half of the pairs coincide the median is zero and says
    # nothing about the scale of the rest; the mean does.
    if median <= tiny:
        median = float(values.sum(dtype=np.float64)) / (n * (n - 1))
    sigma_squared = bandwidth * median if rule == "squared_median" else bandwidth**2 * median
    return squared.new_tensor(max(sigma_squared, tiny))


def gaussian_kernel(
    hidden: Tensor, *, bandwidth: float = 0.15, bandwidth_rule: BandwidthRule = "squared_median"
) -> Tensor:
    """Gaussian kernel matrix ``exp(-|h_i - h_j|^2 / (2 sigma^2))`` with a bandwidth from the batch.

    Parameters
    ----------
    hidden : Tensor of shape (n, d)
    bandwidth : float, default=0.15
        The fraction of the median distance that makes the bandwidth.
    bandwidth_rule : {"squared_median", "median"}, default="squared_median"
        ``"median"`` is the paper's text: sigma is 15 % of the median pairwise distance, so that the
        kernel is 2e-10 at the median distance. ``"squared_median"`` is the same group's later public
        code: sigma^2 is 15 % of the median *squared* distance, 0.036 at the median distance.

    Returns
    -------
    Tensor of shape (n, n)

    Examples
    --------
    >>> K = gaussian_kernel(torch.tensor([[0.0], [1.0]]))
    >>> round(K[0, 1].item(), 3)
    0.036
    """
    squared = squared_distances(hidden)
    sigma_squared = median_bandwidth(squared, bandwidth, bandwidth_rule)
    return torch.exp(squared / (-2 * sigma_squared))
