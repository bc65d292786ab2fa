import itertools

import numpy as np
import pytest

from ddclust.choosing.metrics import (
    align_labels,
    are_right,
    clustering_accuracy,
    expected_calibration_error,
    nmi,
)


def brute_force_accuracy(y_true, y_pred):
    classes, clusters = np.unique(y_true), np.unique(y_pred)
    slots = [*classes, *[None] * len(clusters)]
    return max(
        np.mean(
            [dict(zip(clusters, names, strict=True))[c] == t for c, t in zip(y_pred, y_true, strict=True)]
        )
        for names in itertools.permutations(slots, len(clusters))
    )


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(3, 3), (2, 4), (4, 2), (3, 1)])
def test_accuracy_equals_trying_every_mapping(n_classes, n_clusters, rng):
    y_true, y_pred = rng.integers(n_classes, size=25), rng.integers(n_clusters, size=25)
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(brute_force_accuracy(y_true, y_pred))


def test_accuracy_by_hand():
    assert clustering_accuracy([0, 0, 0, 1, 1, 1], [2, 2, 5, 5, 5, 5]) == pytest.approx(5 / 6)


def test_nmi_is_normalised_by_the_arithmetic_mean():
    # I = H(c) = log 2 ... for l of four classes and c of two that merge pairs: I = log 2, H(l) = 2 log 2.
    assert nmi([0, 1, 2, 3], [0, 0, 1, 1]) == pytest.approx(2 / 3)


def test_alignment_undoes_a_permutation(rng):
    reference = rng.integers(6, size=200)
    permuted = rng.permutation(6)[reference]
    assert np.array_equal(align_labels(reference, permuted), reference)


def test_alignment_with_more_clusters_than_the_reference():
    assert align_labels([0, 0, 2, 2, 2], [4, 4, 3, 3, 1]).tolist() == [0, 0, 2, 2, 1]


def test_alignment_with_fewer_clusters_than_the_reference():
    assert align_labels([0, 0, 1, 2, 2], [9, 9, 9, 3, 3]).tolist() == [0, 0, 0, 2, 2]


@pytest.mark.parametrize("function", [clustering_accuracy, nmi, align_labels])
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [([0, 1], [0], "same items"), ([[0]], [[0]], "one-dimensional"), ([], [], "no labels")],
)
def test_wrong_labels_are_said(function, a, b, message):
    with pytest.raises(ValueError, match=message):
        function(a, b)


def test_alignment_wants_integers():
    with pytest.raises(ValueError, match="integers"):
        align_labels(["a"], ["b"])


def test_calibration_error_by_hand():
    truth, found = [0, 0, 0, 0, 1, 1], [5, 5, 5, 7, 7, 7]
    assert are_right(truth, found).tolist() == [True, True, True, False, True, True]
    # Bins of a half: two items of mean confidence .45, one of them right, and four of mean .9, all right.
    confidence = [0.4, 0.9, 0.9, 0.5 - 1e-9, 0.9, 0.9]
    expected = (2 * abs(0.45 - 0.5) + 4 * 0.1) / 6
    assert expected_calibration_error(truth, found, confidence, n_bins=2) == pytest.approx(expected)
    assert expected_calibration_error([0, 1], [0, 1], [1.0, 1.0]) == 0


def test_calibration_error_is_small_only_for_honest_confidence(rng):
    confidence = rng.uniform(0.5, 1, size=20_000)
    truth = np.where(rng.random(20_000) < confidence, 1, 0)
    clusters = np.ones(20_000, dtype=int)
    assert expected_calibration_error(truth, clusters, confidence) < 0.02
    assert expected_calibration_error(truth, clusters, np.ones(20_000)) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("confidence", "n_bins", "words"),
    [
        ([0.5], 15, "one confidence for each item"),
        ([0.5, 1.5], 15, "between 0 and 1"),
        ([0.5, 1], 0, "n_bins"),
    ],
)
def test_calibration_error_of_nonsense(confidence, n_bins, words):
    with pytest.raises(ValueError, match=words):
        expected_calibration_error([0, 1], [0, 1], confidence, n_bins=n_bins)
