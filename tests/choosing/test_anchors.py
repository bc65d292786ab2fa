"""Which simple method a network learns, and when neighbours decide."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from ddclust import DDC, Table
from ddclust.choosing.anchors import (
    FoundCentres,
    FoundGraph,
    Shown,
    found_anchor,
    labels_by_halves,
    share_of_levels,
)
from ddclust.choosing.mixtures import believed_mixture
from ddclust.data.batches import BatchSource, Scaling
from helpers import quick


def anchor_of(X, n_clusters):
    found = found_anchor(BatchSource(X, Scaling.of(X)), n_clusters, n_clusters + 6)
    return None if found is None else found.name


def with_levels(X, n_levels=3):
    """Numbers, and a category of several levels that has nothing to do with them."""
    levels = np.random.default_rng(0).integers(n_levels, size=len(X))
    return np.column_stack([X, 2 * np.eye(n_levels)[levels]])


@pytest.fixture
def moons():
    return make_moons(600, noise=0.05, random_state=0)[0]


def test_neighbours_show_moons_and_nothing_in_noise(moons, rng):
    assert anchor_of(moons, 2) == "neighbors"
    assert anchor_of(rng.uniform(size=(600, 3)), 2) == "k-means"


def test_neighbours_are_not_asked_where_levels_make_them(moons):
    X = with_levels(moons)
    assert share_of_levels(X) > 0.1
    assert not Shown.by_graph(X, 2).is_found_again
    assert anchor_of(X, 2) == "k-means"


def test_neighbours_of_few_items_show_nothing(moons):
    assert Shown.by_graph(moons, 2).is_found_again
    assert not Shown.by_graph(moons[:30], 2).is_found_again


def test_gaps_are_believed_before_a_mixture(rng):
    """Two long clouds side by side and askew: a mixture would explain them, and the gap between them shows them, too."""
    along, across = rng.uniform(-6, 6, size=800), 0.3 * rng.normal(size=800)
    clouds = np.column_stack([along, across]) + np.repeat([[0.0, 0.0], [0.0, 4.0]], 400, axis=0)
    X = clouds @ np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert believed_mixture(X, 2, 8) is not None
    assert Shown.by_graph(X, 2).by_gaps
    assert anchor_of(X, 2) == "neighbors"


def test_overlapping_clusters_are_not_said_to_have_gaps():
    X, _ = make_blobs(900, centers=[[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], random_state=0)
    assert not Shown.by_graph(X, 3).by_gaps


def test_all_items_get_the_clusters_of_their_nearest_known_ones(moons):
    """Also those that took no part, and those far away."""
    known, others = moons[:400], np.vstack([moons[400:], [[100.0, -100.0]]])
    P = FoundGraph.of(known, 2).probabilities(others)
    assert np.allclose(P.sum(axis=1), 1)
    truth = make_moons(600, noise=0.05, random_state=0)[1][400:]
    assert adjusted_rand_score(truth, P[:-1].argmax(axis=1)) == 1


def test_the_network_learns_what_neighbours_show_and_says_so(moons, capsys):
    model = quick(2, anchor="auto", max_iter=400, learning_rate="auto", verbose=True).fit(moons)
    assert model.setup_.anchor == "neighbors"
    assert adjusted_rand_score(make_moons(600, noise=0.05, random_state=0)[1], model.labels_) > 0.95
    assert "Nearest neighbours show the clusters of these data" in capsys.readouterr().err


def test_a_mixture_that_follows_levels_is_not_believed(rng):
    X, _ = make_blobs(600, centers=[[0.0, 0.0], [8.0, 0.0]], random_state=0)
    assert believed_mixture(X, 2, 8) is not None
    levels = np.column_stack([rng.normal(size=(600, 2)), np.repeat([0.0, 1.0], 300)])
    assert believed_mixture(levels, 2, 8) is None


def test_a_constant_column_does_not_stand_against_a_mixture():
    X, _ = make_blobs(300, centers=[[0.0, 0.0], [8.0, 0.0]], random_state=0)
    assert anchor_of(np.column_stack([X, np.zeros(300)]), 2) not in (None, "k-means")


def test_what_is_learnt_from_k_means_is_nearest_centres(rng):
    X = rng.normal(size=(200, 3))
    found = FoundCentres.of(X, 4)
    expected = KMeans(4, n_init=10, random_state=0).fit_predict(X)
    assert np.array_equal(found.probabilities(X).argmax(axis=1), expected)
    assert np.allclose(found.probabilities(X).sum(axis=1), 1)


def test_the_network_learns_k_means_of_a_table_with_words_and_says_so(rng, capsys, tmp_path):
    n = 300
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 4 * (np.arange(n) % 2),
            "age": rng.normal(size=n),
            "kind": rng.choice(["a", "b", "c"], size=n),
            "paid": rng.choice(["yes", "no"], size=n),
        }
    )
    model = quick(2, anchor="auto", max_iter=200, verbose=True).fit(frame)
    simple = KMeans(2, n_init=10, random_state=0).fit_predict(model.columns_.encode(Table(frame)))
    assert model.setup_.anchor == "k-means"
    assert adjusted_rand_score(simple, model.labels_) > 0.9
    said = capsys.readouterr().err
    assert "k-means explains these data as well: the network learns" in said
    assert said.count("k-means") == 1  # it is not compared with what it learnt
    model.save(tmp_path / "m")
    assert np.array_equal(DDC.load(tmp_path / "m").predict(frame), model.labels_)


@pytest.mark.parametrize("name", ["k-means", "neighbors", "spherical", "full"])
def test_halves_of_the_items_agree_where_clusters_are_clear(name, rng):
    X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    found = labels_by_halves(name, BatchSource(X, Scaling.of(X)), 3)
    assert [adjusted_rand_score(y, labels) for labels in found] == [1.0] * 6
    noise = rng.uniform(size=(300, 2))
    found = labels_by_halves(name, BatchSource(noise, Scaling.of(noise)), 3)
    assert np.mean([adjusted_rand_score(found[0], labels) for labels in found[1:]]) < 0.9
