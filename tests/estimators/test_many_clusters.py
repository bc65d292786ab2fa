"""Many clusters: none stays empty, and up to twelve nothing has changed."""

import numpy as np
import pytest
import scipy.sparse

from ddclust import DDC, DDCLoss
from ddclust.defaults import default_weights

START = {"orthogonality": 50.0}


@pytest.mark.parametrize("k", [1, 2, 10, 12])
def test_few_clusters_have_the_weights_that_they_had(k):
    weights, start = default_weights(k, has_pairs=True)
    assert (weights["orthogonality"], start) == (5.0, START)
    assert default_weights(3 * k, has_pairs=True, n_wanted=k)[0]["orthogonality"] == 5.0
    assert default_weights(k, has_pairs=True, has_sizes=True)[0]["orthogonality"] == 25.0


def test_many_clusters_have_a_stronger_orthogonality():
    found = [default_weights(k, has_pairs=True) for k in (12, 48, 108)]
    assert [weights["orthogonality"] for weights, _ in found] == pytest.approx([5, 40, 135])
    assert [start["orthogonality"] for _, start in found] == pytest.approx([50, 400, 1350])
    assert default_weights(48, has_pairs=False)[0]["orthogonality"] == 1.0


@pytest.mark.parametrize(
    ("options", "weight"),
    [
        ({"n_clusters": 12}, 5.0),
        ({"n_clusters": 48}, 40.0),
        ({"n_clusters": 48, "n_final": 12}, 5.0),  # what is left after merging decides
        ({"n_clusters": 48, "n_final": None}, 40.0),
    ],
)
@pytest.mark.parametrize("shape", [(1000, 5), (1000, 8, 8)])
def test_the_weight_of_a_fit(options, weight, shape, rng):
    model = DDC(**options, anchor=None)
    setup = model._plan(model._items(rng.random(shape))).setup
    assert setup.loss.weights["orthogonality"] == pytest.approx(weight)
    if setup.fine is not None:
        assert setup.fine.loss.weights["orthogonality"] == pytest.approx(weight)
        assert setup.fine.loss.start_weights["orthogonality"] == pytest.approx(10 * weight)


@pytest.mark.slow
def test_more_of_fifty_clusters_are_used_than_with_a_constant_weight():
    random = np.random.default_rng(0)
    topics = random.dirichlet(np.full(300, 0.05), size=8)  # fewer kinds than clusters
    counts = np.stack([random.multinomial(60, topics[item % 8]) for item in range(600)])
    X = scipy.sparse.csr_array(counts.astype(np.float32))
    constant = DDCLoss(weights={"orthogonality": 5}, start_weights=START)
    used = [
        len(
            np.unique(
                DDC(50, loss=loss, n_init=1, max_iter=200, random_state=0, n_jobs=1, verbose=False)
                .fit(X)
                .labels_
            )
        )
        for loss in ("auto", constant)
    ]
    assert used[0] > used[1]
