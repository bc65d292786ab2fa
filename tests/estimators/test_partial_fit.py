"""partial_fit: old clusters stay, new kinds are noticed and become clusters, and the model stays a model."""

import copy

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from ddclust import DDC
from helpers import Small, quick

CENTRES = [[0, 0], [9, 0], [0, 9], [9, 9], [-9, 9]]


@pytest.fixture(scope="module")
def data():
    return make_blobs(1000, centers=CENTRES, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    return DDC(3, n_init=1, max_iter=200, n_jobs=1, random_state=0, verbose=False).fit(X[y < 3])


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


def test_old_labels_stay_and_new_kinds_become_clusters(model, data):
    X, y = data
    before = model.predict(X[y < 3])
    model.partial_fit(X[y > 1], new_clusters="auto")
    assert model.n_clusters_ == 5
    assert (model.predict(X[y < 3]) == before).mean() >= 0.99
    for kind in (3, 4):
        found = model.predict(X[y == kind])
        assert np.bincount(found).max() >= 0.85 * len(found)
        assert np.bincount(found).argmax() >= 3
    assert len(model.labels_) == len(model.probabilities_) == (y > 1).sum()
    assert model.n_samples_seen_ == (y < 3).sum() + (y > 1).sum()
    assert model.predict_proba(X).shape == (1000, 5)
    assert (model.predict(X, reject=0.05) == -1).mean() < 0.1  # the new ones are known now
    assert model.predict([[500.0, -500.0]], reject=0.05).tolist() == [-1]
    assert np.isfinite(model.score(X))


def test_new_kinds_are_only_offered_by_default(model, data):
    X, _ = data
    modules = model.modules_
    with pytest.warns(UserWarning, match="2 groups of their own.*new_clusters='auto'"):
        model.partial_fit(X)
    assert model.n_clusters_ == 3
    assert model.modules_ is modules
    assert model.new_kinds_.sizes == pytest.approx([200, 200], abs=40)


@pytest.mark.filterwarnings("error")
def test_items_of_known_kinds_give_no_alarm(model):
    X, _ = make_blobs(600, centers=CENTRES[:3], random_state=7)
    labels = model.predict(X)
    model.partial_fit(X, new_clusters="auto")
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.labels_, labels)


@pytest.mark.slow
def test_an_updated_model_is_saved_and_updated_again(model, data, tmp_path):
    X, y = data
    model.partial_fit(X[y == 3], new_clusters="auto").save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X, reject=0.05), model.predict(X, reject=0.05))
    assert (loaded.n_clusters_, loaded.n_samples_seen_) == (4, model.n_samples_seen_)
    before = loaded.predict(X[y < 4])
    loaded.partial_fit(X[y == 4], new_clusters=1)
    assert loaded.n_clusters_ == 5
    assert (loaded.predict(X[y < 4]) == before).mean() >= 0.99
    loaded.fit(X[y < 3])
    assert loaded.n_clusters_ == 3
    assert not hasattr(loaded, "n_samples_seen_")


def test_the_first_call_is_a_fit(data):
    X, y = data
    first, second = (quick(random_state=0) for _ in range(2))
    np.testing.assert_array_equal(first.partial_fit(X[y < 3]).labels_, second.fit(X[y < 3]).labels_)


def test_what_cannot_be_done_is_said_and_changes_nothing(model, data):
    X, _ = data
    for wrong in (0, "many", True, 1.5):
        with pytest.raises(ValueError, match="new_clusters="):
            model.partial_fit(X, new_clusters=wrong)
    with pytest.raises(ValueError, match="too few for new_clusters=900"):
        model.partial_fit(X, new_clusters=900)
    assert model.n_clusters_ == 3
    assert not hasattr(model, "new_kinds_")
    assert not hasattr(model, "n_samples_seen_")


def test_clusters_are_added_to_single_built_in_networks_only(data):
    X, y = data
    voting = quick(n_init=2, n_vote=2, random_state=0).fit(X[y < 3])
    with pytest.raises(ValueError, match="n_vote=1"):
        voting.partial_fit(X, new_clusters=1)
    own = quick(network=Small, random_state=0).fit(X[y < 3])
    with pytest.raises(ValueError, match="built-in networks"):
        own.partial_fit(X, new_clusters=1)
