"""When a mixture is believed, and that the network then learns it."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.mixture import GaussianMixture

from ddclust import DDC, DDCLoss
from ddclust.choosing.anchors import found_anchor, soft_assignments
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.choosing.mixtures import believed_mixture, best_mixture
from ddclust.data.batches import BatchSource, Scaling
from ddclust.defaults import ANCHOR_ITERATIONS
from helpers import Small, quick


def source_of(X):
    return BatchSource(X, Scaling.of(X))


def test_gaussians_of_any_shape_are_believed_and_found(rng):
    long = rng.normal(size=(200, 2)) * [4.0, 0.2]
    X = np.concatenate([long, long[:, ::-1] + [0.0, 9.0]])
    found = believed_mixture(X, 2, 8)
    assert found is not None
    assert found.name in ("full", "diag")
    truth = np.repeat([0, 1], 200)
    assert clustering_accuracy(truth, found.probabilities(X).argmax(axis=1)) >= 0.99


def test_no_mixture_explains_moons():
    assert believed_mixture(make_moons(200, noise=0.05, random_state=0)[0], 2, 8) is None


def test_many_features_get_no_covariance_matrices(rng):
    assert best_mixture(rng.normal(size=(30, 60)), 2, 1).name == "spherical"


@pytest.mark.parametrize("X", [np.zeros((40, 2)), np.eye(5), np.full((40, 2), 3.0) + np.eye(40)[:, :2]])
def test_degenerate_data_are_no_error(X):
    found = found_anchor(source_of(X), 2, 8)
    assert found is None or np.isfinite(soft_assignments(found, source_of(X))).all()


def anchor_of(X, links=None, **options):
    model = quick(3, **{"anchor": "auto"} | options)
    return model._plan(model._items(X), must_link=links).setup.anchor


def test_whatever_the_user_sets_comes_before_the_mixture(blobs):
    X, _ = blobs
    assert anchor_of(X) is not None
    assert anchor_of(X, max_iter=10, learning_rate="auto", n_init=3) is not None
    for options in (
        {"anchor": None},
        {"loss": DDCLoss()},
        {"augment": None},
        {"neighbors": 3},
        {"n_final": None},
        {"links": [[0, 1]]},
        {"network": Small},
        {"selection": "pairs"},
    ):
        assert anchor_of(X, **options) is None
    assert anchor_of(X.reshape(-1, 1, 2)) is None
    assert DDC.paper(3).anchor is None


def test_the_network_learns_the_mixture_of_groups_of_unequal_sizes(tmp_path, capsys):
    X, truth = make_blobs([200, 40, 12], centers=[[-5.0, 0.0], [5.0, 0.0], [0.0, 8.0]], random_state=5)
    model = quick(3, anchor="auto", verbose=True).fit(X)
    assert clustering_accuracy(truth, model.labels_) == 1
    assert "A Gaussian mixture explains these data" in capsys.readouterr().err
    assert model.setup_.anchor in ("spherical", "tied")
    assert model.runs_[0]["terms"]["anchor"] < 0.5
    assert (model.setup_.n_clusters, model.setup_.neighbors) == (3, None)
    model.save(tmp_path / "m")
    again = DDC.load(tmp_path / "m")
    assert again.setup_ == model.setup_
    assert np.array_equal(again.predict(X), model.labels_)


def test_soft_assignments_are_learnt_too():
    X, _ = make_blobs(300, centers=[[0.0, 0.0], [3.0, 0.0]], random_state=0)
    model = quick(2, anchor="auto").fit(X)
    expected = GaussianMixture(2, covariance_type=model.setup_.anchor, n_init=10, random_state=0).fit(X)
    assert np.abs(expected.predict_proba(X).max(axis=1) - model.probabilities_.max(axis=1)).mean() < 0.03
    assert (model.probabilities_.max(axis=1) < 0.9).mean() > 0.05  # the groups overlap


def test_what_is_learnt_takes_few_iterations(blobs):
    model = DDC(3)
    assert model._plan(model._items(blobs[0])).setup.max_iter == ANCHOR_ITERATIONS < model.max_iter
