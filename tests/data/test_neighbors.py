"""Neighbours against a double loop."""

import time

import numpy as np
import pytest
import scipy.sparse

from ddclust.data import neighbors
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.neighbors import nearest_neighbors, neighbors_of, seconds_to_find


def by_double_loop(X, k, metric):
    """Indices and distances of the k nearest others, by distance and then by index."""
    X = np.asarray(X, dtype=np.float64)
    indices, distances = [], []
    for i, x in enumerate(X):
        ranked = []
        for j, other in enumerate(X):
            if i == j:
                continue
            if metric == "euclidean":
                distance = np.sqrt(((x - other) ** 2).sum())
            elif not x.any() or not other.any():
                distance = float(x.any() or other.any())
            else:
                distance = 1 - x @ other / np.sqrt((x @ x) * (other @ other))
            ranked.append((distance, j))
        ranked.sort()
        distances.append([distance for distance, _ in ranked[:k]])
        indices.append([j for _, j in ranked[:k]])
    return np.array(indices), np.array(distances)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_features", [2, 30])
@pytest.mark.parametrize("as_csr", [False, True])
def test_double_loop(rng, metric, n_features, as_csr):
    X = rng.normal(size=(60, n_features)) * (rng.random((60, n_features)) < 0.7)
    expected_indices, expected_distances = by_double_loop(X, 7, metric)
    found = nearest_neighbors(scipy.sparse.csr_matrix(X) if as_csr else X, 7, metric=metric)
    np.testing.assert_allclose(found.distances, expected_distances, atol=1e-12)
    if n_features > 2:  # few features, many zeros: ties
        np.testing.assert_array_equal(found.indices, expected_indices)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("n_features", [3, 40])
def test_copies_do_not_hide_the_item_itself(rng, as_csr, n_features):
    X = np.repeat(rng.normal(size=(10, n_features)), 6, axis=0)  # each item with five copies
    found = nearest_neighbors(scipy.sparse.csr_array(X) if as_csr else X, 4)
    assert not (found.indices == np.arange(60)[:, None]).any()
    np.testing.assert_array_equal(found.indices // 6, np.repeat(np.arange(60)[:, None] // 6, 4, axis=1))
    assert (found.distances == 0).all()


def test_neighbours_are_different_from_each_other(rng):
    found = nearest_neighbors(np.repeat(rng.normal(size=(5, 20)), 8, axis=0), 12)
    assert all(len(set(row)) == 12 for row in found.indices.tolist())


def test_far_from_the_origin(rng):
    X = rng.normal(size=(50, 20))
    expected = nearest_neighbors(X, 5)
    found = nearest_neighbors(X + 1e7, 5)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_items_of_zeros_have_no_direction():
    X = np.zeros((5, 30))
    X[0, 0], X[1, :2], X[2, 3] = 1, 1, 1
    for data in (X, scipy.sparse.csr_matrix(X)):
        found = nearest_neighbors(data, 4, metric="cosine")
        assert found.indices[3, 0] == 4
        np.testing.assert_allclose(found.distances[3], [0, 1, 1, 1])
        np.testing.assert_allclose(found.distances[0], [1 - 0.5**0.5, 1, 1, 1])


def test_blocks_do_not_matter(rng, monkeypatch):
    X = rng.normal(size=(100, 20)).astype(np.float32)
    expected = nearest_neighbors(X, 5)
    monkeypatch.setattr(neighbors, "CHUNK_ROWS", 7)
    monkeypatch.setattr(neighbors, "DIFFERENCE_BYTES", 1)
    found = nearest_neighbors(X, 5)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("k", [0, 10])
def test_too_many_or_too_few_are_refused(rng, k):
    with pytest.raises(ValueError, match=f"n_neighbors={k} must be at least 1 and less than n_samples=10"):
        nearest_neighbors(rng.normal(size=(10, 2)), k)


def test_unknown_metric_is_refused(rng):
    with pytest.raises(ValueError, match="metric='manhattan' must be"):
        nearest_neighbors(rng.normal(size=(10, 2)), 2, metric="manhattan")


@pytest.mark.parametrize(("metric", "as_csr"), [("euclidean", False), ("euclidean", True), ("cosine", True)])
def test_most_neighbours_of_large_data(rng, monkeypatch, metric, as_csr):
    X = (rng.random((3000, 90)) * (rng.random((3000, 90)) < 0.5)).astype(np.float32)
    X[:, :3] += rng.normal(scale=4, size=(3000, 3)).round()  # groups of items
    X[::150] = 0  # items without a direction
    exact = nearest_neighbors(X, 5, metric=metric)
    monkeypatch.setattr(neighbors, "EXACT_ITEMS", 100)
    found = nearest_neighbors(scipy.sparse.csr_array(X) if as_csr else X, 5, metric=metric)
    assert found.indices.shape == (3000, 5)
    assert not (found.indices == np.arange(3000)[:, None]).any()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    shared = [
        len(set(a) & set(b)) / 5 for a, b in zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    ]
    assert np.mean(shared) > 0.9
    is_shared = found.indices == exact.indices
    assert np.allclose(found.distances[is_shared], exact.distances[is_shared], atol=1e-5)


def test_large_data_of_few_features_are_searched_exactly(rng, monkeypatch):
    X = rng.normal(size=(70, 4))
    exact = nearest_neighbors(X, 5).indices
    monkeypatch.setattr(neighbors, "EXACT_ITEMS", 10)
    assert np.array_equal(nearest_neighbors(X, 5).indices, exact)


def test_topic_vectors_join_texts_that_share_words_with_the_same_texts():
    """Two topics of 40 words each; a text has six of them, so that many texts of a topic share none."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 80), dtype=np.float32)
    for row in range(200):
        X[row, 40 * (row % 2) + rng.choice(40, 6, replace=False)] = 1
        X[row, rng.choice(80, 2)] = 1  # and two of any topic
    matrix = scipy.sparse.csr_array(X)
    topic = np.arange(200) % 2

    def purity(vectors):
        return (topic[nearest_neighbors(vectors, 20, metric="cosine").indices] == topic[:, None]).mean()

    words, topics = purity(matrix), purity(neighbors.topic_vectors(matrix))
    assert words < 0.95 < topics
    source = BatchSource(X, Scaling.none(X))
    dense, by_topics = (neighbors_of(source, 20, by_topics=by_topics) for by_topics in (False, True))
    assert (topic[dense] == topic[:, None]).mean() < 0.95 < (topic[by_topics] == topic[:, None]).mean()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 3), (5, 40), (40, 5)])
def test_topic_vectors_of_few_texts_or_words(n, d, rng):
    matrix = scipy.sparse.csr_array(rng.integers(0, 2, size=(n, d)).astype(np.float32))
    for vectors in (neighbors.topic_vectors(matrix), neighbors.topic_vectors(matrix.toarray())):
        assert vectors.shape == (n, min(n, d))
        assert np.isfinite(vectors).all()


@pytest.mark.parametrize(("n", "n_features"), [(12_000, 16), (3_000, 200)])
def test_the_time_of_a_search_is_known_before(rng, n, n_features):
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    source = BatchSource(X, Scaling.of(X))
    expected = seconds_to_find(source, 10)
    begun = time.perf_counter()
    neighbors_of(source, 10)
    real = time.perf_counter() - begun
    assert real / 5 < expected < 5 * real


def test_of_very_many_images_a_sample_has_neighbours(monkeypatch):
    monkeypatch.setattr("ddclust.data.neighbors.MANY_IMAGES", 50)
    monkeypatch.setattr("ddclust.data.neighbors.SEARCHED_IMAGES", 40)
    X = np.random.default_rng(0).random((60, 4, 4)).astype(np.float32)
    found = neighbors_of(BatchSource(X, Scaling.of(X)), 2)
    has_others = (found != np.arange(60)[:, None]).all(axis=1)
    sample = np.flatnonzero(has_others)
    assert len(sample) == 40
    assert set(found[sample].ravel()) <= set(sample)
    assert (found[~has_others] == np.flatnonzero(~has_others)[:, None]).all()
    vectors = X.reshape(60, -1)
    assert (neighbors_of(BatchSource(vectors, Scaling.of(vectors)), 2) != np.arange(60)[:, None]).all()
