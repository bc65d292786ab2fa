"""scikit-learn's own checks of every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddclust import DDC
from ddclust.baselines import DEC, ITC, LDMGI, SEC

# Quick settings of the real estimators; nothing else is changed.
ESTIMATORS = [
    DDC(n_clusters=3, n_init=1, max_iter=120, learning_rate=1e-3, random_state=0),
    DDC(
        n_clusters=4,
        n_init=2,
        selection="agreement",
        max_iter=120,
        learning_rate=1e-3,
        random_state=0,
        n_jobs=1,
    ),
    DEC(n_clusters=3, layers=(20, 5), layer_iter=60, finetune_iter=60, max_iter=100, random_state=0),
    ITC(n_clusters=3, n_init=1, random_state=0),
    ITC(n_clusters=3, n_init=1, density="parzen", random_state=0),
    LDMGI(n_clusters=3, random_state=0),
    SEC(n_clusters=3, random_state=0),
]
REASON = (
    "the check takes whatever has predict_proba for a classifier; tests/data/test_items.py fits sparse data"
)
DRAWN = "items are drawn by weight, so weights are the same as repeated items on average, not exactly"
EXPECTED_FAILURES = {
    "check_estimator_sparse_matrix": REASON,
    "check_estimator_sparse_array": REASON,
    "check_sample_weight_equivalence_on_dense_data": DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN,
}


def expected_failures(estimator):
    return EXPECTED_FAILURES if hasattr(estimator, "predict_proba") else {}


@pytest.mark.filterwarnings("ignore:The clustering uses")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)
