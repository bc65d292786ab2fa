"""Candidates for nearest neighbours: nothing is lost at the borders of cells, among duplicates, or by threads."""

import numpy as np
import pytest
import scipy.sparse
import torch

from ddclust.data.cells import COMPONENTS, LARGEST_CELL, candidate_neighbors, compact_vectors


def nearest(X, k):
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return distances.argsort(axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("n", [1, 2, 30, 700])
def test_few_items_are_all_compared(rng, n):
    X = rng.normal(size=(n, 4)).astype(np.float32)
    k = min(n, 5)
    assert np.array_equal(np.sort(candidate_neighbors(X, k)), np.sort(nearest(X, k)))


def test_items_of_other_cells_are_seen(rng, monkeypatch):
    """With cells of ten items, and 300 of 2,000 items seen, nearly all neighbours are found."""
    monkeypatch.setattr("ddclust.data.cells.CELL_ITEMS", 10)
    monkeypatch.setattr("ddclust.data.cells.SEEN_ITEMS", 300)
    X = rng.normal(size=(2000, 3)).astype(np.float32)
    found, exact = candidate_neighbors(X, 6), nearest(X, 6)
    shared = np.mean([len(set(a) & set(b)) / 6 for a, b in zip(found.tolist(), exact.tolist(), strict=True)])
    assert shared > 0.97


def test_duplicates_make_no_cell_too_large(rng):
    """5,000 equal items would be compared with each other, 25 million pairs, if they were one cell."""
    n = 5 * LARGEST_CELL
    X = np.vstack([np.zeros((n, 12)), rng.normal(size=(1000, 12))]).astype(np.float32)
    found = candidate_neighbors(X, 3)
    assert (found[:n] < n).all()
    assert all(len(set(row)) == 3 for row in found.tolist())
    assert (found[n:] == np.arange(n, n + 1000)[:, None]).any(axis=1).all()


def test_the_number_of_threads_does_not_matter(rng):
    X = rng.normal(size=(3000, 100)).astype(np.float32)
    before = torch.get_num_threads()
    try:
        found = []
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            found.append(candidate_neighbors(X, 8))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert (found[0] == found[1]).mean() > 0.999


def test_sparse_and_dense_vectors_are_made_compact(rng):
    X = rng.normal(size=(200, COMPONENTS + 20)) * (rng.random((200, COMPONENTS + 20)) < 0.3)
    for vectors in (X, scipy.sparse.csr_array(X)):
        assert compact_vectors(vectors).shape == (200, COMPONENTS)
        assert compact_vectors(vectors[:, :5]).shape == (200, 5)
