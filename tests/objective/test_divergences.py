"""How similar clusters are, against hand calculations and loops."""

import itertools
import math

import pytest
import torch

from ddclust.objective.divergences import (
    cauchy_schwarz_similarity,
    cosine_kernel,
    kullback_leibler_similarity,
)
from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import DDCLoss, ddc_loss
from ddclust.objective.terms import corner_closeness, orthogonality
from helpers import REDUCTIONS, batch


def test_three_points_by_hand():
    # K = [[1, a, b], [a, 1, c], [b, c, 1]], points 0 and 1 in the first cluster, 2 in the second:
    # similarity = (b + c) / sqrt((2 + 2a) * 1).
    a, b, c = 0.5, 0.2, 0.1
    K = torch.tensor([[1, a, b], [a, 1, c], [b, c, 1]], dtype=torch.float64)
    A = torch.tensor([[1, 0], [1, 0], [0, 1]], dtype=torch.float64)
    expected = 0.3 / math.sqrt(3)
    assert cauchy_schwarz_similarity(A, K).item() == pytest.approx(expected)  # one pair: the mean is the sum
    assert cauchy_schwarz_similarity(A, K, reduction="sum").item() == pytest.approx(expected / 2)  # 1/k


def naive_kl_similarity(A, K, reduction):
    n, k = A.shape
    mass = [sum(A[q, i] for q in range(n)) for i in range(k)]

    def density(i, q):
        return sum(K[q, r] * A[r, i] for r in range(n)) / mass[i]

    def kl(i, j):
        return sum(A[q, i] / mass[i] * math.log(density(i, q) / density(j, q)) for q in range(n))

    pairs = list(itertools.combinations(range(k), 2))
    total = sum(math.exp(-(kl(i, j) + kl(j, i)) / 2) for i, j in pairs)
    return total / (len(pairs) if reduction == "mean" else k)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("divergence", ["kullback_leibler", "kullback_leibler_cosine"])
def test_kl_loss_equals_a_naive_double_loop(divergence, reduction):
    H, A = batch()
    K = cosine_kernel(H) if divergence.endswith("cosine") else gaussian_kernel(H)
    terms = ddc_loss(H, A, divergence=divergence, reduction=reduction)
    assert terms.divergence.item() == pytest.approx(naive_kl_similarity(A, K, reduction), rel=1e-9)
    M = corner_closeness(A)
    assert terms.corners.item() == pytest.approx(naive_kl_similarity(M, K, reduction), rel=1e-9)
    assert terms.orthogonality.item() == pytest.approx(orthogonality(A, reduction=reduction).item())


def test_two_points_of_kl_by_hand():
    # Each cluster is one point: p_0 = (1, a), p_1 = (a, 1), so both KL are log(1 / a), and the similarity is a.
    a = 0.25
    K = torch.tensor([[1, a], [a, 1]], dtype=torch.float64)
    assert kullback_leibler_similarity(torch.eye(2, dtype=torch.float64), K).item() == pytest.approx(a)


def test_cosine_kernel_by_a_loop():
    H, _ = batch()
    K = cosine_kernel(H)
    for i, j in itertools.product(range(len(H)), repeat=2):
        cosine = sum(H[i] * H[j]) / math.sqrt(sum(H[i] ** 2) * sum(H[j] ** 2))
        assert K[i, j].item() == pytest.approx((1 + cosine.item()) / 2)


@pytest.mark.parametrize("divergence", ["kullback_leibler", "kullback_leibler_cosine"])
def test_gradients_of_kl(divergence):
    H, A = batch(n=6)
    H.requires_grad_(), A.requires_grad_()
    # The bandwidth of the Gaussian kernel carries no gradient, so only the assignments can be checked with it.
    checked = (H, A) if divergence.endswith("cosine") else (A,)
    torch.autograd.gradcheck(
        lambda *inputs: sum(
            ddc_loss(*((H, A) if len(inputs) == 2 else (H.detach(), *inputs)), divergence=divergence)
        ),
        checked,
    )


@pytest.mark.parametrize("divergence", ["kullback_leibler", "kullback_leibler_cosine"])
@pytest.mark.parametrize("case", ["empty cluster", "all alike", "zeros"])
def test_kl_is_finite_with_finite_gradients(divergence, case):
    H, A = batch(n=8, dtype=torch.float32)
    if case == "empty cluster":
        A = torch.eye(3)[torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])]
    if case == "all alike":
        H = torch.ones_like(H)
    if case == "zeros":
        H = torch.zeros_like(H)
    H.requires_grad_(), A.requires_grad_()
    sum(DDCLoss(divergence=divergence)(H, A)).backward()
    assert torch.isfinite(H.grad).all()
    assert torch.isfinite(A.grad).all()


def test_wrong_divergence_is_named():
    with pytest.raises(ValueError, match="divergence must be one of .* got 'euclid'"):
        DDCLoss(divergence="euclid")
