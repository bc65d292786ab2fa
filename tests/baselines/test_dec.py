"""DEC: its formulas by hand and by loops, its schedule, and what it shares with DDC."""

import math

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.cluster import KMeans
from torch import nn

from ddclust import DDC
from ddclust.baselines import DEC
from ddclust.baselines.dec import estimator, target
from ddclust.baselines.dec.estimator import PRETRAINING_RATES, step_decay
from ddclust.baselines.dec.network import DECNetwork, denoising_pair, student_t_logits
from ddclust.baselines.dec.target import target_distribution
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.data.batches import BatchSource, Scaling
from ddclust.storage.model_folder import ModelFormatError


def quick(**params):
    defaults = {"layers": (20, 5), "layer_iter": 100, "finetune_iter": 200, "random_state": 0}
    return DEC(3, **{**defaults, **params})


def test_assignments_by_a_loop():
    rng = np.random.default_rng(0)
    code, centers = rng.normal(size=(7, 4)), rng.normal(size=(3, 4))
    expected = np.empty((7, 3))
    for i in range(7):
        kernel = [1 / (1 + sum((code[i, d] - centers[j, d]) ** 2 for d in range(4))) for j in range(3)]
        expected[i] = [value / sum(kernel) for value in kernel]
    q = student_t_logits(torch.from_numpy(code), torch.from_numpy(centers)).softmax(dim=1)
    np.testing.assert_allclose(q.numpy(), expected, rtol=1e-12)


def test_target_by_a_loop():
    q = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    sizes = [sum(q[i, j] for i in range(6)) for j in range(3)]
    expected = np.empty((6, 3))
    for i in range(6):
        squares = [q[i, j] ** 2 / sizes[j] for j in range(3)]
        expected[i] = [value / sum(squares) for value in squares]
    np.testing.assert_allclose(target_distribution(torch.from_numpy(q)).numpy(), expected, rtol=1e-12)


def test_network_of_one_layer_by_hand():
    network = DECNetwork((2,), 2, (1,))
    with torch.no_grad():
        network.encoder[1].weight.copy_(torch.tensor([[1.0, -1.0]]))
        network.encoder[1].bias.zero_()
        network.centers.copy_(torch.tensor([[0.0], [2.0]]))
    code, logits = network(torch.tensor([[3.0, 2.0]]))
    assert code.tolist() == [[1.0]]  # as far from one centre as from the other
    np.testing.assert_allclose(logits.tolist(), [[-math.log(2), -math.log(2)]], rtol=1e-6)


def test_code_is_linear_and_other_layers_are_not():
    steps = [type(step) for step in DECNetwork((6,), 2, (5, 4, 3)).encoder]
    assert steps == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]


@pytest.mark.parametrize(
    ("is_first", "is_last", "kinds"),
    [
        (True, False, (nn.ReLU, nn.Identity)),
        (False, False, (nn.ReLU, nn.ReLU)),
        (False, True, (nn.Identity, nn.ReLU)),
    ],
)
def test_denoising_pair(is_first, is_last, kinds):
    pair = denoising_pair(nn.Linear(4, 3), nn.Linear(3, 4), is_first=is_first, is_last=is_last)
    assert (type(pair[2]), type(pair[5])) == kinds
    for corruption, width in ((pair[0], 4), (pair[3], 3)):
        assert 0.15 < (corruption(torch.ones(2000, width)) == 0).double().mean() < 0.25


def test_rate_falls_every_20_000_iterations():
    assert [step_decay(1.0)(i) for i in (0, 19_999, 20_000, 39_999, 40_000, 99_999)] == [
        1,
        1,
        0.1,
        0.1,
        0.01,
        1e-4,
    ]


@pytest.mark.parametrize("pretraining", ["adam", "sgd"])
@pytest.mark.parametrize(("layer_iter", "finetune_iter"), [(0, 20), (20, 0), (0, 0)])
def test_phases_can_be_left_out(images, tmp_path, pretraining, layer_iter, finetune_iter):
    model = quick(pretraining=pretraining, layer_iter=layer_iter, finetune_iter=finetune_iter, max_iter=5)
    model.fit(images).save(tmp_path / "model")
    phases = {"layer 1", "layer 2"} if layer_iter else set()
    assert set(model.runs_[0]["pretraining"]) == phases | ({"autoencoder"} if finetune_iter else set())


def test_predicting_the_images_of_the_fit_warns_of_nothing(recwarn):
    X = np.zeros((40, 8, 8), dtype=np.uint8)
    X[np.arange(40), np.arange(40) % 8, 3] = 255  # few bright pixels: far above 1 when the mean square is 1
    model = DEC(2, layers=(8, 3), layer_iter=5, finetune_iter=5, max_iter=5, random_state=0).fit(X)
    model.predict(X)
    assert not [w for w in recwarn if "another scale" in str(w.message)]


def test_layers_of_numpy_integers_are_saved(blobs, tmp_path):
    quick(layers=(np.int64(6), np.int64(2)), layer_iter=2, finetune_iter=2, max_iter=2).fit(blobs[0]).save(
        tmp_path / "model"
    )
    assert list(DEC.load(tmp_path / "model").layers) == [6, 2]


def test_scaling_is_one_factor():
    X = np.random.default_rng(0).normal(3, 2, size=(50, 4)) * [1, 10, 100, 1000]
    scaling = Scaling.to_unit_mean_square(X)
    assert len(np.unique(scaling.scale)) == 1
    assert not scaling.shift.any()
    x = BatchSource(X, scaling).batch(slice(None))
    assert x.square().mean().item() == pytest.approx(1, rel=1e-5)


def test_centred_scaling_takes_the_common_mean_away():
    X = np.random.default_rng(0).integers(150, 170, size=(50, 8, 8, 3)).astype(np.uint8)
    scaling = Scaling.to_unit_mean_square(X, center=True)
    assert np.unique(scaling.shift) == pytest.approx(X.mean())
    x = BatchSource(X, scaling).batch(slice(None))
    assert x.mean().item() == pytest.approx(0, abs=1e-5)
    assert x.square().mean().item() == pytest.approx(1, rel=1e-5)
    same = BatchSource(X[:, :1] * 0 + 7, Scaling.to_unit_mean_square(X[:, :1] * 0 + 7, center=True))
    assert not same.batch(slice(None)).any()  # constant data: no division by zero


def test_sparse_data_is_not_centred(blobs):
    with pytest.raises(ValueError, match="center=True is for dense data"):
        quick(center=True).fit(sparse.csr_matrix(np.abs(blobs[0])))


def test_finds_blobs(blobs):
    X, y = blobs
    model = quick().fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.99
    assert model.predict(X[:1]).shape == (1,)
    record = model.runs_[0]
    assert record["outcome"] == "converged"
    assert set(record["pretraining"]) == {"layer 1", "layer 2", "autoencoder"}
    q = model.probabilities_.astype(float)
    weights = q**2 / q.sum(axis=0)
    p = weights / weights.sum(axis=1, keepdims=True)
    assert record["loss"] == pytest.approx((p * np.log(p / q)).sum() / len(X), rel=1e-5)


def test_pretraining_learns_to_reproduce(blobs):
    X, _ = blobs
    short, long = (quick(finetune_iter=n).fit(X).runs_[0]["pretraining"]["autoencoder"] for n in (5, 300))
    assert long < 0.5 * short


def test_clustering_starts_from_k_means(blobs):
    """With a rate of almost nothing the labels are those of k-means on the code."""
    X, _ = blobs
    model = quick(learning_rate=1e-12, max_iter=200).fit(X)
    k_means = KMeans(3, n_init=20, random_state=0).fit(model.transform(X))
    assert clustering_accuracy(k_means.labels_, model.labels_) == 1
    assert model.n_iter_ == 140  # nothing has changed by the first refreshment of the target


def test_target_is_refreshed_at_the_interval(blobs, monkeypatch):
    X, _ = blobs
    calls = []

    def counted(q):
        calls.append(len(q))
        return target_distribution(q)

    for module in (estimator, target):
        monkeypatch.setattr(module, "target_distribution", counted)
    quick(tol=0, max_iter=90, update_interval=40).fit(X)
    assert calls == [150] * 4  # before the first step, after 40 and 80, and once to judge


@pytest.mark.parametrize("pretraining", ["adam", "sgd"])
def test_same_seed_same_labels(images, pretraining):
    first, second = (quick(pretraining=pretraining, max_iter=50).fit(images) for _ in range(2))
    np.testing.assert_array_equal(first.probabilities_, second.probabilities_)


def test_a_rate_that_is_too_large_is_an_error_that_says_what_to_do(blobs, monkeypatch):
    X, _ = blobs
    monkeypatch.setitem(PRETRAINING_RATES, "sgd", 1e6)
    with pytest.raises(ArithmeticError, match=r"Pre-training failed.*pretraining='adam'"):
        quick(pretraining="sgd").fit(X)


def test_images_texts_and_sparse_data(images):
    model = quick(layer_iter=20, finetune_iter=20, max_iter=20).fit(images)
    assert model.predict(images).tolist() == model.labels_.tolist()
    texts = ["the cat and the mouse", "cats chase mice", "stocks fell sharply", "the stock market fell"] * 5
    model = DEC(2, layers=(10, 3), layer_iter=20, finetune_iter=50, random_state=0).fit(texts)
    assert model.predict(texts[:3]).tolist() == model.labels_[:3].tolist()


def test_saved_and_loaded_it_predicts_the_same(blobs, tmp_path):
    X, _ = blobs
    model = quick(max_iter=50).fit(X)
    model.save(tmp_path / "model")
    loaded = DEC.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert loaded.runs_ == model.runs_
    with pytest.raises(ModelFormatError, match="is a DEC, not a DDC"):
        DDC.load(tmp_path / "model")


def test_wrong_layers(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match="layers=.* must hold at least one size"):
        quick(layers=()).fit(X)
    with pytest.raises(ValueError, match="positive integer"):
        quick(layers=(5, 0)).fit(X)


def test_a_failed_fit_leaves_the_model_as_it_was(blobs):
    X, _ = blobs
    model = quick(max_iter=20).fit(X)
    labels = model.labels_.copy()
    with pytest.raises(ValueError, match="identical"):
        model.fit(np.ones((10, 2)))
    np.testing.assert_array_equal(model.labels_, labels)


def test_paper_s_schedule():
    model = DEC.paper(10)
    assert (model.layer_iter, model.finetune_iter, model.pretraining) == (50_000, 100_000, "sgd")
    assert model.layers == (500, 500, 2000, 10)
