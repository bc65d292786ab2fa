"""The loss and its choices, against loops, and at its limits."""

import itertools
import math

import pytest
import torch

from ddclust.defaults import default_weights
from ddclust.objective.divergences import cauchy_schwarz_similarity
from ddclust.objective.kernels import gaussian_kernel, squared_distances
from ddclust.objective.loss import TERMS, DDCLoss, LossTerms, ddc_loss
from ddclust.objective.terms import orthogonality
from helpers import DTYPES, REDUCTIONS, RULES, batch


def naive_loss(H, A, bandwidth, rule, reduction):
    """Eq. (4) with loops over Python floats."""
    n, k = len(A), len(A[0])
    distance = [[math.dist(H[q], H[l]) for l in range(n)] for q in range(n)]
    pairs = sorted(distance[q][l] for q, l in itertools.combinations(range(n), 2))
    median = pairs[(len(pairs) - 1) // 2]
    variance = bandwidth * median**2 if rule == "squared_median" else (bandwidth * median) ** 2
    K = [[math.exp(-(distance[q][l] ** 2) / (2 * variance)) for l in range(n)] for q in range(n)]

    def form(U, i, j):
        return sum(U[q][i] * K[q][l] * U[l][j] for q in range(n) for l in range(n))

    def similarity(U):
        total = sum(
            form(U, i, j) / math.sqrt(form(U, i, i) * form(U, j, j))
            for i, j in itertools.combinations(range(k), 2)
        )
        return total / (k if reduction == "sum" else k * (k - 1) / 2)

    orthogonal = sum(sum(A[q][i] * A[l][i] for i in range(k)) for q, l in itertools.combinations(range(n), 2))
    if reduction == "mean":
        orthogonal /= n * (n - 1) / 2
    M = [[math.exp(-sum((A[q][j] - (i == j)) ** 2 for j in range(k))) for i in range(k)] for q in range(n)]
    return similarity(A), orthogonal, similarity(M)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("n", "k"), [(9, 3), (5, 2), (12, 6)])
def test_loss_equals_a_naive_double_loop(n, k, rule, reduction, dtype):
    H, A = batch(n=n, k=k)
    terms = ddc_loss(H.to(dtype), A.to(dtype), bandwidth=0.4, bandwidth_rule=rule, reduction=reduction)
    expected = naive_loss(H.tolist(), A.tolist(), 0.4, rule, reduction)
    assert terms.divergence.dtype == dtype
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    assert [term.item() for term in terms] == pytest.approx(list(expected), rel=tolerance)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_assignments(rule, reduction):
    H, A = batch(n=6)
    A.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda A: sum(ddc_loss(H, A, bandwidth=0.5, bandwidth_rule=rule, reduction=reduction)), (A,)
    )


@pytest.mark.parametrize("function", [cauchy_schwarz_similarity, lambda A, K: orthogonality(A)])
def test_gradients_of_each_term(function):
    H, A = batch(n=6)
    K = gaussian_kernel(H, bandwidth=0.5).requires_grad_()
    assert torch.autograd.gradcheck(function, (A.requires_grad_(), K))


def test_gradient_of_the_kernel_with_a_fixed_bandwidth():
    H, _ = batch(n=6)
    H.requires_grad_()
    assert torch.autograd.gradcheck(lambda H: torch.exp(-squared_distances(H) / 2), (H,))


def test_clusters_and_points_can_be_permuted():
    H, A = batch(n=10, k=4)
    reference = ddc_loss(H, A)
    torch.testing.assert_close(ddc_loss(H, A[:, [2, 0, 3, 1]]), reference)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ddc_loss(H[order], A[order]), reference)


@pytest.mark.parametrize("seed", range(5))
def test_mean_terms_lie_between_zero_and_one(seed):
    H, A = batch(n=20, k=5, seed=seed)
    for term in ddc_loss(H, A):
        assert 0 <= term.item() <= 1 + 1e-9


def test_a_good_partition_beats_a_bad_one():
    H = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    good = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    bad = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    assert sum(ddc_loss(H, good)) < sum(ddc_loss(H, bad))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "case",
    ["one cluster", "points coincide", "all in one cluster", "one point", "half coincide", "huge", "tiny"],
)
def test_degenerate_batches_have_finite_values_and_gradients(case, rule, reduction, dtype):
    H, logits = torch.randn(8, 3, dtype=dtype), torch.randn(8, 4, dtype=dtype)
    if case == "one cluster":
        logits = logits[:, :1]
    elif case == "points coincide":
        H = torch.ones_like(H)
    elif case == "all in one cluster":
        logits = torch.zeros_like(logits)
        logits[:, 0] = 1e4  # the other assignments are exactly zero
    elif case == "one point":
        H, logits = H[:1], logits[:1]
    elif case == "half coincide":
        H[:6] = 1
    elif case == "huge":
        H = H * 1e15
    elif case == "tiny":
        H = H * 1e-15
    H, logits = H.clone().requires_grad_(), logits.clone().requires_grad_()
    terms = ddc_loss(H, logits.softmax(dim=1), bandwidth_rule=rule, reduction=reduction)
    sum(terms).backward()
    assert all(math.isfinite(term.item()) for term in terms)
    assert torch.isfinite(H.grad).all()
    assert torch.isfinite(logits.grad).all()


def test_one_cluster_has_no_divergence():
    H, _ = batch()
    terms = ddc_loss(H, torch.ones(len(H), 1, dtype=H.dtype))
    assert terms.divergence.item() == 0
    assert terms.corners.item() == 0


@pytest.mark.parametrize(
    "terms", [c for r in (1, 2, 3) for c in itertools.combinations(TERMS, r)], ids="+".join
)
def test_any_subset_of_terms(terms):
    H, A = batch()
    weights = {name: 1.0 if name in terms else 0.0 for name in TERMS}
    whole, part = ddc_loss(H, A), DDCLoss(weights=weights)(H, A)
    for name in TERMS:
        assert getattr(part, name).item() == (getattr(whole, name).item() if name in terms else 0)


def test_weights_multiply_terms():
    H, A = batch()
    weights = {"divergence": 2.0, "orthogonality": 0.0, "corners": 0.5}
    expected = [w * term.item() for w, term in zip(weights.values(), ddc_loss(H, A), strict=True)]
    assert [t.item() for t in DDCLoss(weights=weights)(H, A)] == pytest.approx(expected)
    assert DDCLoss(weights={"corners": 0.5})(H, A).corners.item() == pytest.approx(
        expected[2]
    )  # the rest is 1
    assert DDCLoss(weights={"corners": 0.5})(H, A).divergence == ddc_loss(H, A).divergence


def test_loss_holds_its_choices():
    H, A = batch()
    choices = {"bandwidth": 0.3, "bandwidth_rule": "median", "reduction": "sum"}
    assert DDCLoss(**choices)(H, A) == ddc_loss(H, A, **choices)
    assert isinstance(DDCLoss()(H, A), LossTerms)
    assert DDCLoss() == DDCLoss()


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": float("nan")}, "bandwidth"),
        ({"bandwidth_rule": "mode"}, "bandwidth_rule"),
        ({"reduction": "max"}, "reduction"),
        (
            {"weights": {"divergance": 1}},
            "weights must map names of terms .*divergance.* the terms are divergence, orth",
        ),
        ({"weights": (1, 1, 1)}, "weights must map names of terms to numbers"),
        ({"weights": {"corners": -1}}, "weights must be non-negative"),
        ({"weights": {"pairs": float("nan")}}, "weights must be non-negative"),
        ({"weights": {"must_link": float("inf")}}, "weights must be non-negative"),
        ({"start_weights": {"orthogonality": -1}}, "start_weights must be non-negative"),
        ({"start_weights": {"balance": 1}}, "start_weights must map names of terms .* the terms are"),
        ({"cluster_sizes": "kmeans"}, "cluster_sizes must be numbers or 'k-means', got 'kmeans'"),
    ],
)
def test_wrong_choices_are_named(choices, named):
    with pytest.raises(ValueError, match=named):
        DDCLoss(**choices)


def test_loss_with_pairs_has_a_strong_orthogonality():
    H, A = batch(n=12, k=5)
    weights, start_weights = default_weights(5, has_pairs=True)
    loss, means = DDCLoss(weights=weights, start_weights=start_weights), ddc_loss(H, A)
    terms = loss(H, A)
    sums = ddc_loss(H, A, reduction="sum")
    assert terms.divergence.item() == pytest.approx(sums.divergence.item() / 2)
    assert terms.corners.item() == pytest.approx(sums.corners.item() / 2)
    for moment, weight in ((0, 50), (1 / 6, 27.5), (1 / 3, 5), (1, 5)):
        orthogonality = loss.at(moment)(H, A).orthogonality.item()
        assert orthogonality == pytest.approx(weight * means.orthogonality.item())
    assert terms.orthogonality.item() == pytest.approx(5 * means.orthogonality.item())


def test_a_loss_without_start_stays_the_same():
    loss = DDCLoss(weights={"corners": 2})
    assert loss.settles_at == 0
    assert loss.at(0.1) is loss


def test_weights_and_sizes_change_linearly_until_the_loss_settles():
    loss = DDCLoss(start_weights={"pairs": 4.0, "orthogonality": 50}, cluster_sizes=[1, 3])
    assert loss.settles_at == pytest.approx(1 / 3)
    begun, halfway, settled = (loss.at(loss.settles_at * share) for share in (0, 0.5, 1))
    assert (begun.weights, begun.cluster_sizes) == ({"pairs": 4, "orthogonality": 50}, (0.5, 0.5))
    assert halfway.weights == pytest.approx({"pairs": 2.5, "orthogonality": 25.5})
    assert halfway.cluster_sizes == pytest.approx((0.625, 0.375))
    assert settled.weights == {"pairs": 1, "orthogonality": 1}
    assert settled.cluster_sizes == (0.75, 0.25)
    assert loss.at(1) == settled


def test_by_itself_it_is_the_final_form():
    H, A = batch(k=2)
    loss = DDCLoss(start_weights={"orthogonality": 50}, cluster_sizes=[1, 3])
    assert loss(H, A) == loss.at(1)(H, A) != loss.at(0)(H, A)


def test_the_paper_s_loss_says_so():
    H, A = batch()
    assert DDCLoss.paper()(H, A) == ddc_loss(H, A)
    assert DDCLoss.paper().weights == dict.fromkeys(TERMS, 1.0)
