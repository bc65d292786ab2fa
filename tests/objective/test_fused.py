"""The fused loss and its written-out gradients, against the functions of one formula each."""

import pytest
import torch

from ddclust.objective.divergences import cauchy_schwarz_similarity
from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import ddc_loss
from ddclust.objective.terms import corner_closeness, orthogonality
from helpers import REDUCTIONS, RULES, batch


def composed_loss(H, A, rule, reduction):
    """The loss from the functions of one formula each, with the gradients that autograd finds."""
    K = gaussian_kernel(H, bandwidth=0.5, bandwidth_rule=rule)
    return (
        cauchy_schwarz_similarity(A, K, reduction=reduction),
        orthogonality(A, reduction=reduction),
        cauchy_schwarz_similarity(corner_closeness(A), K, reduction=reduction),
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("factors", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2.0, -0.5, 3.0)])
@pytest.mark.parametrize("case", ["usual", "empty cluster", "one cluster", "two points coincide"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_loss_and_gradients_are_those_of_its_parts(rule, reduction, factors, case, dtype, tolerance):
    H, A = batch(n=11, k=1 if case == "one cluster" else 4, dtype=dtype)
    if case == "empty cluster":
        A[:, 2] = 0
    elif case == "two points coincide":
        H[3] = H[7]
    H.requires_grad_(), A.requires_grad_()
    ours = ddc_loss(H, A, bandwidth=0.5, bandwidth_rule=rule, reduction=reduction)
    parts = composed_loss(H, A, rule, reduction)
    torch.testing.assert_close(tuple(ours), parts, rtol=tolerance, atol=tolerance)
    gradients = [
        torch.autograd.grad(sum(f * t for f, t in zip(factors, terms, strict=True)), (H, A))
        for terms in (ours, parts)
    ]
    for mine, reference in zip(*gradients, strict=True):
        assert (mine - reference).norm() <= 10 * tolerance * max(reference.norm(), 1e-3)
