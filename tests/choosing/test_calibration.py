"""Calibration: worked out by hand, and by drawing runs whose accuracy is known."""

import numpy as np
import pytest

from ddclust.choosing.calibration import (
    HIGHEST,
    Calibration,
    confirmed,
    confirmed_by_runs,
    fitted_temperature,
    run_weights,
    tempered,
)


def assignments(rng, n=500, k=4, sharpness=6.0):
    logits = sharpness * rng.normal(size=(n, k))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32)


def test_tempering_is_a_softmax_of_divided_logits(rng):
    p = assignments(rng).astype(np.float64)
    expected = p ** (1 / 3)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tempered(p.astype(np.float32), 3.0), expected, atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 1.7, 30.0, HIGHEST])
def test_the_largest_stays_the_largest(rng, temperature):
    p = assignments(rng, sharpness=30.0)
    # The difference is in the last digit, where a root makes both equal.
    p[0] = [np.nextafter(np.float32(0.25), np.float32(1)), 0.25, 0.25, 0.25]
    p[1] = p[0][::-1]
    p[2] = [0, 0, 1, 0]
    found = tempered(p, temperature)
    assert found.dtype == np.float32
    assert np.array_equal(found.argmax(axis=1), p.argmax(axis=1))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_an_item_does_not_depend_on_the_others(rng):
    p = assignments(rng, n=37, k=7)
    singly = np.concatenate([tempered(row[None], 2.3) for row in p])
    assert np.array_equal(singly, tempered(p, 2.3))


def test_a_bad_run_hardly_counts(rng):
    truth = rng.integers(5, size=1000)
    good = [np.where(rng.random(1000) < 0.95, truth, rng.integers(5, size=1000)) for _ in range(3)]
    weights = run_weights(np.stack([*good, rng.integers(5, size=1000)]))
    assert weights[:3] == pytest.approx([1 / 3] * 3, abs=0.1)
    assert weights[3] < 1e-6


def test_runs_that_never_agree_count_alike():
    assert run_weights(np.array([[0, 0], [1, 1], [2, 2]])) == pytest.approx([1 / 3] * 3)


def test_confirmed_by_all_but_the_first_run_of_that_label():
    aligned = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 1], [0, 1, 0]])
    weights = run_weights(aligned)
    found = confirmed_by_runs(aligned, np.array([0, 1, 1]))
    assert found[0] == pytest.approx(1)
    assert found[1] == pytest.approx((weights[2] + weights[3]) / (1 - weights[1]))  # the vote overruled run 0
    assert found[2] == pytest.approx((weights[1] + weights[2]) / (1 - weights[0]))


def test_copies_count_like_a_run():
    by_runs, by_copies = np.array([0.6]), np.array([1.0])
    assert confirmed(by_runs, by_copies, 4) == pytest.approx([0.7])
    assert confirmed(by_runs, None, 4) == pytest.approx([0.6])
    assert confirmed(None, by_copies, 1) == pytest.approx([1.0])
    assert confirmed(None, None, 1) is None


def test_the_temperature_that_made_them_too_certain_is_found(rng):
    honest = assignments(rng, n=4000, sharpness=1.5)
    boastful = tempered(honest, 1 / 3)
    labels = honest.argmax(axis=1)
    assert fitted_temperature(boastful, labels, honest.max(axis=1).astype(float)) == pytest.approx(
        3, rel=0.02
    )


def test_nothing_is_made_more_certain(rng):
    p = assignments(rng, sharpness=1.0)
    assert fitted_temperature(p, p.argmax(axis=1), np.ones(len(p))) == 1.0
    assert Calibration()(p) is p


@pytest.mark.parametrize("wrong", [{"temperature": 0.5}, {"temperature": float("nan")}, {"basis": "luck"}])
def test_wrong_calibrations_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Calibration(**wrong)
