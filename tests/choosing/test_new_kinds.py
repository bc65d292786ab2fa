"""New kinds: what is one, how many there are, and what is none."""

import numpy as np
import pytest

from ddclust.choosing.new_kinds import are_own, new_kinds, prediction_strength

KNOWN = np.array([[0.0, 0, 0, 0], [12, 0, 0, 0]])


def around(rng, centre, n):
    return rng.normal(centre, 1, (n, 4))


@pytest.mark.parametrize("n_kinds", [1, 2, 3])
def test_groups_are_counted(rng, n_kinds):
    centres = np.array([[0, 12, 0, 0], [0, 0, 12, 0], [0, 0, 0, 12.0]])[:n_kinds]
    sizes = [40, 80, 60][:n_kinds]
    known = around(rng, KNOWN[0], 300)
    new = np.concatenate([around(rng, c, n) for c, n in zip(centres, sizes, strict=True)])
    found = new_kinds(np.concatenate([known, new]), np.arange(300 + len(new)) >= 300, KNOWN)
    assert found.sizes == sorted(sizes, reverse=True)
    assert (found.groups[:300] == -1).all()


def test_odd_items_of_known_kinds_are_no_new_kind(rng):
    odd = rng.normal(
        0, 1, (400, 100)
    )  # as unlike as anything in so many dimensions, but around what is known
    assert new_kinds(odd, np.ones(400, dtype=bool), np.zeros((1, 100))).n_groups == 0


@pytest.mark.parametrize("d", [2, 10])
def test_one_kind_is_not_divided(rng, d):
    new = rng.normal(9, [1] * (d - 1) + [3], (300, d))  # longer than it is wide
    assert new_kinds(new, np.ones(300, dtype=bool), np.zeros((1, d))).n_groups == 1


def test_chance_and_few_items_give_no_alarm(rng):
    white = np.concatenate([around(rng, KNOWN[0], 950), around(rng, 20, 50)])
    unlike = np.arange(1000) >= 950
    assert new_kinds(white, unlike, KNOWN).n_groups == 0  # one in twenty
    assert new_kinds(white[-10:], unlike[-10:], KNOWN).n_groups == 0


def test_a_number_that_is_wanted_is_given(rng):
    white = around(rng, 20, 50)
    assert new_kinds(white, np.ones(50, dtype=bool), KNOWN, n_wanted=3).n_groups == 3
    with pytest.raises(ValueError, match="Only 2 of 50 items.*new_clusters=3"):
        new_kinds(white, np.arange(50) < 2, KNOWN, n_wanted=3)


def test_own_items_by_hand():
    rows, parts = np.array([[8.0], [10.0], [3.0]]), np.zeros(3, dtype=int)
    # Without the item the means are 6.5, 5.5 and 9; the known mean is 0.
    assert are_own(rows, parts, np.zeros((1, 1))).tolist() == [True, True, False]


def test_prediction_strength_of_separate_groups_and_of_one(rng):
    apart = np.concatenate([around(rng, 0, 60), around(rng, 9, 60)])
    assert prediction_strength(apart, 2) == 1
    assert prediction_strength(rng.normal(size=(120, 8)), 3) < 0.8
