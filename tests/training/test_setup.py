"""Setups: what they print, and which of them are the same work."""

import json

import pytest
import torch

from ddclust import ConstantRate, CosineRate, DDCLoss, EarlyStopping, Network, Snapshots
from ddclust.objective.augment import Affine, Noise
from ddclust.training.callbacks import Callback
from helpers import Small, own_loss, plan_of, quick, setup_of


def test_a_setup_is_printed_as_a_table():
    lines = str(
        setup_of(learning_rate=CosineRate(3e-3), augment=Noise(0.25), early_stopping=EarlyStopping(4))
    ).splitlines()
    table = dict(line.split(maxsplit=1) for line in lines)
    assert table["n_clusters"] == "3"
    assert table["network"] == "Network(kind=mlp, init=soft, norm_first=False)"
    assert table["learning_rate"] == "CosineRate(rate=0.003)"
    assert table["early_stopping"] == "EarlyStopping(patience=4, tol=0.001)"
    assert table["augment"] == "Noise(scale=0.25)"
    assert table["neighbors"] == "None"
    assert table["loss"].startswith("DDCLoss(bandwidth=0.15, bandwidth_rule=squared_median, ")
    assert table["device"] == "cpu"
    assert len({line.index(table[line.split()[0]]) for line in lines}) == 1  # values stand below each other


def test_what_is_the_user_s_own_is_printed_by_name():
    lines = str(setup_of(network=Small, loss=own_loss)).splitlines()
    assert "network         helpers.Small" in lines
    assert "loss            helpers.own_loss" in lines


def test_a_fitted_model_prints_its_setup(blobs):
    model = quick(max_iter=2, loss=DDCLoss(weights={"pairs": 2})).fit(blobs[0])
    weights = (
        "divergence: 0.5, orthogonality: 5, corners: 0.5, pairs: 2, must_link: 1, cannot_link: 1, anchor: 10"
    )
    assert f"weights={{{weights}}}" in str(model.setup_)


def test_a_setup_is_frozen_and_plain():
    setup = setup_of()
    with pytest.raises(AttributeError):
        setup.n_clusters = 4
    assert json.loads(json.dumps(setup.to_dict())) == setup.to_dict()


@pytest.mark.parametrize(
    "change", [{"n_vote": 2}, {"n_final": 2}, {"criterion": "agreement"}, {"device": torch.device("meta")}]
)
def test_what_comes_after_training_is_not_part_of_the_identity(change):
    assert setup_of(n_init=3, **change).identity() == setup_of(n_init=3).identity()


def test_with_halving_the_voters_decide_who_survives():
    voting = [setup_of(n_init=4, n_vote=n_vote, halving=True).identity() for n_vote in (1, 2)]
    assert voting[0] != voting[1]
    assert (voting[0]["n_vote"], voting[1]["n_vote"]) == (1, 2)
    assert "n_vote" not in setup_of(n_init=4, n_vote=2).identity()


@pytest.mark.parametrize(
    "change",
    [
        {"n_clusters": 4},
        {"network": Network("mlp", init="he")},
        {"loss": DDCLoss(bandwidth=0.2)},
        {"augment": Noise(0.1)},
        {"neighbors": 3},
        {"max_iter": 31},
        {"batch_size": 51},
        {"learning_rate": ConstantRate(2e-3)},
        {"learning_rate": CosineRate(1e-3)},
        {"early_stopping": EarlyStopping()},
        {"n_init": 2},
        {"halving": True},
        {"threads": 2},
    ],
    ids=str,
)
def test_all_else_is_part_of_the_identity(change):
    assert setup_of(**change).identity() != setup_of().identity()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "nothing"),
        ({"neighbors": 4}, "one of its 4 nearest neighbours"),
        ({"augment": Affine()}, "a randomly changed copy (Affine) of itself"),
        (
            {"augment": own_loss, "neighbors": 4},
            "a randomly changed copy (own_loss) of itself or of one of its 4 nearest neighbours",
        ),
    ],
)
def test_pairs_in_words(change, words):
    setup = setup_of(**change)
    assert setup.pairs_in_words == words
    assert setup.has_pairs == bool(change)


class Settling:
    settles_at = 0.25

    def __call__(self, hidden, assignments):
        return own_loss(hidden, assignments)


@pytest.mark.parametrize(
    ("loss", "iteration"),
    [(DDCLoss(), 0), (DDCLoss(cluster_sizes=[1, 2, 3]), 34), (own_loss, 0), (Settling(), 26)],
)
def test_when_a_loss_settles(loss, iteration):
    assert setup_of(loss=loss, max_iter=101).settles_at == iteration


class Keeps(Callback):
    keeps = True


def test_callbacks_that_keep_something_are_part_of_a_fit_s_identity(blobs):
    X, _ = blobs
    plain, watched = plan_of(X), plan_of(X, callbacks=(Callback(),))
    assert watched.identity(X) == plain.identity(X)
    keeping = [
        plan_of(X, callbacks=(callback,)).identity(X)
        for callback in (Keeps(), Keeps(), Snapshots([1]), Snapshots([2]))
    ]
    assert keeping[0] == keeping[1] != plain.identity(X)
    assert keeping[2] != keeping[3]
    assert json.loads(json.dumps(keeping)) == keeping


def test_the_identity_knows_the_data(blobs):
    X, _ = blobs
    plan = plan_of(X)
    assert plan.identity(X) == plan.identity(X.copy())
    assert plan.identity(X) != plan.identity(X + 1)


def test_a_network_that_is_none_is_named(blobs):
    with pytest.raises(TypeError, match="network must return an nn.Module, it returned int"):
        plan_of(blobs[0], network=lambda shape, k: 7).build()
