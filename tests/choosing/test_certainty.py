"""The most certain items, and the errors among them."""

import numpy as np
import pytest

from ddclust.choosing.certainty import risk_coverage


def test_errors_among_the_most_certain_by_a_loop(rng):
    confidence = rng.integers(5, 10, size=40) / 10
    right = rng.random(40) < confidence
    found = risk_coverage(confidence, right)
    for coverage, risk in zip(*found, strict=True):
        kept = confidence >= np.sort(confidence)[::-1][round(coverage * 40) - 1]
        assert kept.sum() == round(coverage * 40)  # equal ones are kept together
        assert risk == pytest.approx((~right[kept]).mean())
    assert found.coverage[-1] == 1


def test_wrong_shapes():
    with pytest.raises(ValueError, match="a value for each item"):
        risk_coverage([])
    with pytest.raises(ValueError, match="for each of 2 items"):
        risk_coverage([0.5, 0.6], [True])
