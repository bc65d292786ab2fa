"""What every "auto" stands for: documented values for images, texts, vectors and views."""

import numpy as np
import pytest
import scipy.sparse
import torch

from ddclust import (
    DDC,
    Affine,
    ConstantRate,
    CosineRate,
    DDCLoss,
    Dropout,
    EarlyStopping,
    Network,
    Noise,
    Selection,
)
from ddclust.data.items import BlockItems, SparseItems
from ddclust.data.views import ViewItems
from ddclust.defaults import default_pairs
from ddclust.networks import MLP, NetworkOfViews
from helpers import own_loss, quick


def test_the_loss_goes_with_pairs(blobs):
    def chosen(**options):
        model = quick(4, n_final=None, **options)
        return model._plan(model._items(blobs[0])).setup.loss

    def weights(divergence, orthogonality, corners, **others):
        pairs = {"pairs": 1, "must_link": 1, "cannot_link": 1, "anchor": 10}
        return pairs | {"divergence": divergence, "orthogonality": orthogonality, "corners": corners} | others

    ones, with_pairs = weights(1, 1, 1), weights(0.75, 5, 0.75)
    assert chosen(augment=None) == chosen(neighbors=None) == DDCLoss(weights=ones)
    expected = DDCLoss(weights=with_pairs, start_weights={"orthogonality": 50})
    assert chosen() == chosen(augment="noise") == chosen(neighbors=3) == expected
    assert chosen(loss=DDCLoss()) == expected
    assert chosen(loss=DDCLoss(bandwidth=0.3)) == DDCLoss(
        bandwidth=0.3, weights=with_pairs, start_weights={"orthogonality": 50}
    )
    # A weight of orthogonality that is given counts from the start; others leave the start as it is.
    strong = DDCLoss(weights={"orthogonality": 7})
    assert chosen(loss=strong) == DDCLoss(weights=weights(0.75, 7, 0.75))
    assert chosen(loss=strong, augment=None) == DDCLoss(weights=weights(1, 7, 1))
    attracted = DDCLoss(weights={"pairs": 2, "corners": 0})
    assert chosen(loss=attracted) == DDCLoss(
        weights=weights(0.75, 5, 0, pairs=2), start_weights={"orthogonality": 50}
    )
    begun = DDCLoss(start_weights={"pairs": 9})
    assert chosen(loss=begun) == DDCLoss(weights=with_pairs, start_weights={"pairs": 9})
    assert chosen(loss=DDCLoss.paper(), augment=None).weights == ones
    sizes = (4, 3, 2, 1)
    assert chosen(loss=DDCLoss(cluster_sizes=sizes)) == DDCLoss(
        weights=weights(0.75, 25, 0.75), cluster_sizes=sizes
    )
    both = DDCLoss(cluster_sizes=sizes, weights={"orthogonality": 7})
    assert chosen(loss=both).weights == weights(0.75, 7, 0.75)
    assert chosen(loss=DDCLoss(cluster_sizes=sizes), augment=None) == DDCLoss(
        weights=ones, cluster_sizes=sizes
    )
    assert chosen(loss=own_loss) is own_loss


@pytest.mark.parametrize(
    ("shape", "augment", "neighbors"),
    [
        ((50, 28, 28), Affine(), 2),
        ((50, 32, 32, 3), Affine(), 2),
        ((50, 7), None, 10),
        ((5, 7), None, 4),
        ((1, 7), None, None),
    ],
)
def test_data_get_pairs_of_their_kind(shape, augment, neighbors):
    assert default_pairs(np.zeros(shape)) == (augment, neighbors)


def test_other_data_get_pairs_of_their_kind():
    assert default_pairs(SparseItems(scipy.sparse.csr_array(np.eye(50)))) == (Dropout(0.8), 20)
    assert not default_pairs(ViewItems([np.zeros((5, 2)), np.zeros((5, 3))])).exist
    assert default_pairs(BlockItems(np.zeros((50, 28, 28)))) == (Affine(), 2)
    assert default_pairs(np.lib.stride_tricks.as_strided(np.zeros(1), (2**20, 600), (0, 0))) == (None, None)


@pytest.mark.parametrize(
    "named",
    [
        {"augment": None},
        {"neighbors": None},
        {"loss": DDCLoss(), "augment": None},
        {"loss": DDCLoss.paper(), "neighbors": None},
    ],
)
def test_who_names_a_part_gets_no_pairs_unasked(named, blobs):
    X, _ = blobs
    model = quick(max_iter=5, **named).fit(X)
    assert "pairs" not in model.runs_[0]["terms"]
    assert np.array_equal(model.labels_, quick(max_iter=5, augment=None, neighbors=None).fit(X).labels_)
    for others in ({}, {"loss": DDCLoss()}):
        assert "pairs" in quick(max_iter=5, **others).fit(X).runs_[0]["terms"]


@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ({"augment": None}, ConstantRate(1e-5)),
        ({"augment": None, "learning_rate": 0.01}, ConstantRate(0.01)),
        ({"augment": None, "learning_rate": CosineRate(1e-5)}, CosineRate(1e-5)),
        ({}, CosineRate(3e-3)),
        ({"neighbors": 3}, CosineRate(3e-3)),
        ({"augment": "noise", "learning_rate": 0.01}, CosineRate(0.01)),
        ({"augment": "noise", "learning_rate": ConstantRate(0.01)}, ConstantRate(0.01)),
    ],
)
def test_the_rate_goes_with_pairs(options, rate, blobs):
    model = DDC(3, anchor=None, **options)
    setup = model._plan(model._items(blobs[0])).setup
    assert setup.learning_rate == rate
    assert setup.early_stopping == (EarlyStopping() if isinstance(rate, ConstantRate) else None)


@pytest.mark.parametrize(
    ("kind", "options", "rate"),
    [
        (scipy.sparse.csr_array, {}, 3e-3),
        (np.asarray, {}, 3e-3),
        (scipy.sparse.csr_array, {"augment": None}, 1e-5),
        (scipy.sparse.csr_array, {"learning_rate": 0.5}, 0.5),
    ],
)
def test_the_rate_that_goes_with_the_data(rng, kind, options, rate):
    model = DDC(2, anchor=None, **options)
    items = model._items(kind((rng.random((30, 5)) < 0.5).astype(np.float32)))
    assert model._plan(items).setup.learning_rate.rate == rate


def setup_for(X, **params):
    model = DDC(3, **params)
    return model._plan(model._items(X)).setup


TEXTS = [
    f"{a} {b} market" for a in ("oil", "rain", "goal") for b in ("one", "two", "three", "four", "five")
] * 2


def data(kind):
    rng = np.random.default_rng(0)
    if kind == "images":
        return rng.integers(0, 255, size=(30, 28, 28), dtype=np.uint8)
    if kind == "small images":
        return rng.normal(size=(30, 7, 7))
    if kind == "texts":
        return TEXTS
    if kind == "vectors":
        return rng.normal(size=(30, 4))
    return [rng.normal(size=(30, 4)), rng.integers(0, 255, size=(30, 9, 9), dtype=np.uint8)]


@pytest.mark.parametrize(
    ("kind", "network", "augment", "neighbors", "rate", "weights", "start"),
    [
        ("images", Network("conv"), Affine(), 2, CosineRate(3e-3), (0.5, 5, 0.5), 50),
        ("small images", Network("mlp"), Affine(), 2, CosineRate(1e-4), (0.5, 5, 0.5), 50),
        ("texts", Network("mlp"), Dropout(0.8), 20, CosineRate(3e-3), (0.5, 5, 0.5), None),
        ("vectors", Network("mlp"), None, 10, CosineRate(3e-3), (0.5, 5, 0.5), 50),
        ("views", NetworkOfViews(Network(), ((4,), (9, 9))), None, None, ConstantRate(1e-3), (1, 1, 1), None),
    ],
)
def test_every_auto_is_resolved(kind, network, augment, neighbors, rate, weights, start):
    setup = setup_for(data(kind), anchor=None)
    assert setup.network == network
    assert (setup.augment, setup.neighbors) == (augment, neighbors)
    assert setup.has_pairs == (kind != "views")
    assert setup.learning_rate == rate
    assert setup.early_stopping == (EarlyStopping(patience=10, tol=1e-3) if kind == "views" else None)
    assert tuple(setup.loss.weights[name] for name in ("divergence", "orthogonality", "corners")) == weights
    assert setup.loss.start_weights == ({} if start is None else {"orthogonality": start})
    assert (setup.criterion, setup.halving) == ("loss", False)
    assert isinstance(setup.device, torch.device)
    assert "auto" not in str(setup).replace("kind=auto", "")  # the kind of each view is known from its shape


def test_a_single_run_uses_all_threads():
    X = data("vectors")
    assert setup_for(X, n_init=2).threads == 1
    torch.set_num_threads(2)
    try:
        assert (setup_for(X, n_init=1).threads, setup_for(X, n_init=2).threads) == (2, 1)
    finally:
        torch.set_num_threads(1)


def test_what_is_said_is_taken_as_it_is():
    X = data("vectors")
    setup = setup_for(
        X,
        network=Network("mlp", init="he", norm_first=True),
        augment=Noise(0.2),
        neighbors=4,
        learning_rate=CosineRate(0.5),
        early_stopping=EarlyStopping(3),
        selection=Selection("agreement", halving=True),
    )
    assert setup.network == Network("mlp", init="he", norm_first=True)
    assert (setup.augment, setup.neighbors) == (Noise(0.2), 4)
    assert (setup.learning_rate, setup.early_stopping) == (CosineRate(0.5), EarlyStopping(3))
    assert (setup.criterion, setup.halving) == ("agreement", True)
    assert setup_for(X, network=MLP).network is MLP
    assert setup_for(X, network=MLP).learning_rate == CosineRate(1e-3)


def test_a_loss_of_one_s_own_has_pairs_only_if_asked_for():
    X = data("vectors")
    assert not setup_for(X, loss=own_loss).has_pairs
    assert setup_for(X, loss=own_loss, neighbors=3).has_pairs


def test_nothing_is_resolved_twice(monkeypatch, tmp_path):
    """k-means is the costliest of what is resolved: one fit asks for it once, and so does a resumed one."""
    from ddclust import defaults

    calls = []
    real = defaults.k_means_sizes
    monkeypatch.setattr(defaults, "k_means_sizes", lambda *a: calls.append(1) or real(*a))
    model = quick(max_iter=5, n_init=2, loss=DDCLoss(cluster_sizes="k-means"), checkpoint_dir=tmp_path / "c")
    X = data("vectors")
    model.fit(X).predict(X)
    assert len(calls) == 1
    model.save(tmp_path / "m")
    assert DDC.load(tmp_path / "m").setup_ == model.setup_
    assert len(calls) == 1
