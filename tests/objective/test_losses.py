import itertools
import math

import pytest
import torch

from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import (
    TERMS,
    DDCLoss,
    LossTerms,
    assignment_overlap,
    attraction,
    cauchy_schwarz_similarity,
    corner_closeness,
    cosine_kernel,
    ddc_loss,
    kullback_leibler_similarity,
    log_agreement,
    log_disagreement,
    repulsion,
)

DTYPES = [torch.float32, torch.float64]
RULES = ["squared_median", "median"]
REDUCTIONS = ["mean", "sum"]


def batch(n=9, d=4, k=3, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    H = torch.randn(n, d, dtype=dtype, generator=generator)
    A = torch.randn(n, k, dtype=dtype, generator=generator).softmax(dim=1)
    return H, A


# --- three points by hand ---------------------------------------------------------------------


def test_three_points_by_hand():
    # K = [[1, a, b], [a, 1, c], [b, c, 1]], points 0 and 1 in the first cluster, 2 in the second:
    # similarity = (b + c) / sqrt((2 + 2a) * 1).
    a, b, c = 0.5, 0.2, 0.1
    K = torch.tensor([[1, a, b], [a, 1, c], [b, c, 1]], dtype=torch.float64)
    A = torch.tensor([[1, 0], [1, 0], [0, 1]], dtype=torch.float64)
    expected = 0.3 / math.sqrt(3)
    assert cauchy_schwarz_similarity(A, K).item() == pytest.approx(expected)  # one pair: the mean is the sum
    assert cauchy_schwarz_similarity(A, K, reduction="sum").item() == pytest.approx(expected / 2)  # 1/k
    assert assignment_overlap(A, reduction="sum").item() == 1  # points 0 and 1
    assert assignment_overlap(A).item() == pytest.approx(1 / 3)  # of three pairs


def test_corner_closeness_by_hand():
    # The centre of the simplex with k = 2 has a squared distance of 1/2 to both corners.
    M = corner_closeness(torch.tensor([[0.5, 0.5], [0.0, 1.0]], dtype=torch.float64))
    expected = torch.tensor([[math.exp(-0.5), math.exp(-0.5)], [math.exp(-2), 1]], dtype=torch.float64)
    torch.testing.assert_close(M, expected)


# --- the formulas, term by term, in plain Python ----------------------------------------------


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

    overlap = sum(sum(A[q][i] * A[l][i] for i in range(k)) for q, l in itertools.combinations(range(n), 2))
    if reduction == "mean":
        overlap /= n * (n - 1) / 2
    M = [[math.exp(-sum((A[q][j] - (i == j)) ** 2 for j in range(k))) for i in range(k)] for q in range(n)]
    return similarity(A), overlap, similarity(M)


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


# --- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_assignments(rule, reduction):
    H, A = batch(n=6)
    A.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda A: sum(ddc_loss(H, A, bandwidth=0.5, bandwidth_rule=rule, reduction=reduction)), (A,)
    )


@pytest.mark.parametrize("function", [cauchy_schwarz_similarity, lambda A, K: assignment_overlap(A)])
def test_gradients_of_each_term(function):
    H, A = batch(n=6)
    K = gaussian_kernel(H, bandwidth=0.5).requires_grad_()
    assert torch.autograd.gradcheck(function, (A.requires_grad_(), K))


def test_gradient_of_the_kernel_with_a_fixed_bandwidth():
    from ddclust.objective.kernels import squared_distances

    H, _ = batch(n=6)
    H.requires_grad_()
    assert torch.autograd.gradcheck(lambda H: torch.exp(-squared_distances(H) / 2), (H,))


def composed_loss(H, A, rule, reduction):
    """The loss from the functions of one formula each, with the gradients that autograd finds."""
    K = gaussian_kernel(H, bandwidth=0.5, bandwidth_rule=rule)
    return (
        cauchy_schwarz_similarity(A, K, reduction=reduction),
        assignment_overlap(A, reduction=reduction),
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


# --- edges ------------------------------------------------------------------------------------


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
    whole, part = ddc_loss(H, A), DDCLoss(terms=terms)(H, A)
    for name in TERMS:
        assert getattr(part, name).item() == (getattr(whole, name).item() if name in terms else 0)


def test_weights_multiply_terms():
    H, A = batch()
    weights = (2.0, 0.0, 0.5)
    expected = [w * term.item() for w, term in zip(weights, ddc_loss(H, A), strict=True)]
    assert [t.item() for t in DDCLoss(weights=weights)(H, A)] == pytest.approx(expected)


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
        ({"terms": ()}, "terms"),
        ({"terms": ("divergance",)}, "divergance"),
        ({"weights": (1, 1)}, "weights"),
        ({"weights": (1, 1, -1)}, "weights"),
    ],
)
def test_wrong_choices_are_named(choices, named):
    with pytest.raises(ValueError, match=named):
        DDCLoss(**choices)


# --- the paper's other divergences ------------------------------------------------------------


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
    assert terms.orthogonality.item() == pytest.approx(assignment_overlap(A, reduction=reduction).item())


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


# --- pairs of items ---------------------------------------------------------------------------


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


def test_loss_for_partners_has_a_strong_balance():
    H, A = batch(n=12, k=5)
    loss, means = DDCLoss.for_partners(5), ddc_loss(H, A)
    terms = loss(H, A)
    sums = ddc_loss(H, A, reduction="sum")
    assert terms.divergence.item() == pytest.approx(sums.divergence.item() / 2)
    assert terms.corners.item() == pytest.approx(sums.corners.item() / 2)
    for moment, weight in ((0, 50), (1 / 6, 27.5), (1 / 3, 5), (1, 5)):
        orthogonality = loss.at(moment)(H, A).orthogonality.item()
        assert orthogonality == pytest.approx(weight * means.orthogonality.item())
    assert terms.orthogonality.item() == pytest.approx(5 * means.orthogonality.item())


def test_a_negative_start_balance_is_refused():
    with pytest.raises(ValueError, match="start_balance must be a non-negative number"):
        DDCLoss(start_balance=-1)


def naive_sized_overlap(A, sizes, reduction):
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
def test_overlap_towards_given_sizes_equals_a_naive_loop(reduction, divergence):
    generator = torch.Generator().manual_seed(0)
    H = torch.randn(9, 2, dtype=torch.float64, generator=generator)
    A = torch.rand(9, 4, dtype=torch.float64, generator=generator).softmax(dim=1)
    sizes = (1, 5, 2, 2)
    loss = DDCLoss(reduction=reduction, divergence=divergence, cluster_sizes=sizes, weights=(1, 3, 1))
    expected = naive_sized_overlap(A.tolist(), sizes, reduction)
    assert loss(H, A).orthogonality.item() == pytest.approx(3 * expected, rel=1e-12)


def test_gradients_towards_given_sizes():
    generator = torch.Generator().manual_seed(1)
    H = torch.randn(7, 2, dtype=torch.float64, generator=generator)
    logits = torch.randn(7, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    loss = DDCLoss(cluster_sizes=(0.6, 0.3, 0.1))
    assert torch.autograd.gradcheck(lambda x: sum(loss(H, x.softmax(dim=1))), (logits,))


def test_overlap_is_least_at_the_given_sizes():
    def certain(counts):
        return torch.nn.functional.one_hot(
            torch.repeat_interleave(torch.arange(3), torch.tensor(counts)), 3
        ).double()

    sizes = (0.6, 0.3, 0.1)
    values = {
        counts: assignment_overlap(certain(counts), cluster_sizes=sizes).item()
        for counts in [(600, 300, 100), (334, 333, 333), (500, 300, 200), (700, 250, 50), (1000, 0, 0)]
    }
    assert min(values, key=values.get) == (600, 300, 100)
    # Which cluster is which does not matter.
    assert assignment_overlap(certain((100, 600, 300)), cluster_sizes=sizes).item() == pytest.approx(
        values[600, 300, 100]
    )


def test_equal_sizes_are_the_paper_s_term():
    A = torch.rand(8, 3, dtype=torch.float64).softmax(dim=1)
    torch.testing.assert_close(assignment_overlap(A, cluster_sizes=(1 / 3,) * 3), assignment_overlap(A))


@pytest.mark.parametrize("sizes", [(), (1, 0), (1, -1), (1, float("nan"))])
def test_impossible_sizes_are_named(sizes):
    with pytest.raises(ValueError, match="cluster_sizes"):
        DDCLoss(cluster_sizes=sizes)


def test_as_many_sizes_as_clusters():
    with pytest.raises(ValueError, match="2 cluster_sizes for 3 clusters"):
        DDCLoss(cluster_sizes=(1, 2))(torch.randn(5, 2), torch.full((5, 3), 1 / 3))
