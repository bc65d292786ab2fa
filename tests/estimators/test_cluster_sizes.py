"""Clusters of unequal sizes: given, or estimated by k-means."""

import numpy as np
import pytest

from ddclust import DDC, DDCLoss
from ddclust.choosing.metrics import clustering_accuracy
from helpers import assert_same, interrupted_fit


@pytest.fixture(scope="module")
def unequal():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), [400, 80, 20])
    X = rng.normal(size=(500, 4)) + 6 * np.eye(3, 4)[truth]
    return X, truth


def quick(**params):
    options = {"n_init": 3, "max_iter": 500, "learning_rate": 1e-3, "random_state": 0, "n_jobs": 1}
    return DDC(3, **(options | params))


def test_unequal_classes_are_found_with_their_sizes_and_not_without(unequal):
    X, truth = unequal
    strong = DDCLoss(weights=(1, 20, 1))
    balanced = clustering_accuracy(truth, quick(loss=strong).fit_predict(X))
    for sizes in ([20, 400, 80], "k-means"):
        model = quick(loss=strong, cluster_sizes=sizes).fit(X)
        assert clustering_accuracy(truth, model.labels_) > balanced + 0.2
    assert balanced < 0.7


def test_a_run_does_not_converge_before_the_sizes_have_come_in(unequal):
    X, _ = unequal
    model = quick(
        cluster_sizes=[400, 80, 20], augment=None, n_init=1, max_iter=1500, tol=0.5, patience=2
    ).fit(X)
    assert model.runs_[0]["outcome"] == "converged"
    assert model.n_iter_ >= 500 + 3 * 50  # three records after the first third
    plain = quick(augment=None, n_init=1, max_iter=1500, tol=0.5, patience=2).fit(X)
    assert plain.n_iter_ < 500


def test_stopped_while_sizes_come_in_it_ends_the_same(unequal, tmp_path, monkeypatch):
    X, _ = unequal
    params = {"cluster_sizes": [400, 80, 20], "n_init": 1, "max_iter": 30}
    undisturbed = quick(**params).fit(X)
    model = quick(**params, checkpoint_dir=tmp_path)
    interrupted_fit(model, X, monkeypatch, 6)
    assert_same(model.fit(X), undisturbed)


def test_sizes_are_saved_and_part_of_a_fit_s_identity(unequal, tmp_path):
    X, _ = unequal
    options = {"n_init": 1, "max_iter": 20, "checkpoint_dir": tmp_path / "c"}
    model = quick(cluster_sizes=np.array([1, 2, 3]), **options).fit(X)
    model.save(tmp_path / "m")
    assert DDC.load(tmp_path / "m").cluster_sizes == [1.0, 2.0, 3.0]
    other = quick(cluster_sizes=[1, 2, 4], **options)
    with pytest.raises(ValueError, match="checkpoint"):
        other.fit(X)


def test_wrong_sizes_are_refused(unequal):
    X, _ = unequal
    with pytest.raises(ValueError, match="cluster_sizes holds 2 sizes for n_clusters=3"):
        quick(cluster_sizes=[1, 2]).fit(X)
    with pytest.raises(ValueError, match="cluster_sizes and balance need a DDCLoss"):
        quick(cluster_sizes=[1, 2, 3], loss=lambda h, a: DDCLoss()(h, a)).fit(X)
    with pytest.raises(ValueError, match="positive"):
        quick(cluster_sizes=[1, 2, -3]).fit(X)
