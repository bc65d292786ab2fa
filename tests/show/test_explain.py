import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from click.testing import CliRunner
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from torch import nn

from ddclust import DDC
from ddclust.baselines import DEC
from ddclust.cli.main import main
from ddclust.networks import ConvNet
from ddclust.show.explain import Explanation, explain, guided_backprop, input_x_gradient, overlay
from helpers import quick

TEXTS = ["crude oil prices rose", "oil wells and crude", "the goalkeeper saved", "a goal by the striker"] * 5


class Tiny(nn.Module):
    """Two inputs, three ReLUs, two outputs, all weights known."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3, bias=False)
        self.relu = nn.ReLU()
        self.second = nn.Linear(3, 2, bias=False)
        self.first.weight.data = torch.tensor([[1.0, 2.0], [3.0, -1.0], [-5.0, 1.0]])
        self.second.weight.data = torch.tensor([[2.0, -4.0, 7.0], [1.0, 1.0, 1.0]])

    def forward(self, x):
        hidden = self.relu(self.first(x))
        return hidden, self.second(hidden)


def state_of(module):
    """All that an explanation must not change."""
    hooks = [
        len(part._forward_hooks) + len(part._forward_pre_hooks) + len(part._backward_hooks)
        for part in module.modules()
    ]
    modes = [part.training for part in module.modules()]
    parameters = [(p.requires_grad, p.grad, p.detach().clone()) for p in module.parameters()]
    buffers = [b.clone() for b in module.buffers()]
    return hooks, modes, parameters, buffers


def assert_same_state(first, second):
    assert first[:2] == second[:2]
    for (needed, grad, value), (needed_after, grad_after, value_after) in zip(
        first[2], second[2], strict=True
    ):
        assert needed == needed_after
        assert grad is None
        assert grad_after is None
        assert torch.equal(value, value_after)
    assert all(torch.equal(a, b) for a, b in zip(first[3], second[3], strict=True))


def test_guided_backpropagation_by_hand():
    # x = (1, 1): pre-activations 3, 2 and -4. Score 0 has the gradients 2, -4 and 7 at the ReLUs: the second is
    # blocked because it is negative, the third because the unit is off. What is left is 2 * (1, 2).
    x = torch.tensor([[1.0, 1.0]])
    assert guided_backprop(Tiny(), x, 0).tolist() == [[2.0, 4.0]]
    # Score 1: the gradient 1 passes the first two units: (1, 2) + (3, -1).
    assert guided_backprop(Tiny(), x, 1).tolist() == [[4.0, 1.0]]
    # The plain gradient of score 0 keeps the second unit: 2 * (1, 2) - 4 * (3, -1).
    assert input_x_gradient(Tiny(), 2 * x, 0).tolist() == [[2 * -10.0, 2 * 8.0]]


def test_every_item_may_have_its_own_target():
    x = torch.ones(2, 2)
    assert guided_backprop(Tiny(), x, torch.tensor([0, 1])).tolist() == [[2.0, 4.0], [4.0, 1.0]]


def test_the_score_is_not_normalised():
    # A softmax would make the gradients of the two scores add up to zero.
    x = torch.ones(1, 2)
    total = input_x_gradient(Tiny(), x, 0) + input_x_gradient(Tiny(), x, 1)
    assert total.abs().sum() > 1


@pytest.mark.parametrize("method", [guided_backprop, input_x_gradient])
def test_nothing_of_a_module_changes(method):
    module = ConvNet((1, 16, 16), 3).train()
    module.features[0].eval()  # a mode of its own
    before, x = state_of(module), torch.rand(5, 1, 16, 16)
    with torch.inference_mode():
        maps = method(module, x, 2)
    assert_same_state(before, state_of(module))
    assert not maps.requires_grad
    assert not x.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("method", [guided_backprop, input_x_gradient])
def test_no_hook_stays_after_an_error(method):
    class Failing(Tiny):
        def forward(self, x):
            super().forward(x)
            raise RuntimeError("broken")

    module = Failing().train()
    before = state_of(module)
    with pytest.raises(RuntimeError, match="broken"):
        method(module, torch.ones(1, 2), 0)
    assert_same_state(before, state_of(module))
    with pytest.raises((IndexError, AssertionError)):
        method(Tiny(), torch.ones(1, 2), 9)


def test_no_warning_for_users(images, recwarn):
    explain(quick(2, max_iter=5).fit(images), images[:3])
    assert [str(w.message) for w in recwarn if "hook" in str(w.message) or "grad" in str(w.message)] == []


@pytest.fixture(scope="module")
def colour():
    """Colour images, and a model of them by two voting networks."""
    X = np.random.default_rng(0).integers(0, 255, size=(90, 9, 10, 3), dtype=np.uint8)
    X[:45, :, :5, 0] = 250
    return quick(2, max_iter=30, n_init=2, n_vote=2).fit(X), X


def test_every_layout_gives_the_same_map(colour):
    _, X = colour
    maps = []
    for layout in (X, np.ascontiguousarray(X.transpose(0, 3, 1, 2))):
        model = quick(2, max_iter=10).fit(layout)
        found = explain(model, layout[:7])
        assert found.attributions.shape == (7, *layout.shape[1:])
        assert found.attributions.dtype == np.float32
        assert found.feature_names is None
        maps.append(found.attributions)
    assert np.array_equal(maps[0], maps[1].transpose(0, 2, 3, 1))


@pytest.mark.parametrize("shape", [(60, 8, 8), (60, 8, 8, 1), (60, 1, 8, 8)])
def test_maps_have_the_shape_of_the_items(images, shape):
    X = images.reshape(shape)
    assert explain(quick(2, max_iter=10).fit(X), X).attributions.shape == shape


def test_a_map_is_that_of_the_best_network_and_the_cluster_s_number(colour):
    model, X = colour
    found = explain(model, X[:5])
    assert np.array_equal(found.clusters, model.predict(X[:5]))
    order, groups, module = model.cluster_orders_[0], model.cluster_groups_[0], model.modules_[0]
    x = model._source(X[:5]).batch(slice(0, 5))
    for cluster in (0, 1):
        parts = torch.from_numpy(order[groups == cluster])
        largest = parts[module(x)[1][:, parts].argmax(dim=1)]
        expected = guided_backprop(module, x, largest).movedim(1, -1).numpy()
        assert explain(model, X[:5], cluster).attributions == pytest.approx(expected, rel=1e-3, abs=1e-6)
    mixed = explain(model, X[:2], [1, 0]).attributions
    assert np.array_equal(mixed[0], explain(model, X[:2], 1).attributions[0])
    assert np.array_equal(mixed[1], explain(model, X[:2], 0).attributions[1])


def test_an_item_s_map_does_not_depend_on_its_company(colour):
    model, X = colour
    together = explain(model, X).attributions
    assert np.array_equal(explain(model, X[70:72]).attributions, together[70:72])
    assert np.array_equal(explain(model, X[::-1]).attributions, together[::-1])


def test_the_model_is_left_alone(colour):
    model, X = colour
    before = [state_of(module) for module in model.modules_]
    state = torch.get_rng_state()
    predicted = model.predict_proba(X)
    explain(model, X[:3])
    for module, earlier in zip(model.modules_, before, strict=True):
        assert_same_state(earlier, state_of(module))
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(model.predict_proba(X), predicted)


def test_the_pixels_that_matter(images):
    """The groups of the images differ in two quarters only."""
    model = quick(2, max_iter=100).fit(images)
    strength = np.abs(explain(model, images).attributions).mean(axis=0)
    telling = np.concatenate([strength[:4, 4:].ravel(), strength[4:, :4].ravel()])
    other = np.concatenate([strength[:4, :4].ravel(), strength[4:, 4:].ravel()])
    assert telling.mean() > other.mean()


def test_dec_is_explained_too(images):
    model = DEC(2, layers=(20, 5), layer_iter=20, finetune_iter=20, max_iter=50, random_state=0).fit(images)
    found = explain(model, images[:4])
    assert found.attributions.shape == (4, 8, 8)
    assert np.abs(found.attributions).max() > 0


def test_vectors_have_features(blobs):
    X, _ = blobs
    model = quick(max_iter=50).fit(X)
    found = explain(model, X[:4])
    assert found.feature_names.tolist() == ["feature 0", "feature 1"]
    scores = model._source(X[:4]).batch(slice(0, 4)).requires_grad_()
    model.modules_[0].eval()
    logits = model.modules_[0](scores)[1]
    own = logits[torch.arange(4), torch.from_numpy(model.cluster_orders_[0][found.clusters])]
    (gradient,) = torch.autograd.grad(own.sum(), scores)
    assert found.attributions == pytest.approx((gradient * scores).detach().numpy(), rel=1e-3, abs=1e-6)
    table = pd.DataFrame(X, columns=["mass", "age"])
    named = explain(quick(max_iter=50).fit(table), table[:4])
    assert named.feature_names.tolist() == ["mass", "age"]
    assert {name for name, _ in named.top_features(2)[0]} == {"mass", "age"}


def test_texts_name_their_words():
    model = quick(2, max_iter=60).fit(TEXTS)
    tops = explain(model, ["oil and a goal", "crude prices"]).top_features(3)
    assert {word for word, _ in tops[0]} == {"oil", "goal"}
    assert {word for word, _ in tops[1]} == {"crude", "prices"}  # not the stem
    sizes = [abs(influence) for _, influence in tops[0]]
    assert sizes == sorted(sizes, reverse=True)


def test_sparse_zeros_have_no_influence(rng):
    X = scipy.sparse.random(60, 12, density=0.3, format="csr", random_state=0)
    found = explain(quick(2, max_iter=10).fit(X), X)
    assert not found.attributions[X.toarray() == 0].any()


def test_clear_errors(images, blobs):
    with pytest.raises(NotFittedError):
        explain(DDC(), images)
    with pytest.raises(TypeError, match="not a KMeans"):
        explain(KMeans(), images)
    model = quick(2, max_iter=5).fit(images)
    with pytest.raises(ValueError, match="no cluster 2; they are numbered from 0 to 1"):
        explain(model, images[:3], [0, 1, 2])
    with pytest.raises(ValueError, match="no cluster -1"):
        explain(model, images[:3], -1)
    with pytest.raises(ValueError, match="one for each of the 3 items, got int64 of shape \\(2,\\)"):
        explain(model, images[:3], [0, 1])
    with pytest.raises(ValueError, match="one integer"):
        explain(model, images[:3], 0.5)
    with pytest.raises(ValueError, match="shape"):
        explain(model, images[:, :7])
    with pytest.raises(ValueError, match="no names"):
        explain(model, images[:3]).top_features()


def test_overlay():
    images = np.array([[[0, 100], [200, 255]]], dtype=np.uint8)
    painted = overlay(images, np.array([[[0.0, 2.0], [1.0, -9.0]]]))
    assert painted.dtype == np.uint8
    # The strongest is 80 % red, half of that strength 40 %.
    assert painted[0].tolist() == [[[0, 0, 0], [204, 36, 44]], [[212, 128, 132], [255, 255, 255]]]
    assert np.array_equal(overlay(images / 255, [[[0, 0], [0, 0]]]), np.repeat(images[..., None], 3, axis=3))


@pytest.mark.parametrize("shape", [(2, 5, 6, 3), (2, 3, 5, 6), (2, 5, 6, 1)])
def test_overlay_of_channels(rng, shape):
    images, attributions = rng.random(shape), rng.normal(size=shape)
    axis = 1 if shape[1] == 3 else 3
    painted = overlay(images, attributions, blur=0)
    assert painted.shape == (2, 5, 6, 3)
    strongest = np.maximum(attributions, 0).sum(axis=axis)[0].argmax()
    red = painted.astype(int)[0, ..., 0] - painted[0, ..., 1]
    assert red.argmax() == strongest
    with pytest.raises(ValueError, match="same shape"):
        overlay(images, attributions[:1])


def test_maps_of_photographs_are_smooth(rng):
    """Attributions that jump from pixel to pixel, as those of photographs do, become a few soft spots."""
    noise = rng.random((1, 32, 32)) * (rng.random((1, 32, 32)) < 0.3)
    noise[0, 8:16, 8:16] += 1
    white = np.full((1, 32, 32), 255, dtype=np.uint8)

    def roughness(painted):
        return np.abs(np.diff(painted[0, ..., 1].astype(float), axis=0)).mean()

    assert roughness(overlay(white, noise)) < 0.3 * roughness(overlay(white, noise, blur=0))
    red = 255 - overlay(white, noise)[0, ..., 1].astype(int)
    assert red[9:15, 9:15].mean() > 3 * red[20:, 20:].mean()  # the spot is still there


def test_nothing_to_paint_leaves_grey(images):
    painted = overlay(images, -np.ones(images.shape))
    assert np.array_equal(painted[..., 0], images)


def test_top_features_of_nothing():
    assert Explanation(np.zeros((1, 2), np.float32), np.array([0]), np.array(["a", "b"])).top_features() == [
        []
    ]


def ddclust(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_the_command_line_explains_images(images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for number, image in enumerate(images[:12]):
        Image.fromarray(image).save(Path("photos") / f"p{number:02d}.png")
    quick(2, max_iter=10).fit(images).save("model")
    command = [Path(sys.executable).parent / "ddclust", "explain", "model", "photos"]
    command += ["--items", "p03.png,p07.png", "--out", "seen"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200)  # as a user does it
    assert result.returncode == 0, result.stderr
    assert result.stdout == "seen/explanation.png: 2 items, with the pixels that decide in red\n"
    with Image.open(Path("seen") / "explanation.png") as picture:
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    assert ((pixels[..., 0] > 180) & (pixels[..., 1] < 90)).any()  # red
    again = ddclust("explain", "model", "photos", "--out", "seen")
    assert again.exit_code == 2
    assert again.stderr == "Error: 'seen' exists already; choose another name.\n"
    by_default = ddclust("explain", "model", "photos")
    assert by_default.stdout.startswith("model-explanation/explanation.png: ")
    unknown = ddclust("explain", "model", "photos", "--items", "p03.png,q")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert unknown.stderr == (
        "Error: There is no item 'q'; the first of the 12 items is called 'p00.png', and items are numbered from 0.\n"
    )
    assert ddclust("explain", "model", "photos", "--items", "3,p07.png", "--out", "by-number").exit_code == 0
    pictures = [Path(folder, "explanation.png").read_bytes() for folder in ("seen", "by-number")]
    assert pictures[0] == pictures[1]
    assert not Path("model-explanation-2").exists()


def test_the_command_line_explains_tables_and_texts(blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _ = blobs
    pd.DataFrame(X, columns=["mass", "age"]).to_csv("blobs.csv", index=False)
    Path("news.txt").write_text("\n".join(TEXTS))
    fast = ("--runs", "1", "--max-iter", "20", "--jobs", "1", "-q")
    assert ddclust("fit", "blobs.csv", "-k", "3", "--out", "run", *fast).exit_code == 0
    assert ddclust("fit", "news.txt", "-k", "2", "--out", "news", *fast).exit_code == 0

    result = ddclust("explain", "run", "blobs.csv", "--items", "3,7", "--out", "why")
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(Path("why/explanation.csv").read_text().splitlines()))
    assert [row["item"] for row in rows] == ["3", "3", "7", "7"]
    assert {row["feature"] for row in rows} == {"mass", "age"}
    assert int(rows[0]["cluster"]) == DDC.load("run/model").labels_[3]
    sizes = [abs(float(row["influence"])) for row in rows[:2]]
    assert sizes == sorted(sizes, reverse=True)

    assert ddclust("explain", "news", "news.txt", "--items", "1,3", "--out", "w").exit_code == 0
    rows = list(csv.DictReader(Path("w/explanation.csv").read_text().splitlines()))
    words = {row["feature"] for row in rows if row["item"] == rows[0]["item"]}
    assert words == {"crude", "oil", "prices", "rose"}
    beyond = ddclust("explain", "run", "blobs.csv", "--items", "150")
    assert beyond.stderr.startswith(
        "Error: There is no item '150'; the first of the 150 items is called '0'."
    )
    assert ddclust("explain", "news", "news.txt").exit_code == 0
    table = pd.read_csv("news-explanation/explanation.csv")
    used = np.bincount(DDC.load("news/model").labels_)
    assert table["item"].nunique() == sum(min(n, 5) for n in used)
