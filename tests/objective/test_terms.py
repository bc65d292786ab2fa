"""Orthogonality and closeness to corners, against hand calculations and loops."""

import math
from dataclasses import replace

import pytest
import torch

from ddclust.objective.loss import DDCLoss, shares
from ddclust.objective.terms import corner_closeness, orthogonality


def test_orthogonality_of_three_points_by_hand():
    A = torch.tensor([[1, 0], [1, 0], [0, 1]], dtype=torch.float64)
    assert orthogonality(A, reduction="sum").item() == 1  # points 0 and 1
    assert orthogonality(A).item() == pytest.approx(1 / 3)  # of three pairs


def test_corner_closeness_by_hand():
    # The centre of the simplex with k = 2 has a squared distance of 1/2 to both corners.
    M = corner_closeness(torch.tensor([[0.5, 0.5], [0.0, 1.0]], dtype=torch.float64))
    expected = torch.tensor([[math.exp(-0.5), math.exp(-0.5)], [math.exp(-2), 1]], dtype=torch.float64)
    torch.testing.assert_close(M, expected)


def naive_sized_orthogonality(A, sizes, reduction):
    """sum over pairs of items and clusters of alpha_qi alpha_ri / (k s_i), the largest cluster with the largest share."""
    n, k = len(A), len(A[0])
    sums = [sum(row[i] for row in A) for i in range(k)]
    order = sorted(range(k), key=lambda i: -sums[i])
    share = {cluster: sorted(sizes, reverse=True)[place] / sum(sizes) for place, cluster in enumerate(order)}
    total = sum(
        A[q][i] * A[r][i] / (k * share[i]) for q in range(n) for r in range(q + 1, n) for i in range(k)
    )
    return total if reduction == "sum" else total / (n * (n - 1) / 2)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("divergence", ["cauchy_schwarz", "kullback_leibler"])
def test_orthogonality_towards_given_sizes_equals_a_naive_loop(reduction, divergence):
    generator = torch.Generator().manual_seed(0)
    H = torch.randn(9, 2, dtype=torch.float64, generator=generator)
    A = torch.rand(9, 4, dtype=torch.float64, generator=generator).softmax(dim=1)
    sizes = (1, 5, 2, 2)
    loss = DDCLoss(
        reduction=reduction, divergence=divergence, cluster_sizes=sizes, weights={"orthogonality": 3}
    )
    expected = naive_sized_orthogonality(A.tolist(), sizes, reduction)
    assert loss(H, A).orthogonality.item() == pytest.approx(3 * expected, rel=1e-12)


def test_gradients_towards_given_sizes():
    generator = torch.Generator().manual_seed(1)
    H = torch.randn(7, 2, dtype=torch.float64, generator=generator)
    logits = torch.randn(7, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    loss = DDCLoss(cluster_sizes=(0.6, 0.3, 0.1))
    assert torch.autograd.gradcheck(lambda x: sum(loss(H, x.softmax(dim=1))), (logits,))


def test_orthogonality_is_least_at_the_given_sizes():
    def certain(counts):
        return torch.nn.functional.one_hot(
            torch.repeat_interleave(torch.arange(3), torch.tensor(counts)), 3
        ).double()

    sizes = (0.6, 0.3, 0.1)
    values = {
        counts: orthogonality(certain(counts), cluster_sizes=sizes).item()
        for counts in [(600, 300, 100), (334, 333, 333), (500, 300, 200), (700, 250, 50), (1000, 0, 0)]
    }
    assert min(values, key=values.get) == (600, 300, 100)
    # Which cluster is which does not matter.
    assert orthogonality(certain((100, 600, 300)), cluster_sizes=sizes).item() == pytest.approx(
        values[600, 300, 100]
    )


def test_equal_sizes_are_the_paper_s_term():
    A = torch.rand(8, 3, dtype=torch.float64).softmax(dim=1)
    torch.testing.assert_close(orthogonality(A, cluster_sizes=(1 / 3,) * 3), orthogonality(A))


@pytest.mark.parametrize("sizes", [(), (1, 0), (1, -1), (1, float("nan"))])
def test_impossible_sizes_are_named(sizes):
    with pytest.raises(ValueError, match="cluster_sizes"):
        DDCLoss(cluster_sizes=sizes)


@pytest.mark.parametrize("sizes", [(1, 2, 3), (0.7, 0.2, 0.1), (4, 3, 2, 1), tuple(range(1, 40))])
def test_sizes_become_shares_once(sizes):
    """Losses are copied again and again: their shares must not change by that, not even in the last digit."""
    once = shares(sizes)
    assert sum(once) == pytest.approx(1)
    assert list(once) == sorted(once, reverse=True)
    assert shares(once) == once
    loss = DDCLoss(cluster_sizes=sizes)
    assert replace(loss) == loss


def test_as_many_sizes_as_clusters():
    with pytest.raises(ValueError, match="2 cluster_sizes for 3 clusters"):
        DDCLoss(cluster_sizes=(1, 2))(torch.randn(5, 2), torch.full((5, 3), 1 / 3))
