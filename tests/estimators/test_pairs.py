"""Pairs and links through the whole of DDC: results, resuming, workers, saving, errors."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

from ddclust import DDC, ConstantRate, CosineRate, DDCLoss, Selection
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.data import neighbors
from ddclust.data.batches import BatchSource
from ddclust.data.links import LinkError
from ddclust.data.neighbors import topic_vectors
from ddclust.objective.augment import Affine, Noise, Photo
from ddclust.storage.model_folder import ModelFormatError
from ddclust.training.checkpoints import CheckpointError, RunStore
from ddclust.training.run import judge
from helpers import assert_same, interrupted_fit, quick, timeless

pytestmark = pytest.mark.filterwarnings("ignore:The clustering uses")
TERMS = {"divergence", "orthogonality", "corners"}
LINKS = {"must_link": [[0, 1], [2, 3]], "cannot_link": [[0, 2]]}


def half_noise(x):
    """An augmentation of a user's own."""
    return x + 0.5 * torch.randn(x.shape)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {},
            "a randomly changed copy (Affine) of itself or of one of its 2 nearest neighbours.",
        ),
        (
            {"augment": half_noise, "neighbors": 3},
            "a randomly changed copy (half_noise) of itself or of one of its 3 nearest neighbours.",
        ),
        ({"augment": half_noise}, "a randomly changed copy (half_noise) of itself."),
        ({"neighbors": 3}, "one of its 3 nearest neighbours."),
        ({"augment": None}, None),
    ],
)
def test_a_verbose_fit_says_what_items_should_share_a_cluster_with(images, capsys, params, said):
    quick(2, max_iter=2, verbose=True, **params).fit(images)
    lines = [line for line in capsys.readouterr().err.splitlines() if "should share" in line]
    assert lines == ([] if said is None else [f"Each item should share its cluster with {said}"])


@pytest.mark.parametrize("shape", [(60, 8, 8), (60, 8, 8, 1), (60, 1, 8, 8)])
@pytest.mark.parametrize("augment", ["affine", "photo"])
def test_images_of_every_layout(images, shape, augment):
    model = quick(2, max_iter=40, augment=augment).fit(images.reshape(shape))
    assert clustering_accuracy([0] * 30 + [1] * 30, model.labels_) == 1
    assert set(model.runs_[0]["terms"]) == set(model.history_[-1]) - {"epoch", "iteration", "loss"}
    assert set(model.runs_[0]["terms"]) == TERMS | {"pairs"}


def test_colour_images_are_the_same_in_both_layouts(rng):
    X = rng.integers(0, 255, size=(20, 8, 8, 3), dtype=np.uint8)
    last = quick(2, max_iter=3, augment="photo").fit(X)
    first = quick(2, max_iter=3, augment="photo").fit(np.ascontiguousarray(np.moveaxis(X, 3, 1)))
    assert np.array_equal(last.probabilities_, first.probabilities_)


def test_vectors_and_sparse_vectors(blobs):
    X, y = blobs
    assert clustering_accuracy(y, quick(augment="noise", max_iter=200).fit(X).labels_) == 1
    assert clustering_accuracy(y, quick(neighbors=5, max_iter=200).fit(X).labels_) == 1
    words = scipy.sparse.csr_array(np.abs(X))
    model = quick(augment="dropout", neighbors=3, max_iter=5).fit(words)
    assert set(model.runs_[0]["terms"]) == TERMS | {"pairs"}


def test_neighbours_are_by_the_cosine_of_topics_for_sparse_data(monkeypatch):
    asked = []
    real = neighbors.nearest_neighbors

    def nearest_neighbors(X, n_neighbors, *, metric="euclidean", verbose=False):
        if n_neighbors != 4:  # those that topics are smoothed over
            return real(X, n_neighbors, metric=metric, verbose=verbose)
        asked.append((metric, X, n_neighbors))
        return neighbors.Neighbors(*np.zeros((2, X.shape[0], n_neighbors), dtype=np.int64))

    monkeypatch.setattr(neighbors, "nearest_neighbors", nearest_neighbors)
    X = np.random.default_rng(0).random((20, 8, 8))
    quick(2, max_iter=1, neighbors=4).fit(X)
    matrix = scipy.sparse.csr_array(X.reshape(20, 64))
    quick(2, max_iter=1, neighbors=4).fit(matrix)
    quick(2, max_iter=1, neighbors=4).fit(["red apple pie", "green apple tart", "blue sky now"] * 7)
    assert [metric for metric, *_ in asked] == ["euclidean", "cosine", "cosine"]
    assert [(vectors.shape[0], n) for _, vectors, n in asked] == [(20, 4), (20, 4), (21, 4)]
    assert asked[0][1].shape == (20, 64)
    np.testing.assert_allclose(asked[1][1], topic_vectors(matrix.astype(np.float32)), rtol=1e-4, atol=1e-5)


def test_links_decide_what_the_values_do_not():
    """Four groups at the corners of a square are two clusters in two ways; links say which."""
    rng = np.random.default_rng(0)
    corner = np.repeat([[0, 0], [0, 6], [6, 0], [6, 6]], 25, axis=0)
    X = corner + rng.normal(scale=0.3, size=(100, 2))
    for axis in (0, 1):
        truth = corner[:, axis] > 0
        pairs = rng.integers(100, size=(60, 2))
        alike = truth[pairs[:, 0]] == truth[pairs[:, 1]]
        pairs, alike = pairs[pairs[:, 0] != pairs[:, 1]], alike[pairs[:, 0] != pairs[:, 1]]
        model = quick(2, max_iter=200).fit(X, must_link=pairs[alike], cannot_link=pairs[~alike])
        assert clustering_accuracy(truth, model.labels_) == 1
        assert set(model.runs_[0]["terms"]) == TERMS | {"pairs", "must_link", "cannot_link"}


def test_fit_predict_takes_links(blobs):
    X, _ = blobs
    labels = quick(max_iter=20).fit_predict(X, **LINKS)
    assert np.array_equal(labels, quick(max_iter=20).fit(X, **LINKS).labels_)


def test_a_falling_rate_ends_elsewhere(blobs):
    X, _ = blobs
    constant, cosine = (
        quick(max_iter=50, learning_rate=rate(1e-3)).fit(X) for rate in (ConstantRate, CosineRate)
    )
    assert constant.history_[-1]["loss"] != cosine.history_[-1]["loss"]
    assert_same(cosine, quick(max_iter=50, learning_rate=1e-3).fit(X))  # with pairs a number falls, too


# --- resuming, workers, judging ---------------------------------------------------------------

KINDS = {
    "copies": ({"augment": "noise"}, {}),
    "own copies": ({"augment": half_noise}, {}),
    "neighbours": ({"neighbors": 4}, {}),
    "links": ({"batch_size": 2}, LINKS),  # one of the two pairs is drawn for a batch
    "all": ({"augment": "noise", "neighbors": 4}, LINKS),
}


class Linked:
    """Something to fit with the links already given."""

    def __init__(self, model, links):
        self.model, self.links = model, links

    def fit(self, X):
        return self.model.fit(X, **self.links)


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_resumed_it_ends_the_same(blobs, tmp_path, monkeypatch, kind):
    X = blobs[0][::3]
    options, links = KINDS[kind]
    options = {"n_init": 2, "max_iter": 12, **options}
    undisturbed = quick(**options).fit(X, **links)
    for moment in (5, 15):
        model = Linked(quick(**options, checkpoint_dir=tmp_path / str(moment)), links)
        interrupted_fit(model, X, monkeypatch, moment)
        assert_same(model.fit(X), undisturbed)


def test_chance_changes_what_training_sees(blobs):
    """Were the copies the same for every seed, or no copies at all, resuming would prove nothing."""
    X, _ = blobs
    torch.manual_seed(0)
    x = torch.zeros(3, 2)
    assert not torch.equal(half_noise(x), half_noise(x))
    losses = [quick(max_iter=2, augment=Noise(s)).fit(X).history_[0]["loss"] for s in (0.0, 0.5)]
    assert losses[0] != losses[1]


def test_workers_find_the_same(images):
    options = {"n_init": 3, "max_iter": 12, "augment": "affine", "neighbors": 4}
    options["selection"] = Selection(halving=True)
    here, there = (quick(2, n_jobs=n_jobs, **options).fit(images, **LINKS) for n_jobs in (1, 2))
    assert_same(here, there)


def test_neighbours_are_found_once(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    options = {"max_iter": 5, "neighbors": 4, "checkpoint_dir": tmp_path}
    first = quick(**options).fit(X)
    monkeypatch.setattr("ddclust.ddc.neighbors_of", None)
    assert_same(quick(**options).fit(X), first)
    (tmp_path / "neighbors").write_bytes(b"damaged")
    with pytest.raises(TypeError):  # they are not there to be read, so they would be sought again
        quick(**options).fit(X)


def test_what_is_remembered_survives_the_file(tmp_path):
    store, array = RunStore(tmp_path), np.arange(12, dtype=np.int32).reshape(4, 3)
    assert store.remembered("a", lambda: array) is array
    read = store.remembered("a", lambda: None)
    assert read.dtype == np.int32
    assert np.array_equal(read, array)


def test_runs_are_judged_alike(images):
    """The same network is judged the same, whatever the random state, which stays as it was."""
    model = quick(2, augment="affine", neighbors=3)
    X = model._items(images)
    plan = model._plan(X, **LINKS)
    plan = replace(plan, pairs=replace(plan.pairs, neighbors=np.arange(120).reshape(60, 2) % 60))
    source = BatchSource(X, plan.scaling)
    torch.manual_seed(0)
    module = plan.build()
    torch.manual_seed(1)
    first = judge(plan, module, source)
    state = torch.get_rng_state()
    assert judge(plan, module, source) == first
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert judge(plan, module, source) == first
    assert set(first[0]) == TERMS | {"pairs", "must_link", "cannot_link"}


def test_other_pairs_are_another_fit(blobs, tmp_path):
    X, _ = blobs
    model = quick(max_iter=5, checkpoint_dir=tmp_path).fit(X, **LINKS)
    with pytest.raises(CheckpointError, match="the pairs of cannot_link differ"):
        model.fit(X, must_link=LINKS["must_link"], cannot_link=[[0, 4]])
    with pytest.raises(
        CheckpointError, match="the pairs of must_link differ; the pairs of cannot_link differ"
    ):
        model.fit(X)
    with pytest.raises(
        CheckpointError,
        match=r"augment is None there and \{'Noise': .* here; neighbors is 10 there and None here",
    ):
        quick(max_iter=5, checkpoint_dir=tmp_path, augment="noise").fit(X, **LINKS)


# --- saving, cloning, pickling ----------------------------------------------------------------


@pytest.mark.parametrize(
    "augment", ["affine", Affine(rotation=30), Photo(flip=0, padding="border"), Noise(0.1)]
)
def test_saved_and_loaded(images, tmp_path, augment):
    model = quick(2, max_iter=3, augment=augment, neighbors=2, loss=DDCLoss(weights={"pairs": 0.5})).fit(
        images
    )
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(images), model.probabilities_)
    assert loaded.get_params() == model.get_params()
    assert loaded.setup_ == model.setup_
    assert timeless(loaded) == timeless(model)
    json.dumps(loaded.runs_)


def test_an_augmentation_of_one_s_own_is_given_again(blobs, tmp_path):
    X, _ = blobs
    model = quick(max_iter=3, augment=half_noise).fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFormatError, match="augment of the user's own, '.*half_noise'"):
        DDC.load(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model", augment=half_noise)
    assert np.array_equal(loaded.predict(X), model.labels_)


def test_clones_and_pickles(blobs):
    X, _ = blobs
    model = quick(max_iter=3, augment=Noise(0.3), neighbors=2).fit(X, **LINKS)
    assert clone(model).augment == Noise(0.3)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)
    assert np.array_equal(clone(model).fit(X, **LINKS).probabilities_, model.probabilities_)


# --- errors -----------------------------------------------------------------------------------


class Pair(tuple):
    _fields = ("pairs",)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"augment": "affine"}, ValueError, r"Affine changes images .* got a batch of shape \(2, 2\)"),
        ({"augment": "blur"}, ValueError, "'augment' parameter"),
        (
            {"augment": lambda x: x[:1]},
            TypeError,
            r"augment must return .* of shape \(2, 2\).* returned \(1, 2\)",
        ),
        ({"augment": lambda x: x.double()}, TypeError, "augment must return .* returned .* of torch.float64"),
        ({"augment": lambda x: None}, TypeError, "augment must return .* it returned NoneType"),
        ({"neighbors": 150}, ValueError, "neighbors=150 should be < n_samples=150"),
        ({"neighbors": 0}, ValueError, "'neighbors' parameter"),
        ({"loss": "best"}, ValueError, "'loss' parameter"),
        (
            {"loss": lambda hidden, assignments: Pair([hidden.sum()])},
            ValueError,
            "called 'pairs', as a term of pairs is; rename it",
        ),
    ],
)
def test_wrong_parameters_are_named(blobs, options, error, message):
    with pytest.raises(error, match=message):
        quick(max_iter=2, **options).fit(blobs[0])


def test_contradictions_are_found_before_training(blobs, monkeypatch):
    monkeypatch.setattr("ddclust.training.engine.run_all", None)
    with pytest.raises(LinkError, match="separates items 0 and 2, but must_link joins them: 0 - 1 - 2"):
        quick().fit(blobs[0], must_link=[[0, 1], [1, 2]], cannot_link=[[0, 2]])
    with pytest.raises(LinkError, match="names item 150"):
        quick().fit(blobs[0], must_link=[[0, 150]])


def test_weights_of_pairs_and_links(blobs):
    """The final loss of a run has its terms with their weights."""
    X, _ = blobs

    def terms(**weights):
        # No iteration that would change the network: the rate is tiny.
        model = quick(max_iter=1, learning_rate=ConstantRate(1e-30), loss=DDCLoss(weights=weights))
        return model.fit(X, **LINKS).runs_[0]["terms"]

    plain, weighted = terms(), terms(pairs=3, must_link=0.5, cannot_link=0)
    assert weighted["pairs"] == pytest.approx(3 * plain["pairs"])
    assert weighted["must_link"] == pytest.approx(plain["must_link"] / 2)
    assert weighted["cannot_link"] == 0 < plain["cannot_link"]
    assert weighted["divergence"] == plain["divergence"]
