"""The estimator beyond scikit-learn's own checks (those are in test_common.py)."""

import pickle
import random
import warnings
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from torch import nn

from ddclust import DDC, DDCLoss, EarlyStopping, Network, Selection
from ddclust.choosing.consensus import combine, majority_vote
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.objective.loss import TERMS
from ddclust.training.callbacks import Callback
from helpers import OneTerm, Small, own_loss, quick


def test_finds_separated_groups(blobs):
    X, y = blobs
    model = quick(max_iter=400, n_init=2).fit(X)
    assert clustering_accuracy(y, model.labels_) == 1
    assert model.probabilities_.sum(axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("shape", [(60, 8, 8), (60, 8, 8, 1), (60, 1, 8, 8)])
def test_images_of_every_layout(images, shape):
    X = images.reshape(shape)
    model = quick(2, max_iter=60).fit(X)
    assert clustering_accuracy([0] * 30 + [1] * 30, model.labels_) == 1
    assert model.transform(X[:3]).shape == (3, 100)
    assert model.n_features_in_ == 64


def test_the_layout_does_not_change_the_result(images):
    labels = [
        quick(2, max_iter=20).fit(images.reshape(s)).labels_
        for s in [(60, 8, 8), (60, 8, 8, 1), (60, 1, 8, 8)]
    ]
    assert np.array_equal(labels[0], labels[1])
    assert np.array_equal(labels[0], labels[2])


def test_the_lowest_loss_is_kept(blobs):
    X, _ = blobs
    model = quick(n_init=4, max_iter=60).fit(X)
    losses = [run["loss"] for run in model.runs_]
    assert len({run["seed"] for run in model.runs_}) == 4
    assert model.voters_ == [int(np.argmin(losses))]
    assert model.history_ == model.runs_[model.voters_[0]]["history"]
    for run in model.runs_:
        assert run["loss"] == pytest.approx(sum(run["terms"].values()))
        assert set(run["terms"]) == {"divergence", "orthogonality", "corners", "pairs"}
        assert run["outcome"] == "budget"
        assert run["n_iter"] == 60


def test_clusters_are_numbered_by_size():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.3, (n, 2)) for center, n in [(0, 20), (6, 120), (12, 60)]])
    model = quick(loss=DDCLoss(weights={"orthogonality": 0.2}), augment=None, n_init=3, max_iter=300).fit(X)
    sizes = np.bincount(model.labels_, minlength=3)
    assert (np.diff(sizes) <= 0).all()


def test_same_seed_same_labels_and_no_global_random_state(blobs):
    X, _ = blobs
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    first = quick(network=Small).fit(X)
    torch.manual_seed(99)  # what the caller does with it must not matter
    second = quick(network=Small).fit(X)
    assert np.array_equal(first.probabilities_, second.probabilities_)
    torch.set_rng_state(before[0])
    quick(network=Small).fit(X).predict(X)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert random.getstate() == before[2]
    assert not np.array_equal(quick(random_state=1).fit(X).probabilities_, first.probabilities_)


def test_prediction_does_not_depend_on_batches(blobs):
    X, _ = blobs
    model = quick().fit(X)
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict_proba(X), model.probabilities_)
    singly = np.concatenate([model.predict_proba(x[None]) for x in X])
    assert np.array_equal(singly, model.probabilities_)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(model.transform(X[order]), model.transform(X)[order])


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_own_network_and_loss(blobs):
    X, _ = blobs
    model = quick(network=Small, loss=own_loss).fit(X)
    assert set(model.runs_[0]["terms"]) == {"value"}
    assert model.transform(X).shape == (150, 16)
    assert model.get_feature_names_out().tolist()[:2] == ["ddc0", "ddc1"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"network": lambda shape, k: "no"}, TypeError, "nn.Module"),
        ({"network": lambda shape, k: nn.Linear(2, 3)}, TypeError, r"\(hidden, logits\)"),
        ({"network": lambda shape, k: Small(shape, k + 1)}, ValueError, r"\(n, 3\)"),
        ({"network": lambda shape, k: nn.Flatten()}, TypeError, "no parameters"),
        ({"loss": lambda hidden, assignments: hidden.sum()}, TypeError, "named tuple"),
        ({"loss": lambda hidden, assignments: OneTerm(1.0)}, TypeError, "scalar tensors"),
        ({"loss": lambda hidden, assignments: OneTerm(hidden)}, TypeError, "scalar tensors"),
        ({"loss": lambda hidden, assignments: OneTerm(torch.ones(()))}, TypeError, "depend on its arguments"),
        ({"n_vote": 2}, ValueError, "n_vote=2 should be <= n_init=1"),
        ({"network": "conv"}, ValueError, "needs images"),
        ({"network": "cnn"}, ValueError, "'network'"),
        ({"device": "quantum"}, ValueError, "device='quantum'"),
        ({"n_clusters": 0}, ValueError, "'n_clusters'"),
        ({"batch_size": 1}, ValueError, "'batch_size'"),
        ({"selection": "best"}, ValueError, "'selection'"),
        ({"learning_rate": 0}, ValueError, "'learning_rate'"),
        ({"early_stopping": 5}, ValueError, "'early_stopping'"),
        ({"callbacks": print}, ValueError, "'callbacks'"),
        (
            {"callbacks": [print]},
            TypeError,
            "callbacks must be objects of subclasses of ddclust.Callback, got <built-in",
        ),
        ({"callbacks": [Callback]}, TypeError, "callbacks must be objects of subclasses .* got <class"),
        ({"loss": DDCLoss(weights=dict.fromkeys(TERMS, 0))}, TypeError, "scalar tensors that depend"),
        ({"n_clusters": 151}, ValueError, r"n_clusters=151 is more than there are items \(n_samples=150\)"),
    ],
)
def test_wrong_parameters_are_named(blobs, options, error, message):
    with pytest.raises(error, match=message):
        quick(**options).fit(blobs[0])


def test_wrong_data_is_named(blobs, images):
    with pytest.raises(ValueError, match="identical"):
        quick().fit(np.ones((20, 4)))
    with pytest.raises(ValueError, match="shape"):
        quick().fit(np.ones((20, 4, 4, 4, 4)))
    with pytest.raises(ValueError, match="at least 8x8 pixels, got 5x8"):
        quick(network="conv").fit(images[:, :5])
    model = quick(2, max_iter=5).fit(images)
    with pytest.raises(ValueError, match=r"fitted on items of shape \(8, 8\)"):
        model.predict(images[:, :7])
    with pytest.raises(ValueError, match=r"array of shape \(n, 8, 8\)"):
        model.predict(images.reshape(60, 64))


def test_small_images_fall_back_to_the_mlp(images):
    model = quick(2, max_iter=5).fit(images[:, :5])
    assert type(model.modules_[0]).__name__ == "MLP"


def test_unused_clusters_are_warned_of():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)  # two distinct points
    with pytest.warns(ConvergenceWarning, match=r"uses [12] of the 4 clusters"):
        model = quick(4).fit(X)
    assert model.runs_[0]["clusters_used"] <= 2
    assert model.labels_.max() < 2  # no gaps


def test_a_failed_run_is_reported_and_never_chosen(blobs):
    X, _ = blobs
    calls = {"n": 0}

    def sometimes_broken(hidden, assignments):
        calls["n"] += 1
        terms = DDCLoss()(hidden, assignments)
        return terms._replace(corners=terms.corners * float("nan")) if calls["n"] == 11 else terms

    with pytest.warns(ConvergenceWarning, match="1 of 2 runs failed.*iteration 10.*corners"):
        model = quick(n_init=2, loss=sometimes_broken).fit(X)
    assert [run["outcome"] for run in model.runs_] == ["failed", "budget"]
    assert model.runs_[0]["loss"] is None
    assert model.voters_ == [1]


def test_all_runs_failed_is_an_error(blobs):
    with pytest.raises(ArithmeticError, match=r"All 2 runs failed.*learning_rate=1e\+30"):
        quick(n_init=2, learning_rate=1e30).fit(blobs[0])


def test_a_loss_that_ends_not_finite_is_a_failure(blobs):
    with pytest.raises(ArithmeticError, match=r"All 1 runs failed.*learning_rate=1e\+18"):
        quick(max_iter=1, learning_rate=1e18).fit(blobs[0])


def test_a_failed_fit_changes_nothing(blobs, images):
    X, _ = blobs
    model = quick(max_iter=5).fit(X)
    labels = model.labels_
    for bad in (np.ones((10, 3)), X[:2], np.full((5, 2), np.nan)):
        with pytest.raises(ValueError):  # noqa: PT011
            model.fit(bad)
    assert np.array_equal(model.predict(X), labels)
    fresh = quick()
    with pytest.raises(ValueError, match="identical"):
        fresh.fit(np.ones((10, 3)))
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_parameters_changed_after_the_fit_do_not_matter_to_predictions(blobs, tmp_path):
    X, _ = blobs
    model = quick(max_iter=5).fit(X).set_params(n_clusters=5, network="conv")
    assert np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "model")
    assert np.array_equal(DDC.load(tmp_path / "model").predict(X), model.labels_)


def test_another_scale_than_at_fit_is_warned_of(images):
    model = quick(2, max_iter=5).fit(images)
    with pytest.warns(UserWarning, match="0 to 255"):
        model.predict(images / 255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(images.astype(float))


def test_votes(blobs):
    X, _ = blobs
    model = quick(n_init=5, n_vote=3, max_iter=100, n_final=None).fit(X)
    assert len(model.modules_) == len(set(model.voters_)) == 3
    losses = np.array([run["loss"] for run in model.runs_])
    assert model.voters_ == np.argsort(losses)[:3].tolist()
    vote, probabilities = model.vote(X)
    assert np.array_equal(vote.labels, model.labels_)
    assert np.array_equal(probabilities, model.probabilities_)
    assert np.array_equal(probabilities.argmax(axis=1), model.labels_)
    assert set(np.unique(vote.agreement)) <= {1 / 3, 2 / 3, 1.0}  # of the voters
    assert set(np.unique(model.agreement_)) <= {i / 5 for i in range(1, 6)}  # of all runs
    singly = np.concatenate([model.predict(x[None]) for x in X[:20]])
    assert np.array_equal(singly, model.labels_[:20])
    # The paper's procedure on the single networks' labels gives the same partition.
    alone = []
    for module in model.modules_:
        with torch.no_grad():
            alone.append(module(model.scaling_(X))[1].argmax(1).numpy())
    assert clustering_accuracy(majority_vote(alone), model.labels_) == 1


def test_halving_keeps_the_best_of_each_stage(blobs):
    X, _ = blobs
    model = quick(n_init=6, n_vote=2, max_iter=80, selection=Selection(halving=True)).fit(X)
    assert [run["outcome"] for run in model.runs_].count("budget") == 2
    assert sorted(run["n_iter"] for run in model.runs_) == [10, 10, 10, 20, 80, 80]
    first_stage = [run["losses_at"]["10"] for run in model.runs_]
    gone = [i for i, run in enumerate(model.runs_) if run["n_iter"] == 10]
    assert min(first_stage[i] for i in gone) >= max(first_stage[i] for i in range(6) if i not in gone)
    assert all(model.runs_[i]["outcome"] == "budget" for i in model.voters_)


def test_convergence_and_budget(blobs):
    model = quick(augment=None, max_iter=20_000, early_stopping=EarlyStopping(patience=2, tol=0.01)).fit(
        blobs[0]
    )
    assert model.runs_[0]["outcome"] == "converged"
    assert model.n_iter_ < 20_000


def test_one_cluster(blobs):
    model = quick(1, max_iter=5).fit(blobs[0])
    assert (model.labels_ == 0).all()


def test_read_only_memory_map(tmp_path, images):
    path = tmp_path / "images.npy"
    np.save(path, images)
    mapped = np.load(path, mmap_mode="r")
    labels = quick(2, max_iter=10).fit(mapped).labels_
    assert np.array_equal(labels, quick(2, max_iter=10).fit(images).labels_)


def test_clone_and_pickle(blobs):
    X, _ = blobs
    model = quick(loss=DDCLoss(bandwidth=0.2)).fit(X)
    assert clone(model).get_params()["loss"] == DDCLoss(bandwidth=0.2)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.probabilities_)


def test_paper_s_protocol():
    model = DDC.paper(10, random_state=3)
    assert (model.n_init, model.max_iter, model.batch_size) == (20, 70_000, 100)
    assert (model.network, Network().init) == (Network("auto", init="auto", norm_first=False), "soft")
    assert model.early_stopping is model.augment is model.neighbors is None
    assert model.loss == DDCLoss.paper()


def test_progress_bar_only_if_verbose(blobs, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(max_iter=20).fit(blobs[0])
    assert capfd.readouterr() == ("", "")
    quick(max_iter=20, verbose=True).fit(blobs[0])
    assert "1 of 1 runs done" in capfd.readouterr().err


def test_items_judged_together_with_their_neighbours(blobs):
    X, _ = blobs
    model = quick(n_init=2, n_vote=2, max_iter=60).fit(X)
    smooth = model.smooth_member_probabilities(X, 4)
    hidden = model.transform(X).astype(np.float64)
    directions = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    own = model.member_probabilities(X)[0]
    for i in range(0, len(X), 7):
        near = np.argsort(-cosines[i], kind="stable")[:4]
        np.testing.assert_allclose(smooth[0][i], (own[i] + own[near].sum(axis=0)) / 5, atol=1e-4)
    assert np.array_equal(model.predict_smooth(X, 4), combine(smooth)[0].labels)
    with pytest.raises(ValueError, match="n_neighbors=5 must be .* less than n_samples=5"):
        model.predict_smooth(X[:5])


def test_items_of_every_kind_can_be_judged_together(blobs, tmp_path):
    X, _ = blobs
    few = {"n_init": 2, "n_vote": 2, "max_iter": 20}
    merged = quick(4, n_final=2, **few).fit(X)
    assert set(merged.predict_smooth(X)) <= {0, 1}
    merged.save(tmp_path / "m")
    assert np.array_equal(DDC.load(tmp_path / "m").predict_smooth(X), merged.predict_smooth(X))
    views = quick(2, **few).fit([X, -X])
    assert len(views.predict_smooth([X, -X])) == len(X)
    texts = ["gold rose", "gold fell", "wheat rain", "wheat sun"] * 5
    assert len(quick(2, **few).fit(texts).predict_smooth(texts, 3)) == 20


class Weighted:
    """A loss of a user's own that gives pairs a weight."""

    weights: ClassVar = {"pairs": 4.0}

    def __call__(self, hidden, assignments):
        return own_loss(hidden, assignments)


class Growing:
    """A loss of a user's own whose weight of pairs grows with the progress of training, and then stays."""

    settles_at = 0.5

    def __init__(self, log=None, pairs=4.0):
        self.log, self.weights = log, {"pairs": pairs}

    def at(self, progress):
        if self.log is not None:
            self.log.append(progress)
        return Growing(pairs=4.0 * min(progress / self.settles_at, 1))

    def __call__(self, hidden, assignments):
        return own_loss(hidden, assignments)


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_a_loss_of_one_s_own_follows_the_progress_of_training(blobs):
    log = []
    # The network stays as it is, so that only the weight changes the term.
    model = quick(max_iter=100, loss=Growing(log), neighbors=3, learning_rate=1e-30).fit(blobs[0])
    assert log == [iteration / 100 for iteration in range(100)]  # from 0 to below 1
    assert set(model.runs_[0]["terms"]) == {"value", "pairs"}
    first, second = (record["pairs"] for record in model.history_)
    assert second / first == pytest.approx(1 / 0.49, rel=0.02)  # the mean of 0, 0.02, … 0.98, and then 1


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_the_weight_of_pairs_is_that_of_a_loss_of_one_s_own(blobs):
    options = {"max_iter": 1, "neighbors": 3, "learning_rate": 1e-30}
    plain = quick(loss=own_loss, **options).fit(blobs[0]).runs_[0]["terms"]
    heavy = quick(loss=Weighted(), **options).fit(blobs[0]).runs_[0]["terms"]
    assert heavy["pairs"] == pytest.approx(4 * plain["pairs"])
    assert heavy["value"] == plain["value"]


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_early_stopping_waits_for_a_loss_of_one_s_own_to_settle(blobs):
    options = {"max_iter": 600, "early_stopping": EarlyStopping(patience=1, tol=0.99)}
    plain = quick(loss=own_loss, **options).fit(blobs[0])
    waiting = quick(loss=Growing(), **options).fit(blobs[0])
    assert (plain.runs_[0]["outcome"], plain.n_iter_) == ("converged", 100)
    assert (waiting.runs_[0]["outcome"], waiting.n_iter_) == ("converged", 400)  # settled at 300
