"""Exported models give what predict and predict_proba give."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

from ddclust import DDC
from ddclust.baselines import DEC
from ddclust.choosing.calibration import tempered as tempered_arrays
from ddclust.choosing.consensus import combine
from ddclust.exporting import ExportError, tempered, voted

QUICK = {"n_init": 1, "max_iter": 40, "random_state": 0, "n_jobs": 1}
VOTING = QUICK | {"n_init": 3, "n_vote": 3}


def blobs(**given):
    return make_blobs(400, centers=4, n_features=5, cluster_std=3, random_state=0, **given)[0]


def digits():
    return (load_digits().images[:400] * 15).astype(np.uint8)


def colours():
    return np.random.default_rng(0).random((60, 9, 11, 3)).astype(np.float32) * 7 - 2


# Votes with ties, merging and calibration; values far from zero; channels last; constants; one network without pairs.
CASES = {
    "vectors": (DDC(4, anchor=None, **VOTING), blobs),
    "time stamps": (DDC(4, anchor=None, **VOTING), lambda: blobs() + 1.7e9),
    "single run": (DDC(4, n_final=None, augment=None, **QUICK), blobs),
    "bytes": (DDC(10, **VOTING | {"n_init": 2, "n_vote": 2}), digits),
    "colours": (DDC(3, **QUICK), colours),
    "DEC": (DEC(4, layers=(20, 5), layer_iter=40, finetune_iter=40, max_iter=60, random_state=0), blobs),
}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    model, make = CASES[request.param]
    X = make()
    return model.fit(X), X


def as_taken(model, X):
    return X if model.scaling_.is_of_bytes else X.astype(np.float64)


def assert_same(model, X, labels, probabilities):
    expected = model.predict_proba(X)
    assert np.abs(probabilities - expected).max() < 1e-5
    assert probabilities.dtype == np.float32
    # A difference in the last digit may decide between two clusters that are equally likely.
    differ = labels != model.predict(X)
    nearest = np.sort(expected[differ], axis=1)[:, -2:]
    assert differ.mean() < 0.01
    assert (np.diff(nearest) < 1e-5).all()


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_module_gives_what_predict_gives(case):
    model, X = case
    with torch.inference_mode():
        labels, probabilities = model.as_module()(torch.from_numpy(as_taken(model, X)))
    assert_same(model, X, labels.numpy(), probabilities.numpy())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_onnx_gives_what_predict_gives(case, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, X = case
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    labels, probabilities = session.run(["labels", "probabilities"], {"X": as_taken(model, X)})
    assert_same(model, X, labels, probabilities)
    (one,) = session.run(["probabilities"], {"X": as_taken(model, X[:1])})
    assert np.abs(one - probabilities[:1]).max() < 1e-5
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.slow
def test_onnx_of_views_and_of_float32(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    X = blobs().astype(np.float32)
    model = DDC(4, anchor=None, **QUICK).fit(X)
    model.export_onnx(tmp_path / "model.onnx", dtype="float32")
    labels, probabilities = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": X})
    assert_same(model, X, labels, probabilities)
    views = [digits(), np.asarray(load_digits().data[:400, :20])]
    model = DDC(10, **QUICK).fit(views)
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    given = {f"view{number}": view.astype(np.float64) for number, view in enumerate(views)}
    assert_same(model, views, *session.run(None, given))


@pytest.mark.slow
def test_program_of_torch_runs_without_ddclust(tmp_path):
    X = blobs()
    model = DDC(4, anchor=None, **VOTING).fit(X)
    model.export_torch(tmp_path / "model.pt2")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy, torch; model = torch.export.load('model.pt2').module();"
        "outputs = model(torch.from_numpy(numpy.load('X.npy')));"
        "numpy.savez('out.npz', *[output.detach().numpy() for output in outputs]); assert 'ddclust' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with np.load(tmp_path / "out.npz") as out:
        assert_same(model, X, out["arr_0"], out["arr_1"])


def test_vote_and_temperature_are_those_of_arrays():
    drawn = np.random.default_rng(0).random((4, 2000, 3)).astype(np.float32)
    drawn /= drawn.sum(axis=2, keepdims=True)
    vote, mean = combine(list(drawn))
    labels, assignments = voted([torch.from_numpy(member) for member in drawn])
    assert np.array_equal(labels.numpy(), vote.labels)
    assert np.abs(assignments.numpy() - mean).max() < 1e-6
    sharp = np.array([[1, 0, 0], [1 - 2e-7, 1e-7, 1e-7]], dtype=np.float32)
    for p in (mean, sharp):
        assert np.abs(tempered(torch.from_numpy(p), 3.0).numpy() - tempered_arrays(p, 3.0)).max() < 1e-6


def test_texts_and_tables_are_refused_with_the_remedy():
    texts = ["red apple pie", "green apple tree", "fast car engine", "old car engine"] * 10
    model = DDC(2, encoder=None, **QUICK).fit(texts)
    with pytest.raises(ExportError, match="of texts; turn the texts into vectors first"):
        model.as_module()
    with pytest.raises(ValueError, match="dtype must be one of"):
        DDC(2, **QUICK).fit(blobs()).as_module("int8")


def test_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    model = DDC(4, **QUICK).fit(blobs())
    with pytest.raises(ImportError, match="pip install onnx onnxscript"):
        model.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
