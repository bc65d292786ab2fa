"""Learning rates over the course of training."""

import math

import numpy as np
import pytest

from ddclust import ConstantRate, CosineRate


def test_a_constant_rate():
    assert {ConstantRate(0.3).schedule(70)(iteration) for iteration in range(70)} == {0.3}


def test_a_cosine_starts_at_the_rate_and_falls_to_zero():
    rates = [CosineRate(0.3).schedule(100)(iteration) for iteration in range(101)]
    assert (rates[0], rates[100]) == (0.3, 0)
    assert (np.diff(rates) < 0).all()
    assert rates[25] == pytest.approx(0.3 * (1 + math.sqrt(0.5)) / 2)
    assert CosineRate(0.3).schedule(1)(0) == 0.3


@pytest.mark.parametrize("kind", [ConstantRate, CosineRate])
@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_impossible_rates_are_named(kind, rate):
    with pytest.raises(ValueError, match="learning rate must be a positive number, got"):
        kind(rate)


@pytest.mark.parametrize("kind", [ConstantRate, CosineRate])
def test_numbers_of_numpy_become_plain(kind):
    assert type(kind(np.float32(0.5)).rate) is float
    assert kind(1) == kind(1.0)
