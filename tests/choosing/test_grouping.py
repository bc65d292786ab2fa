"""Merging by pairs: against all groupings, with empty clusters, and as a tree."""

import itertools

import numpy as np
import pytest

from ddclust.choosing.grouping import _parted, merged_by_pairs, pair_counts
from ddclust.choosing.merging import merge_tree, merged_groups
from helpers import quick


def same_partition(first, second):
    return len({*zip(first, second, strict=True)}) == len(set(first)) == len(set(second))


@pytest.mark.parametrize("seed", range(6))
def test_no_grouping_is_better(seed):
    rng = np.random.default_rng(seed)
    P = rng.random((6, 6)) ** 4 + 3 * np.diag(rng.random(6))
    P = (P + P.T) / 2
    found = merged_by_pairs(P, P, 3)
    costs = [_parted(P / P.sum(), np.array(g), 3) for g in itertools.product(range(3), repeat=6)]
    assert _parted(P / P.sum(), found, 3) == pytest.approx(min(costs))


def test_separate_clusters_of_any_sizes_stay_apart():
    # Halves of a class of 850, parts of one of 120, and one of 30.
    P = np.array(
        [[400.0, 25, 0, 0, 0], [25, 400, 0, 0, 0], [0, 0, 60, 10, 0], [0, 0, 10, 40, 0], [0, 0, 0, 0, 30]]
    )
    assert same_partition(merged_by_pairs(P, P, 3).tolist(), [0, 0, 1, 1, 2])


def test_overlapping_classes_are_kept_rather_than_a_sliver():
    # One class apart, two that overlap, and a sliver at the border of the second.
    P = np.array([[100.0, 0, 0, 0], [0, 90, 8, 1], [0, 8, 80, 4], [0, 1, 4, 6]])
    assert same_partition(merged_by_pairs(P, P, 3).tolist(), [0, 1, 2, 2])


def test_clusters_without_pairs_join_others_or_stay_if_there_are_too_few():
    P = np.diag([5.0, 0, 5, 0])
    S = np.eye(4) + 0.5 * np.eye(4)[[1, 0, 3, 2]]
    assert same_partition(merged_by_pairs(P, S, 2).tolist(), [0, 0, 1, 1])
    assert sorted(np.unique(merged_by_pairs(P, S, 3))) == [0, 1, 2]
    assert sorted(merged_by_pairs(P, S, 4)) == [0, 1, 2, 3]


def test_a_tree_of_groups_merges_within_them_first(rng):
    S = rng.random((7, 7))
    S = S + S.T + 3 * np.eye(7)
    groups = np.array([0, 1, 0, 2, 2, 1, 0])
    tree = merge_tree(S, sizes=[3, 4, 0, 2, 9, 1, 1], groups=groups)
    assert same_partition(merged_groups(tree, 3).tolist(), groups.tolist())


def test_pairs_are_counted_by_the_network_s_clusters(blobs):
    X, _ = blobs
    model = quick(3, max_iter=200, n_final=None)
    plan, states = model._train(model._items(X), model._plan(model._items(X)), [1])
    module = plan.build_from(states[0].tensors)
    P = pair_counts(module, plan.objective(model.fit(X)._source(X)), 3)
    assert P.sum() >= 10_000
    assert np.array_equal(P, P.T)
    assert P.trace() > 0.9 * P.sum()  # neighbours share a cluster
