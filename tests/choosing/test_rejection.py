"""Refusing items: the share that is refused, and what must be."""

import numpy as np
import pytest

from ddclust.choosing.rejection import KnownItems, nearest_distance

CENTRES = np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 0]])


def items(rng, n=3000, d=3):
    """Three groups with an own spread in each direction, and confidences."""
    outputs = rng.integers(3, size=n)
    hidden = CENTRES[outputs][:, :d] + rng.normal(size=(n, d)) * [1.0, 0.1, 3.0][:d]
    contrast = rng.uniform(1, 2, size=n)
    return (
        hidden.astype(np.float32),
        outputs,
        rng.beta(5, 1, size=n).astype(np.float32),
        contrast.astype(np.float32),
    )


def test_distances_by_hand():
    found = nearest_distance(np.array([[2.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 1.0]]), np.diag([0.5, 1.0]))
    assert found.tolist() == pytest.approx([1.0])  # whitened to (1, 0)


@pytest.mark.parametrize("reject", [0.0, 0.01, 0.05, 0.3])
def test_new_items_of_the_same_kind_are_refused_as_often_as_asked(rng, reject):
    known = KnownItems.of(*items(rng), n_outputs=3)
    hidden, _, confidence, contrast = items(rng, n=5000)
    assert known.refused(confidence, hidden, contrast, reject).mean() == pytest.approx(reject, abs=0.015)


def test_what_is_far_away_or_doubtful_is_refused(rng):
    known = KnownItems.of(*items(rng), n_outputs=3)
    far = np.array([[0, 5, 0], [4.5, 0, 0], [1e6, 1e6, 1e6], [0, 0, 20]], dtype=np.float32)
    assert known.refused(np.ones(4), far, np.full(4, 1.5), 0.05).all()  # however certain
    near = CENTRES.astype(np.float32)
    usual = np.full(3, 1.5)
    assert not known.refused(np.ones(3), near, usual, 0.05).any()
    assert known.refused(np.full(3, 0.1), near, usual, 0.05).all()
    assert known.refused(np.ones(3), near, np.zeros(3), 0.05).all()  # of a single colour
    assert known.refused(np.ones(3), near, np.full(3, 2.5), 0.05).all()


def test_outputs_without_items_and_constant_features(rng):
    hidden, outputs, confidence, contrast = items(rng, n=400)
    hidden = np.column_stack([hidden, np.ones(400, dtype=np.float32)])  # never varies
    known = KnownItems.of(hidden, outputs, confidence, contrast, n_outputs=5)
    assert known.means.shape == (5, 4)
    assert np.isfinite(known.means).all()
    assert np.isfinite(known.whitening).all()
    changed = hidden[:3] + np.array([0, 0, 0, 5], dtype=np.float32)
    assert known.refused(np.ones(3), changed, np.full(3, 1.5), 0.05).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_items(n):
    known = KnownItems.of(
        np.zeros((n, 2), dtype=np.float32),
        np.zeros(n, dtype=int),
        np.ones(n, dtype=np.float32),
        np.zeros(n, dtype=np.float32),
        n_outputs=2,
    )
    assert not known.refused(np.ones(1), np.zeros((1, 2), dtype=np.float32), np.zeros(1), 0.05).any()
