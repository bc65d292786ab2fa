"""scikit-learn's own checks of every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddclust import DDC
from ddclust.baselines import ITC

# Quick settings of the real estimator; nothing else is changed.
ESTIMATORS = [
    DDC(n_clusters=3, n_init=1, max_iter=120, learning_rate=1e-3, random_state=0),
    ITC(n_clusters=3, n_init=1, random_state=0),
    ITC(n_clusters=3, n_init=1, density="parzen", random_state=0),
]
REASON = "the check takes whatever has predict_proba for a classifier; tests/test_items.py fits sparse data"
EXPECTED_FAILURES = {
    "DDC": {"check_estimator_sparse_matrix": REASON, "check_estimator_sparse_array": REASON},
}


@pytest.mark.filterwarnings("ignore:The clustering uses")
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {})
)
def test_scikit_learn(estimator, check):
    check(estimator)
