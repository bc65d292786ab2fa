import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from ddclust import DDC, ConstantRate, CosineRate, DDCLoss, EarlyStopping, Network, Noise, Selection
from ddclust.earlier_formats import upgraded_params
from ddclust.objective.loss import TERMS
from ddclust.saving import params_from_plain
from ddclust.storage.model_folder import ModelFormatError
from ddclust.training.record import Outcome, RunRecord
from helpers import Small, edit, own_loss, quick, seal, tensors_file


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    X = np.random.default_rng(0).integers(0, 255, size=(40, 9, 9, 3), dtype=np.uint8)
    loss = DDCLoss(bandwidth=0.2, weights={"corners": 0})
    model = quick(2, max_iter=10, n_init=3, n_vote=2, loss=loss, augment=None).fit(X)
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return model, X, path


@pytest.fixture
def copied(fitted, tmp_path):
    """A saved model to damage."""
    shutil.copytree(fitted[2], tmp_path / "model")
    return tmp_path / "model"


def test_round_trip(fitted):
    model, X, path = fitted
    state = torch.get_rng_state()
    loaded = DDC.load(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert loaded.get_params() == model.get_params()
    assert loaded.setup_ == model.setup_
    assert str(loaded.setup_) == str(model.setup_)
    for name in ("labels_", "probabilities_", "agreement_", "cluster_orders_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("runs_", "history_", "n_iter_", "voters_", "item_shape_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert np.array_equal(loaded.predict_proba(X), model.probabilities_)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_only_json_and_safetensors_and_a_card(fitted):
    assert sorted(file.suffix for file in fitted[2].iterdir()) == [".json", ".md", ".safetensors"]
    assert json.loads((fitted[2] / "model.json").read_text())["format_version"] == 2


def test_loaded_model_can_be_fitted_again(fitted):
    model, X, path = fitted
    assert np.array_equal(DDC.load(path).fit(X).labels_, model.labels_)


def test_feature_names_survive(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["mass", "age"])
    quick(2, max_iter=3).fit(X).save(tmp_path / "model")
    assert DDC.load(tmp_path / "model").feature_names_in_.tolist() == ["mass", "age"]


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_own_network_and_loss_are_asked_for(blobs, tmp_path):
    X, _ = blobs
    model = quick(network=Small, loss=own_loss, max_iter=10).fit(X)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFormatError, match=r"helpers.Small.*network=\.\.\."):
        DDC.load(tmp_path / "model")
    with pytest.raises(ModelFormatError, match=r"own_loss.*loss=\.\.\."):
        DDC.load(tmp_path / "model", network=Small)
    loaded = DDC.load(tmp_path / "model", network=Small, loss=own_loss)
    assert np.array_equal(loaded.predict_proba(X), model.probabilities_)
    assert (loaded.setup_.network, loaded.setup_.loss) == (Small, own_loss)
    with pytest.raises(ModelFormatError, match="tensor"):
        DDC.load(tmp_path / "model", network=lambda shape, k: Small((5,), k), loss=own_loss)


def test_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        DDC().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_existing_folder_is_kept_unless_asked(fitted, copied):
    model, _, _ = fitted
    with pytest.raises(FileExistsError, match="exists already"):
        model.save(copied)
    (copied / "model.json").write_text("{}")
    model.save(copied, overwrite=True)
    assert np.array_equal(DDC.load(copied).labels_, model.labels_)
    assert os.listdir(copied.parent) == ["model"]


def test_missing_folder(tmp_path):
    with pytest.raises(
        ModelFormatError, match="There is no folder .*nowhere.*; give the folder of a saved model"
    ):
        DDC.load(tmp_path / "nowhere")


def test_newer_version_is_refused(copied):
    edit(copied, format_version=99)
    with pytest.raises(ModelFormatError, match="newer ddclust .*99"):
        DDC.load(copied)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize(
    "name", ["params", "item_shape", "cluster_orders", "cluster_groups", "runs", "voters"]
)
@pytest.mark.parametrize("value", [None, "x", -7, [], {}, [0, 0], [1e308]])
def test_wrong_entries_are_refused(copied, name, value):
    edit(copied, **{name: value})
    with pytest.raises(ModelFormatError):
        DDC.load(copied)


@pytest.mark.parametrize("value", ["x", -7, [], {}, [0, 0], {"n_clusters": 2}])
def test_a_wrong_setup_is_refused(copied, value):
    edit(copied, setup=value)
    with pytest.raises(ModelFormatError):
        DDC.load(copied)


def test_wrong_parameters_are_refused(copied):
    params = edit(copied)["params"]
    for change in (
        {"n_clusters": 0},
        {"surprise": 1},
        {"n_clusters": 10**12},
        {"n_final": 10**12},
        {"network": "mlp"},
        {"loss": {}},
    ):
        edit(copied, params=params | change)
        with pytest.raises(ModelFormatError):
            DDC.load(copied)


def test_wrong_shape_is_named(copied):
    file = tensors_file(copied)
    tensors = load_file(file)
    save_file({**tensors, "network0.head.output.bias": torch.zeros(7)}, file)
    seal(copied)
    with pytest.raises(ModelFormatError, match=r"head.output.bias.*\(7,\).*expected \(2,\)"):
        DDC.load(copied)
    del tensors["network0.head.output.bias"]
    save_file(tensors, file)
    seal(copied)
    with pytest.raises(ModelFormatError, match="lacks the tensor 'head.output.bias'"):
        DDC.load(copied)


def test_wrong_tensors_are_refused(copied):
    file = tensors_file(copied)
    tensors = load_file(file)
    n = len(tensors["agreement"])
    for change in (
        {"scaling.scale": torch.tensor(float("nan"), dtype=torch.float64)},
        {"scaling.scale": torch.tensor(0.0, dtype=torch.float64)},
        {"scaling.shift": torch.zeros(3, dtype=torch.float64)},
        {"probabilities": torch.zeros(n, 3)},
        {"probabilities": torch.zeros(n - 1, 2)},
        {"probabilities": torch.zeros(n, 2, dtype=torch.bool)},
        {"agreement": torch.zeros(3)},
        {"junk": torch.zeros(1)},
        {"network1.head.output.bias": torch.full((2,), float("inf"))},
        {"network1.head.output.bias": torch.zeros(2, dtype=torch.int8)},
    ):
        save_file(tensors | change, file)
        seal(copied)
        with pytest.raises(ModelFormatError):
            DDC.load(copied)


def test_other_entries_are_refused(copied):
    original = (copied / "model.json").read_text()
    for change in (
        {"feature_names": 7},
        {"feature_names": ["a", "b"]},
        {"voters": [-1, 0]},
        {"voters": [0, 99]},
        {"estimator": "DEC"},
        {"runs": [{"history": "x", "n_iter": "y"}]},
        {"format_version": True},
        {"n_samples": 3},
    ):
        edit(copied, **change)
        with pytest.raises(ModelFormatError):
            DDC.load(copied)
        (copied / "model.json").write_text(original)
    (copied / "model.json").write_text('{"format": ' + "9" * 5000 + "}")
    with pytest.raises(ModelFormatError, match="JSON"):
        DDC.load(copied)


def test_a_model_from_a_machine_with_another_device(copied):
    params = edit(copied)["params"]
    edit(copied, params=params | {"device": "cuda:7"})
    with pytest.warns(UserWarning, match="cuda:7"):
        DDC.load(copied)
    with pytest.raises(ValueError, match="device='abacus'"):
        DDC.load(copied, device="abacus")


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_tied_weights_and_numpy_numbers_can_be_saved(blobs, tmp_path):
    class Tied(Small):
        def __init__(self, input_shape, n_clusters):
            super().__init__(input_shape, n_clusters)
            self.alias = self.output

    loss = DDCLoss(
        bandwidth=np.float32(0.25), weights=dict(zip(TERMS, np.ones(3, dtype=np.float32), strict=True))
    )
    model = quick(network=Tied, loss=loss, max_iter=np.int64(5)).fit(blobs[0])
    model.save(tmp_path / "model")
    assert np.array_equal(DDC.load(tmp_path / "model", network=Tied).labels_, model.labels_)


def test_only_a_model_is_overwritten(fitted, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    (tmp_path / "file").write_text("text")
    for name in ("photos", "file"):
        with pytest.raises(FileExistsError, match="not overwritten"):
            fitted[0].save(tmp_path / name, overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").exists()
    assert sorted(os.listdir(tmp_path)) == ["file", "photos"]


def test_pickle_in_place_of_tensors_is_not_run(copied, tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "boom"),))

    tensors_file(copied).write_bytes(pickle.dumps(Bomb()))
    seal(copied)
    with pytest.raises(ModelFormatError):
        DDC.load(copied)
    assert not (tmp_path / "boom").exists()


# --- models of format 1 -----------------------------------------------------------------------

SAVED = Path(__file__).parent / "saved-by-0.1.0"
TEXTS = ["ship sail sea", "sea ship", "sail boats", "money bank", "bank loan money", "loan rates"] * 5


def saved_images():
    """The images that the model in saved-by-0.1.0/images was fitted on: a bright left half or a bright upper half."""
    X = np.random.default_rng(0).integers(0, 60, size=(60, 8, 8), dtype=np.uint8)
    X[:30, :, :4] += 150
    X[30:, :4, :] += 150
    return X


@pytest.mark.parametrize(("name", "X"), [("images", saved_images()), ("texts", TEXTS)])
def test_models_saved_by_0_1_are_read(name, X, tmp_path):
    model = DDC.load(SAVED / name)
    tensors = load_file(SAVED / name / "tensors.safetensors")
    assert np.array_equal(model.predict(X), tensors["probabilities"].numpy().argmax(axis=1))
    assert np.array_equal(model.labels_, model.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), tensors["probabilities"].numpy(), atol=1e-6)
    if len(model.voters_) > 1:
        assert np.array_equal(model.agreement_, tensors["agreement"].numpy())
    else:  # it was 1, though there was nobody to agree with
        assert np.isnan(model.agreement_).all()
    with pytest.raises(ValueError, match="saved by an earlier version .* fit it again to use reject"):
        model.predict(X, reject=0.05)
    for record in (*model.runs_, *model.history_):
        assert "partners" not in record
        assert "rungs" not in record
    assert all(
        set(run["terms"]) == {"divergence", "orthogonality", "corners", "pairs"} for run in model.runs_
    )
    assert all(run["losses_at"] == {"60": run["loss"]} for run in model.runs_)
    assert not hasattr(model, "setup_")  # it was not saved then
    assert [RunRecord.from_dict(run).outcome for run in model.runs_] == [Outcome.BUDGET] * len(model.runs_)

    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["format_version"] == 2
    again = DDC.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.runs_ == model.runs_
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_parameters_of_0_1_are_translated():
    images, texts = (DDC.load(SAVED / name).get_params() for name in ("images", "texts"))
    ones = {"pairs": 1.0, "must_link": 1.0, "cannot_link": 1.0}
    assert (
        images
        == DDC(
            2,
            n_final=None,
            anchor=None,
            network=Network(),
            loss=DDCLoss(weights=ones),
            n_init=3,
            n_vote=2,
            selection=Selection(),
            max_iter=60,
            random_state=0,
            language="english",
            verbose=False,
        ).get_params()
    )
    assert (
        texts
        == DDC(
            3,
            n_final=2,
            anchor=None,
            network=Network(),
            loss=DDCLoss(weights=ones | {"orthogonality": 2}, cluster_sizes=[3, 2, 1]),
            n_init=2,
            selection=Selection("pairs"),
            max_iter=60,
            learning_rate=CosineRate(1e-3),
            early_stopping=EarlyStopping(5, 1e-2),
            random_state=0,
            language="english",
            verbose=False,
        ).get_params()
    )


def test_the_parts_of_a_model_of_texts_are_read():
    model = DDC.load(SAVED / "texts")
    assert model.n_clusters_ == 2
    assert model.merge_tree_.shape == (2, 4)
    assert np.array_equal(model.predict_fine(TEXTS), model.fine_labels_)
    assert model.vectorizer_.get_feature_names_out().tolist()[:3] == ["bank", "boat", "loan"]
    assert model.predict(["ship at sea"]) != model.predict(["money from the bank"])


@pytest.mark.parametrize("fit_again", [False, True])
def test_models_from_before_pairs_and_merging_are_read(tmp_path, fit_again):
    shutil.copytree(SAVED / "images", tmp_path / "model")
    description = edit(tmp_path / "model")
    later = ("n_final", "criterion", "augment", "neighbors", "partner_weight", "link_weight", "balance")
    params = {name: value for name, value in description["params"].items() if name not in later}
    for name in ("cluster_groups", "merge_tree"):
        del description[name]
    (tmp_path / "model" / "model.json").write_text(json.dumps(description | {"params": params}))
    model = DDC.load(tmp_path / "model")
    assert model.augment is model.neighbors is model.n_final is None
    X = saved_images()
    assert np.array_equal(model.predict(X), DDC.load(SAVED / "images").labels_)
    if fit_again:
        assert (
            "pairs" not in model.set_params(n_init=1, n_vote=1, max_iter=2, n_jobs=1).fit(X).runs_[0]["terms"]
        )


def test_a_loaded_model_of_0_1_can_be_fitted_again():
    model = DDC.load(SAVED / "images")
    losses = [run["loss"] for run in model.runs_]
    model.set_params(n_jobs=1).fit(saved_images())
    assert [run["loss"] for run in model.runs_] == pytest.approx(losses, rel=1e-3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"init": "he"}, {"network": Network(init="he")}),
        ({"network": "mlp"}, {"network": Network("mlp")}),
        ({"network": {"custom": "my.net"}}, {"network": {"custom": "my.net"}}),
        (
            {"early_elimination": True, "criterion": "agreement"},
            {"selection": Selection("agreement", halving=True)},
        ),
        ({"learning_rate": 0.1, "schedule": "constant"}, {"learning_rate": ConstantRate(0.1)}),
        ({"learning_rate": 0.1}, {"learning_rate": 0.1}),
        ({"patience": None}, {"early_stopping": None}),
        ({"patience": 3}, {"early_stopping": EarlyStopping(3, 1e-3)}),
        (
            {"loss": {"custom": "my.loss"}},
            {"loss": {"custom": "my.loss"}, "augment": None, "neighbors": None},
        ),
        (
            {
                "loss": {
                    "DDCLoss": {"bandwidth": 0.3, "terms": ["divergence", "corners"], "weights": [2, 3, 4]}
                }
            },
            {
                "loss": DDCLoss(
                    bandwidth=0.3,
                    weights={
                        "divergence": 2,
                        "orthogonality": 0,
                        "corners": 4,
                        "pairs": 1,
                        "must_link": 1,
                        "cannot_link": 1,
                    },
                ),
                "augment": None,  # a loss that was given switched pairs off
                "neighbors": None,
            },
        ),
        ({"loss": {"DDCLoss": {}}, "augment": "noise"}, {"augment": "noise", "neighbors": None}),
        (
            {"partner_weight": 2.0, "link_weight": 3.0},
            {"loss": DDCLoss(weights={"pairs": 2, "must_link": 3, "cannot_link": 3})},
        ),
        ({"augment": {"Noise": {"scale": 0.3}}}, {"augment": Noise(0.3)}),
    ],
    ids=str,
)
def test_each_parameter_of_0_1(old, new):
    saved = json.loads((SAVED / "images" / "model.json").read_text())["params"]
    params = params_from_plain(upgraded_params(saved | old), {})
    assert {name: params[name] for name in new} == new
    assert params.keys() <= DDC().get_params().keys()


def test_a_single_merged_cluster_can_be_saved(blobs, tmp_path):
    model = quick(1, n_final=1, max_iter=2).fit(blobs[0])
    model.save(tmp_path / "model")
    assert np.array_equal(DDC.load(tmp_path / "model").fine_labels_, model.fine_labels_)


def test_a_fit_on_views_forgets_the_texts_of_before(blobs, tmp_path):
    X, _ = blobs
    model = quick(2, max_iter=2).fit(["red apple", "green pear", "red pear", "green apple"] * 5)
    model.fit([X, X[:, :1]]).save(tmp_path / "model")
    assert not hasattr(DDC.load(tmp_path / "model"), "vectorizer_")


def test_asking_for_the_identity_of_a_fit_changes_no_model(blobs):
    X, _ = blobs
    model = quick(max_iter=2).fit(X)
    assert model.fit_identity(X[:, :1]) != model.fit_identity(X)
    assert np.array_equal(model.predict(X), model.labels_)
