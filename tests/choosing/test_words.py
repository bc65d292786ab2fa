"""Texts divided by their words, in clusters of estimated sizes."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ddclust.choosing.words import divided_by_words


@pytest.fixture(scope="module")
def topics():
    """270 texts of one topic and 30 of another, with words of their own and words that they share, as counts."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [270, 30])
    rates = np.where(np.arange(60) < 30, [[0.4], [0.05]], [[0.05], [0.4]])  # (2, 60)
    rates[:, 50:] = 0.3
    return csr_array(rng.poisson(rates[truth]).astype(float)), truth


def test_words_find_the_sizes_of_clusters_that_were_drawn_to_one_size(topics):
    X, truth = topics
    begun = truth.copy()
    begun[:120] = 1  # halves, but for the words
    found = divided_by_words(X, begun, 2)
    assert found.shape == (300, 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert (found.argmax(axis=1) == truth).mean() > 0.97
    assert (begun == truth).mean() == 0.6


def test_the_division_does_not_depend_on_the_lengths_of_texts(topics):
    X, truth = topics
    longer = csr_array(X * np.linspace(1, 9, 300)[:, None])
    np.testing.assert_allclose(divided_by_words(X, truth, 2), divided_by_words(longer, truth, 2), atol=1e-5)


def test_one_step_is_naive_bayes_worked_out_by_hand():
    """Words a and b; cluster 0 has (a, a), cluster 1 has (b): unit rows, one added to each sum, shares 2/3 and 1/3."""
    X = csr_array(np.array([[2.0, 0], [5, 0], [0, 3]]))
    found = divided_by_words(X, np.array([0, 0, 1]), 2)
    a0, b0, a1, b1 = 3 / 4, 1 / 4, 1 / 3, 2 / 3
    expected = np.array([[2 * a0, a1], [2 * a0, a1], [2 * b0, b1]])
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


def test_there_is_no_division_without_all_clusters_or_with_negative_values(topics):
    X, truth = topics
    assert divided_by_words(X, truth, 3) is None
    same = csr_array(np.ones((20, 3)))  # words say nothing, so the larger cluster takes all
    assert divided_by_words(same, np.repeat([0, 1], [15, 5]), 2) is None
    assert divided_by_words(-X, truth, 2) is None
