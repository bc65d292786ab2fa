"""What a fit says of k-means."""

import numpy as np

from ddclust.choosing import k_means
from ddclust.choosing.k_means import beside_k_means, k_means_start
from ddclust.data.batches import BatchSource, Scaling
from helpers import quick


def test_the_same_division_is_named_as_such(blobs):
    X, truth = blobs
    assert (
        str(beside_k_means((truth + 1) % 3, X))
        == "k-means explains these data as well: adjusted Rand index 1.00."
    )


def test_another_division_is_told_with_its_sizes(blobs):
    X, truth = blobs
    halves = np.where(truth == 0, 0, 1)
    halves[:10] = 2
    words = str(beside_k_means(halves, X))
    assert words.startswith("k-means divides these data differently: adjusted Rand index 0.")
    assert "clusters of 50, 50, 50 items instead of" in words


def test_sizes_far_from_those_of_k_means_are_doubted(blobs):
    X = blobs[0]
    uneven = np.repeat([0, 1, 2], [110, 20, 20])
    compared = beside_k_means(uneven, X)
    assert compared.moved == 60 / 150
    assert str(compared).endswith("look at both before you trust either.")
    assert "far apart" not in str(beside_k_means(np.arange(150) % 3, X))


def test_a_verbose_fit_tells_of_k_means_once(blobs, capsys):
    quick(3, max_iter=2, verbose=True).fit(blobs[0])
    assert capsys.readouterr().err.count("k-means ") == 1


def test_a_start_assigns_every_item_and_depends_on_the_seed_alone(blobs, monkeypatch):
    X, truth = blobs
    source = BatchSource(X, Scaling.of(X))
    monkeypatch.setattr(k_means, "COMPARED_ITEMS", 40)  # of 150; the others are assigned in blocks
    start = k_means_start(source, 3, seed=1)
    assert start.shape == (150, 3)
    np.testing.assert_array_equal(start.sum(axis=1), 1)
    counts = [np.unique(truth[start[:, cluster] == 1]) for cluster in range(3)]
    assert sorted(map(tuple, counts)) == [(0,), (1,), (2,)]
    np.testing.assert_array_equal(start, k_means_start(source, 3, seed=1))
    assert any((k_means_start(source, 3, seed=seed) != start).any() for seed in range(2, 6))
