import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from ddclust import DDC, DDCLoss
from ddclust.storage.atomic import write_json
from ddclust.storage.model_folder import ModelFormatError, new_folder
from helpers import Small, edit, own_loss, quick


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    X = np.random.default_rng(0).integers(0, 255, size=(40, 9, 9, 3), dtype=np.uint8)
    loss = DDCLoss(bandwidth=0.2, terms=("divergence", "orthogonality"))
    model = quick(2, max_iter=10, n_init=3, n_vote=2, loss=loss).fit(X)
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
    for name in ("labels_", "probabilities_", "agreement_", "cluster_orders_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("runs_", "history_", "n_iter_", "voters_", "item_shape_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert np.array_equal(loaded.predict_proba(X), model.probabilities_)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_only_json_and_safetensors(fitted):
    assert sorted(file.name for file in fitted[2].iterdir()) == ["model.json", "tensors.safetensors"]
    assert json.loads((fitted[2] / "model.json").read_text())["format_version"] == 1


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
    with pytest.raises(ModelFormatError, match=r"test_ddc.Small.*network=\.\.\."):
        DDC.load(tmp_path / "model")
    with pytest.raises(ModelFormatError, match=r"own_loss.*loss=\.\.\."):
        DDC.load(tmp_path / "model", network=Small)
    loaded = DDC.load(tmp_path / "model", network=Small, loss=own_loss)
    assert np.array_equal(loaded.predict_proba(X), model.probabilities_)
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


def test_interrupted_writing_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "model") as folder:
        (folder / "half").write_text("…")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_failed_overwriting_keeps_the_old_file(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, "old")
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, float("nan"))
    assert json.loads(path.read_text()) == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_missing_folder(tmp_path):
    with pytest.raises(ModelFormatError, match="no model folder at .*nowhere"):
        DDC.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_missing_file_is_named(copied, name):
    (copied / name).unlink()
    with pytest.raises(ModelFormatError, match=f"{name} is missing"):
        DDC.load(copied)


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_truncated_file_is_named(copied, name, share):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelFormatError, match=f"{name}.*truncated"):
        DDC.load(copied)


@pytest.mark.parametrize("content", [b"[1, 2]", b'{"a": 1}', b"\xff\xfe", b"null"])
def test_foreign_description_is_refused(copied, content):
    (copied / "model.json").write_bytes(content)
    with pytest.raises(ModelFormatError, match="model.json"):
        DDC.load(copied)


def test_newer_version_is_refused(copied):
    edit(copied, format_version=99)
    with pytest.raises(ModelFormatError, match="newer ddclust .*99"):
        DDC.load(copied)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("name", ["params", "item_shape", "cluster_orders", "runs", "voters"])
@pytest.mark.parametrize("value", [None, "x", -7, [], {}, [0, 0], [1e308]])
def test_wrong_entries_are_refused(copied, name, value):
    edit(copied, **{name: value})
    with pytest.raises(ModelFormatError):
        DDC.load(copied)


def test_wrong_parameters_are_refused(copied):
    params = edit(copied)["params"]
    for change in (
        {"n_clusters": 0},
        {"surprise": 1},
        {"n_clusters": 10**12},
        {"network": "mlp"},
        {"loss": {}},
    ):
        edit(copied, params=params | change)
        with pytest.raises(ModelFormatError):
            DDC.load(copied)


def test_wrong_shape_is_named(copied):
    file = copied / "tensors.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "network0.head.output.bias": torch.zeros(7)}, file)
    with pytest.raises(ModelFormatError, match=r"head.output.bias.*\(7,\).*expected \(2,\)"):
        DDC.load(copied)
    del tensors["network0.head.output.bias"]
    save_file(tensors, file)
    with pytest.raises(ModelFormatError, match="lacks the tensor 'head.output.bias'"):
        DDC.load(copied)


def test_wrong_tensors_are_refused(copied):
    file = copied / "tensors.safetensors"
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

    loss = DDCLoss(bandwidth=np.float32(0.25), weights=np.ones(3, dtype=np.float32))
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

    (copied / "tensors.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFormatError):
        DDC.load(copied)
    assert not (tmp_path / "boom").exists()
