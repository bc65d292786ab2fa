"""Openness: by hand, and of clusters and of noise of many shapes."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles

from ddclust.choosing.openness import landscape_of, links_of, openness
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.items import SparseItems


def opened(X, labels, scaling=None):
    return landscape_of(BatchSource(X, Scaling.of(X) if scaling is None else scaling)).openness(labels)


def chain(n):
    """Each item is linked to the next and the one before; the ends to two on one side."""
    near = np.stack([np.arange(n) - 1, np.arange(n) + 1], axis=1)
    near[0], near[-1] = [1, 2], [n - 3, n - 2]
    return links_of(near)


def test_links_count_both_directions():
    links = links_of(np.array([[1], [0], [1]])).toarray()
    assert links.tolist() == [[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]]


def test_a_chain_by_hand():
    halves = np.repeat([0, 1], 40)
    # The border parts one link, the best cut through the middle of a half one, too: (1 + 5) / (1 + 1).
    assert openness(halves, chain(80)) == pytest.approx([3, 3], abs=0.05)
    apart = scipy.sparse.block_diag([chain(40), chain(40)], format="csr")
    assert openness(halves, apart) == pytest.approx([2.5, 2.5], abs=0.05)  # (0 + 5) / (1 + 1)
    assert openness(np.zeros(80, int), apart) == pytest.approx(
        [5], abs=0.05
    )  # a gap inside: (0 + 5) / (0 + 1)


def test_clusters_of_any_shape_and_size_are_closed():
    blobs, y = make_blobs([420, 60, 20], centers=[[-5, 0], [5, 0], [0, 8]], random_state=0)
    assert opened(blobs, y) < 0.2
    assert opened(blobs, np.minimum(y, 1)) > 1  # the two small ones as one
    assert opened(blobs, np.where(y == 2, 0, y)) > 1  # a small one as part of the large one
    rings, y = make_circles(600, factor=0.3, noise=0.05, random_state=0)
    assert opened(rings, y) < 0.2


@pytest.mark.parametrize("shape", ["uniform", "normal", "long", "bent", "many features"])
def test_parts_of_noise_are_open(shape, rng):
    X = {
        "uniform": lambda: rng.random((400, 2)),
        "normal": lambda: rng.normal(size=(400, 3)),
        "long": lambda: rng.normal(size=(400, 3)) * [9, 1, 1],
        "bent": lambda: (
            np.stack([np.cos(t := 3 * rng.random(400)), np.sin(t)], 1) + rng.normal(0, 0.1, (400, 2))
        ),
        "many features": lambda: rng.normal(size=(400, 30)),
    }[shape]()
    scaling = Scaling.none(X)
    for k in (2, 4):
        labels = KMeans(k, n_init=2, random_state=0).fit_predict(X)
        assert opened(X, labels, scaling) > 0.5


def test_texts_are_compared_by_topics():
    groups = np.repeat(np.arange(3), 40)
    random = np.random.default_rng(0)
    X = scipy.sparse.csr_array(
        random.poisson(0.05 + 0.9 * (np.arange(60) // 20 == groups[:, None])), dtype=np.float32
    )
    source = BatchSource(SparseItems(X), Scaling.of(SparseItems(X)))
    assert landscape_of(source).openness(groups) < 0.3
    assert landscape_of(source).openness(random.integers(3, size=120)) > 1


def test_few_items_and_duplicates_have_an_openness():
    for X in (np.arange(4.0)[:, None], np.zeros((30, 2)), np.repeat(np.eye(3), 9, axis=0)):
        assert np.isfinite(opened(X, np.arange(len(X)) % 2))
