"""Outputs that become parts of fewer clusters in the course of training."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from ddclust import DDC, DDCLoss, clustering_accuracy
from ddclust.data.batches import BatchSource
from ddclust.objective.pairs import divergence_from_anchors
from ddclust.objective.regrouping import EQUAL_SHARE, FORGOTTEN, FineStage, Regrouping
from ddclust.training.setup import Plan, regrouping_of
from helpers import Small, assert_same, interrupted_fit, plan_of, quick, setup_of

GROUPS, SHARES = np.array([1, 0, 1, 2]), np.array([0.5, 0.3, 0.2])
pytestmark = pytest.mark.filterwarnings("ignore:The clustering uses")


@pytest.fixture
def regrouping():
    regrouping = Regrouping()
    regrouping.begin(GROUPS, SHARES)
    return regrouping


@pytest.fixture(scope="module")
def striped():
    """200 images with a bright stripe, across or along, the first kind nine times as often."""
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 0.2, size=(200, 8, 8)).astype("float32")
    images[:180, 3:5] += 0.8
    images[180:, :, 3:5] += 0.8
    return images


def test_assignments_of_clusters_are_sums_of_those_of_their_outputs(regrouping):
    logits = torch.randn(5, 4, dtype=torch.float64)
    A = logits.softmax(dim=1)
    expected = torch.stack([A[:, 1], A[:, 0] + A[:, 2], A[:, 3]], dim=1)
    torch.testing.assert_close(regrouping.joined(logits).softmax(dim=1), expected)


def test_joined_logits_have_gradients_however_unlikely_a_cluster_is(regrouping):
    logits = torch.tensor([[0.0, -500.0, 0.0, -900.0]], dtype=torch.float64, requires_grad=True)
    joined = regrouping.joined(logits)
    assert joined[0, 2].item() == pytest.approx(-900 - np.log(2))
    joined[0, 2].backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 3].item() == pytest.approx(1)
    small = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(regrouping.joined, small)


def test_sizes_follow_those_of_the_batches(regrouping):
    logits = torch.tensor([[20.0, 0, 0], [20, 0, 0], [0, 20, 0], [0, 0, 20]]).double()
    batch = logits.softmax(dim=1).mean(dim=0)
    regrouping.note(logits)
    expected = (1 - FORGOTTEN) * torch.from_numpy(SHARES) + FORGOTTEN * batch
    torch.testing.assert_close(regrouping.shares, expected)
    drawn_to = torch.tensor(regrouping.sized(DDCLoss()).cluster_sizes, dtype=torch.float64)
    torch.testing.assert_close(drawn_to, (1 - EQUAL_SHARE) * expected + EQUAL_SHARE / 3)


def test_an_objective_groups_outputs_when_the_fine_stage_ends(blobs):
    X = blobs[0].astype("float32")
    fine = FineStage(2, DDCLoss(weights={"divergence": 0, "corners": 0}), until=0.5)
    asked = []

    def find(module, objective, n_outputs, n_groups):
        asked.append((n_outputs, n_groups))
        return np.array([0, 1, 1, 0]), np.array([0.5, 0.5])

    plan = plan_of(X, n_clusters=4, max_iter=9, fine=fine)
    plan = Plan(plan.setup, plan.scaling, find_groups=find)
    objective, source = plan.objective(BatchSource(X, plan.scaling)), BatchSource(X, plan.scaling)
    module, indices = Small((2,), 4), np.arange(20)
    terms = objective(module, source.batch(indices), indices, 4)
    assert not asked
    assert terms.divergence == 0
    terms = objective(module, source.batch(indices), indices, 5)
    assert asked == [(4, 2)]
    assert terms.divergence > 0
    assert objective.evaluated(module, source.batch(indices), indices)[1].shape == (20, 2)
    objective(module, source.batch(indices), indices, 6)
    assert len(asked) == 1
    assert plan.setup.settles_at == 5


def test_runs_are_judged_without_a_pull_to_any_sizes(blobs):
    X = blobs[0].astype("float32")
    setup = setup_of(n_clusters=4, fine=FineStage(2))
    plan = Plan(setup, plan_of(X).scaling)
    source, indices = BatchSource(X, plan.scaling), np.arange(20)
    regrouping = Regrouping(torch.tensor([0, 1, 1, 0]), torch.tensor([0.5, 0.5]))
    terms, _ = plan.objective(source, regrouping).evaluated(Small((2,), 4), source.batch(indices), indices)
    assert terms.orthogonality == 0
    assert terms.divergence > 0


@pytest.mark.parametrize("moment", [3, 9])
def test_a_stopped_fit_goes_on_with_its_groups(striped, tmp_path, monkeypatch, moment):
    """Whether it was stopped before the outputs were grouped, or after."""
    options = {"n_final": "auto", "network": "mlp", "max_iter": 12}
    undisturbed = quick(2, **options).fit(striped)
    assert undisturbed.setup_.fine.n_groups == undisturbed.n_clusters_ == 2
    model = quick(2, **options, checkpoint_dir=tmp_path / "checkpoints")
    interrupted_fit(model, striped, monkeypatch, moment)
    assert_same(model.fit(striped), undisturbed)


def test_the_fitted_clusters_are_the_groups(striped, tmp_path):
    model = quick(2, network="mlp", max_iter=12)
    plan, states = model._train(model._items(striped), model._plan(model._items(striped)), [0])
    groups = regrouping_of(states[0].tensors).groups.numpy()
    assert len(groups) == plan.setup.n_clusters == 8
    model = quick(2, network="mlp", max_iter=12).fit(striped)
    assert model.predict_proba(striped).shape == (200, 2)
    assert model.score(striped) == pytest.approx(-model.runs_[0]["loss"], rel=1e-5)
    model.save(tmp_path / "model")
    again = DDC.load(tmp_path / "model")
    assert again.setup_ == model.setup_
    assert again.score(striped) == model.score(striped)
    assert np.array_equal(again.predict(striped), model.labels_)


@pytest.mark.parametrize("selection", ["loss", "agreement"])
def test_confidence_is_that_of_the_groups(striped, selection):
    """The labels of runs that are not kept, of copies and of refused items are those of clusters, not of outputs."""
    options = {"network": "mlp", "max_iter": 30, "n_init": 3, "learning_rate": 1e-3}
    model = quick(2, **options, selection=selection).fit(striped)
    assert model.setup_.n_clusters == 8
    aligned = model.agreement_ * 3
    assert np.allclose(aligned, aligned.round())
    assert model.probabilities_.shape == (200, 2)
    assert np.array_equal(model.probabilities_.argmax(axis=1), model.labels_)
    assert set(model.predict(striped, reject=0.1)) <= {-1, 0, 1}
    assert (model.predict(striped, reject=0.1) == -1).mean() <= 0.2


def test_a_fit_too_short_to_group_merges_at_its_end(striped):
    model = quick(2, network="mlp", max_iter=1).fit(striped)
    assert model.n_clusters_ == 2


@pytest.mark.slow
def test_a_rare_kind_of_image_gets_a_cluster_of_its_own(striped):
    truth = np.arange(200) >= 180
    found = DDC(2, n_init=1, max_iter=150, random_state=0, n_jobs=1).fit_predict(striped)
    assert clustering_accuracy(truth, found) >= 0.98
    equal = DDC(2, n_init=1, max_iter=150, random_state=0, n_jobs=1, n_final=None).fit_predict(striped)
    assert clustering_accuracy(truth, equal) < 0.9


@pytest.fixture(scope="module")
def sparse_topics():
    """180 texts of one topic and 20 of another, as counts of words."""
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(40) < 20, [[1.0], [0.1]], [[0.1], [1.0]])  # (2, 40)
    truth = np.repeat([0, 1], [180, 20])
    return csr_array(rng.poisson(rates[truth]).astype("float32")), truth


def test_what_was_found_in_training_is_learnt_and_does_not_judge(blobs):
    X = blobs[0].astype("float32")
    setup = setup_of(n_clusters=2, fine=FineStage(2), loss=DDCLoss(weights={"anchor": 3}))
    plan = Plan(setup, plan_of(X).scaling)
    source, indices, module = BatchSource(X, plan.scaling), np.arange(5, 20), Small((2,), 2)
    anchors = np.random.default_rng(0).dirichlet([1, 1], size=len(X)).astype("float32")
    regrouping = Regrouping()
    regrouping.begin(np.arange(2), np.array([0.5, 0.5]), anchors)
    objective = plan.objective(source, regrouping)
    terms, logits = objective.evaluated(module, source.batch(indices), indices, 1)
    expected = 3 * divergence_from_anchors(logits, torch.from_numpy(anchors[indices]))
    torch.testing.assert_close(terms.anchor, expected)
    judged, _ = objective.evaluated(module, source.batch(indices), indices)
    assert not hasattr(judged, "anchor")


def test_the_sizes_of_texts_are_those_by_words(sparse_topics):
    X, truth = sparse_topics
    options = {"max_iter": 300, "learning_rate": "auto"}
    model = quick(2, **options).fit(X)
    assert model.setup_.fine.n_groups == model.n_clusters_ == model.setup_.n_clusters == 2
    assert clustering_accuracy(truth, model.labels_) >= 0.98
    assert "anchor" in model.history_[-1]
    assert "anchor" not in model.runs_[0]["terms"]
    assert model.score(X) == pytest.approx(-model.runs_[0]["loss"], rel=1e-5)
    equal = quick(2, **options, n_final=None).fit(X)
    assert equal.setup_.fine is None
    assert clustering_accuracy(truth, equal.labels_) < 0.9


@pytest.mark.parametrize("moment", [3, 10])
def test_a_stopped_fit_of_texts_goes_on_with_its_words(sparse_topics, tmp_path, monkeypatch, moment):
    X, _ = sparse_topics
    undisturbed = quick(2, max_iter=14).fit(X)
    model = quick(2, max_iter=14, checkpoint_dir=tmp_path / "checkpoints")
    interrupted_fit(model, X, monkeypatch, moment)
    assert_same(model.fit(X), undisturbed)
