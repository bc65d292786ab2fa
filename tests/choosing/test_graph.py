"""Clusters of the graph of nearest neighbours, against naive loops and known shapes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from ddclust.choosing.graph import _moved, graph_clusters, neighbor_graph
from ddclust.choosing.grouping import parted_cost
from ddclust.data.neighbors import nearest_neighbors


def test_weights_against_a_naive_loop(rng):
    X = rng.normal(size=(40, 3))
    near = nearest_neighbors(X, 6)
    one_way = np.zeros((40, 40))
    for i in range(40):
        beyond = [d - near.distances[i].min() for d in near.distances[i]]
        low, high = 1e-9, 1e9
        for _ in range(200):
            scale = (low * high) ** 0.5
            total = sum(np.exp(-b / scale) for b in beyond)
            low, high = (low, scale) if total > np.log2(6) else (scale, high)
        for j, b in zip(near.indices[i], beyond, strict=True):
            one_way[i, j] = np.exp(-b / scale)
    expected = one_way + one_way.T - one_way * one_way.T
    assert np.allclose(neighbor_graph(near).toarray(), expected, atol=1e-6)


def test_duplicates_have_the_largest_weight():
    X = np.repeat(np.arange(10.0)[:, None], 3, axis=0)
    W = neighbor_graph(nearest_neighbors(X, 4)).toarray()
    assert np.isfinite(W).all()
    assert W.max() == 1
    assert W[0, 1] == 1


def cost(W, labels, k):
    volumes = np.array([W[labels == c].sum() for c in range(k)])
    insides = np.array([W[np.ix_(labels == c, labels == c)].sum() for c in range(k)])
    return parted_cost(volumes / W.sum(), insides / W.sum()).sum()


def test_moves_lower_the_cost_until_no_single_move_does(rng):
    X, _ = make_blobs(60, centers=3, random_state=0)
    graph = neighbor_graph(nearest_neighbors(X, 8))
    W, start = graph.toarray(), rng.integers(3, size=60)
    labels = _moved(graph, start, 3)
    assert cost(W, labels, 3) < cost(W, start, 3)
    for item in range(60):
        for there in set(labels[W[item] > 0].tolist()) - {labels[item]}:
            other = labels.copy()
            other[item] = there
            assert cost(W, other, 3) > cost(W, labels, 3) - 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rings_of_different_density_are_found_at_any_scale(scale):
    X, y = make_circles((300, 900), factor=0.4, noise=0.03, random_state=0)
    assert adjusted_rand_score(y, graph_clusters(scale * X, 2)) == 1


@pytest.mark.parametrize("n", [3, 5, 12])
def test_few_items_and_many_duplicates(n):
    labels = graph_clusters(np.repeat(np.arange(n, dtype=float)[:, None] ** 2, 4, axis=0), 3)
    assert len(labels) == 4 * n
    assert set(labels.tolist()) <= {0, 1, 2}
    assert len(graph_clusters(np.arange(3.0)[:, None], 3)) == 3


def test_every_cluster_has_items(rng):
    for k in (2, 7, 30):
        assert len(np.unique(graph_clusters(rng.normal(size=(400, 5)), k))) == k
