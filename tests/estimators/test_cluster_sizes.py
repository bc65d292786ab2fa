"""Clusters of unequal sizes: given, or estimated by k-means."""

import numpy as np
import pytest

from ddclust import DDC, DDCLoss, EarlyStopping
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


@pytest.mark.slow
def test_unequal_classes_are_found_with_their_sizes_and_not_without(unequal):
    X, truth = unequal
    weights = {"orthogonality": 20}
    strong = quick(loss=DDCLoss(weights=weights), augment=None)
    balanced = clustering_accuracy(truth, strong.fit_predict(X))
    for sizes in ([20, 400, 80], "k-means"):
        model = quick(loss=DDCLoss(weights=weights, cluster_sizes=sizes), augment=None).fit(X)
        assert clustering_accuracy(truth, model.labels_) > balanced + 0.2
    assert balanced < 0.7


def test_a_run_does_not_converge_before_the_sizes_have_come_in(unequal):
    X, _ = unequal
    options = {"augment": None, "n_init": 1, "max_iter": 1500}
    options["early_stopping"] = EarlyStopping(patience=2, tol=0.5)
    model = quick(loss=DDCLoss(cluster_sizes=[400, 80, 20]), **options).fit(X)
    assert model.runs_[0]["outcome"] == "converged"
    assert model.n_iter_ >= 500 + 3 * 50  # three records after the first third
    plain = quick(**options).fit(X)
    assert plain.n_iter_ < 500


def test_stopped_while_sizes_come_in_it_ends_the_same(unequal, tmp_path, monkeypatch):
    X, _ = unequal
    params = {"loss": DDCLoss(cluster_sizes=[400, 80, 20]), "n_init": 1, "max_iter": 30}
    undisturbed = quick(**params).fit(X)
    model = quick(**params, checkpoint_dir=tmp_path)
    interrupted_fit(model, X, monkeypatch, 6)
    assert_same(model.fit(X), undisturbed)


def test_sizes_are_saved_and_part_of_a_fit_s_identity(unequal, tmp_path):
    X, _ = unequal
    options = {"n_init": 1, "max_iter": 20, "checkpoint_dir": tmp_path / "c"}
    model = quick(loss=DDCLoss(cluster_sizes=np.array([1, 2, 3])), **options).fit(X)
    model.save(tmp_path / "m")
    assert DDC.load(tmp_path / "m").loss == DDCLoss(cluster_sizes=(0.5, 1 / 3, 1 / 6))
    other = quick(loss=DDCLoss(cluster_sizes=[1, 2, 4]), **options)
    with pytest.raises(ValueError, match=r"checkpoints .*cluster_sizes is \[0.5, .* there and \[0.57"):
        other.fit(X)


def test_wrong_sizes_are_refused(unequal):
    X, _ = unequal
    with pytest.raises(ValueError, match="cluster_sizes holds 2 sizes for n_clusters=3"):
        quick(loss=DDCLoss(cluster_sizes=[1, 2])).fit(X)
    with pytest.raises(ValueError, match="cluster_sizes must be positive numbers"):
        quick(loss=DDCLoss(cluster_sizes=[1, 2, -3])).fit(X)


def test_sizes_by_k_means_are_found_once_and_printed(unequal):
    X, _ = unequal
    model = quick(loss=DDCLoss(cluster_sizes="k-means"), n_init=1, max_iter=2).fit(X)
    assert model.loss.cluster_sizes == "k-means"  # as given
    assert model.setup_.loss.cluster_sizes == pytest.approx((0.8, 0.16, 0.04), abs=0.01)
    assert "cluster_sizes=[0.8" in str(model.setup_)
