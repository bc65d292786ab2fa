"""The terms of pairs of items, against hand calculations and loops."""

import math

import pytest
import torch

from ddclust.objective.pairs import attraction, log_agreement, log_disagreement, repulsion
from helpers import DTYPES


def logits_of(*assignments):
    return torch.tensor(assignments, dtype=torch.float64).log()


def test_pairs_by_hand():
    first, second = logits_of([0.5, 0.5], [0.9, 0.1]), logits_of([0.2, 0.8], [0.3, 0.7])
    # The inner products are 0.1 + 0.4 and 0.27 + 0.07.
    assert log_agreement(first, second).exp().tolist() == pytest.approx([0.5, 0.34])
    assert log_disagreement(first, second).exp().tolist() == pytest.approx([0.5, 0.66])
    assert attraction(first, second).item() == pytest.approx(-(math.log(0.5) + math.log(0.34)) / 2)
    assert repulsion(first, second).item() == pytest.approx(-(math.log(0.5) + math.log(0.66)) / 2)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("n", "k"), [(7, 2), (4, 6)])
def test_pairs_equal_a_naive_loop(n, k, dtype, tolerance):
    generator = torch.Generator().manual_seed(1)
    first, second = (3 * torch.randn(n, k, dtype=torch.float64, generator=generator) for _ in range(2))
    A, B = first.softmax(dim=1).tolist(), second.softmax(dim=1).tolist()
    inner = [sum(a * b for a, b in zip(A[q], B[q], strict=True)) for q in range(n)]
    pull, push = attraction(first.to(dtype), second.to(dtype)), repulsion(first.to(dtype), second.to(dtype))
    assert pull.dtype == push.dtype == dtype
    assert pull.item() == pytest.approx(-sum(math.log(p) for p in inner) / n, rel=tolerance)
    assert push.item() == pytest.approx(-sum(math.log(1 - p) for p in inner) / n, rel=tolerance)


@pytest.mark.parametrize("function", [attraction, repulsion])
def test_gradients_of_pairs(function):
    generator = torch.Generator().manual_seed(2)
    pairs = tuple(torch.randn(5, 3, dtype=torch.float64, generator=generator).requires_grad_() for _ in "ab")
    assert torch.autograd.gradcheck(function, pairs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("function", "others"), [(attraction, [0.0, 300.0, 0.0]), (repulsion, [300.0, 0.0, 0.0])]
)
def test_pairs_that_are_as_wrong_as_can_be_are_still_moved(function, others, dtype):
    """Assignments of exactly 0 and 1 in floating point: the value is finite, the gradient does not vanish."""
    first = torch.tensor([[300.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    second = torch.tensor([others], dtype=dtype, requires_grad=True)
    value = function(first, second)
    value.backward()
    assert value.item() == pytest.approx(300, rel=0.01)
    for end in (first, second):
        assert torch.isfinite(end.grad).all()
        assert end.grad.abs().max() > 0.4
