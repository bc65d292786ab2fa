import math

import pytest
import torch

from ddclust.objective.kernels import gaussian_kernel, median_bandwidth, squared_distances

DTYPES = [torch.float32, torch.float64]


def naive_squared_distances(H):
    n = len(H)
    return torch.tensor(
        [[sum((a - b) ** 2 for a, b in zip(H[i], H[j], strict=True)) for j in range(n)] for i in range(n)]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_equal_a_double_loop(dtype):
    H = torch.randn(7, 3, dtype=dtype, generator=torch.Generator().manual_seed(0))
    expected = naive_squared_distances(H.double().tolist())
    torch.testing.assert_close(squared_distances(H).double(), expected.double(), atol=1e-5, rtol=1e-5)


def test_distances_keep_their_digits_far_from_the_origin():
    H = torch.tensor([[1e4, 1e4], [1e4 + 3, 1e4 + 4]])
    assert squared_distances(H)[0, 1].item() == pytest.approx(25, rel=1e-4)


def test_distances_are_never_negative():
    H = torch.randn(200, 1).repeat(1, 50) * 1e-3 + 7
    assert squared_distances(H).min() >= 0


def test_distance_to_itself_is_exactly_zero():
    H = torch.randn(50, 20, generator=torch.Generator().manual_seed(0)) * 30 + 100
    assert squared_distances(H).diagonal().tolist() == [0.0] * 50


def test_kernel_at_the_median_distance_is_what_each_rule_says():
    # Distances 1, 2, 3: the median is 2.
    H = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    later_code = gaussian_kernel(H, bandwidth=0.15, bandwidth_rule="squared_median")
    text = gaussian_kernel(H, bandwidth=0.15, bandwidth_rule="median")
    assert later_code[1, 2].item() == pytest.approx(math.exp(-4 / (2 * 0.15 * 4)), rel=1e-9)
    assert text[1, 2].item() == pytest.approx(math.exp(-4 / (2 * (0.15 * 2) ** 2)), rel=1e-6)
    assert later_code[0, 1].item() == pytest.approx(math.exp(-1 / (2 * 0.15 * 4)), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_kernel_does_not_depend_on_the_scale(scale):
    H = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(gaussian_kernel(H * scale), gaussian_kernel(H))


@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_points_have_a_kernel_of_ones_and_finite_gradients(dtype):
    H = torch.full((5, 3), 2.0, dtype=dtype, requires_grad=True)
    K = gaussian_kernel(H)
    torch.testing.assert_close(K, torch.ones_like(K))
    K.sum().backward()
    assert torch.isfinite(H.grad).all()


def test_mostly_identical_points_still_have_a_scale():
    H = torch.tensor([[0.0]] * 8 + [[1.0]])
    K = gaussian_kernel(H)
    assert 0 < K[0, 8].item() < 1


def test_no_gradient_flows_through_the_bandwidth():
    # With a gradient through sigma, K would not change at all when the points are scaled.
    H = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(gaussian_kernel(H).sum(), H)
    assert (gradient * H).sum().item() < 0


def test_single_point():
    assert gaussian_kernel(torch.zeros(1, 2)).tolist() == [[1.0]]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 100])
def test_bandwidth_is_of_the_lower_middle_pair(n):
    squared = squared_distances(torch.randn(n, 3, generator=torch.Generator().manual_seed(n)))
    pairs = sorted(squared[i, j].item() for i in range(n) for j in range(i))
    assert median_bandwidth(squared, 1.0).item() == pytest.approx(pairs[(len(pairs) - 1) // 2], rel=1e-6)


def test_unknown_rule_is_named():
    with pytest.raises(ValueError, match="squared_median"):
        median_bandwidth(torch.zeros(2, 2), rule="mode")
