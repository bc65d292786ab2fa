import numpy as np
import pytest

from ddclust.choosing.consensus import (
    aligning_order,
    averaged_with_neighbors,
    combine,
    count_votes,
    majority_vote,
)


def test_majority_after_alignment():
    reference = [0, 0, 0, 1, 1, 2]
    same_renamed = [2, 2, 2, 0, 0, 1]
    one_off = [5, 5, 7, 7, 7, 9]
    assert majority_vote([reference, same_renamed, one_off]).tolist() == reference


def test_majority_outvotes_the_reference():
    assert majority_vote([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [3, 3, 3, 4, 4]]).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("column", "winner", "agreement"),
    [
        ([0], 0, 1),
        ([0, 1], 0, 1 / 2),
        ([0, 1, 2], 0, 1 / 3),
        ([0, 1, 1], 1, 2 / 3),
        ([0, 1, 0, 1], 0, 1 / 2),
        ([0, 1, 1, 2, 2], 0, 1 / 5),  # a tie that the reference is not part of goes to it all the same
        ([0, 1, 1, 2], 1, 2 / 4),
        ([2, 2, 2], 2, 1),
    ],
)
def test_votes_by_hand(column, winner, agreement):
    vote = count_votes(np.array(column)[:, None])
    assert vote.labels.tolist() == [winner]
    assert vote.agreement.tolist() == [pytest.approx(agreement)]


def test_votes_equal_counting_one_by_one(rng):
    aligned = rng.integers(0, 4, size=(5, 300))
    vote = count_votes(aligned)
    for votes, label, agreement in zip(aligned.T, *vote, strict=True):
        counts = np.bincount(votes)
        leaders = np.flatnonzero(counts == counts.max())
        expected = leaders[0] if len(leaders) == 1 else votes[0]
        assert (label, agreement) == (expected, counts[expected] / 5)


def test_aligning_order_undoes_a_permutation(rng):
    probabilities = rng.dirichlet(np.ones(5), size=200)
    permutation = rng.permutation(5)
    shuffled = probabilities[:, permutation]
    order = aligning_order(probabilities.argmax(1), shuffled.argmax(1), 5)
    np.testing.assert_array_equal(shuffled[:, order], probabilities)


def test_combined_assignments_agree_with_the_vote(rng):
    members = [rng.dirichlet(np.ones(4), size=500).astype(np.float32) for _ in range(3)]
    vote, probabilities = combine(members)
    assert np.array_equal(probabilities.argmax(axis=1), vote.labels)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_a_single_voter_is_left_as_it_is(rng):
    member = rng.dirichlet(np.ones(4), size=50).astype(np.float32)
    vote, probabilities = combine([member])
    assert np.array_equal(probabilities, member)
    assert (vote.agreement == 1).all()


def test_nothing_to_vote_on():
    with pytest.raises(ValueError, match="no labels"):
        majority_vote([])
    with pytest.raises(ValueError, match="2 and 1 items; give labels of the same items"):
        majority_vote([[0, 1], [0]])


def test_an_average_with_neighbours_equals_a_loop():
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(3), size=20)
    near = np.array([rng.choice(np.delete(np.arange(20), i), size=4, replace=False) for i in range(20)])
    expected = np.array([(A[i] + sum(A[j] for j in near[i])) / 5 for i in range(20)])
    np.testing.assert_allclose(averaged_with_neighbors(A, near), expected, rtol=1e-12)
