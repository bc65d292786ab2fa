"""Training in bfloat16: what is computed in it, what stays in float32, and what a fit depends on."""

import numpy as np
import pytest
import torch

from ddclust import DDC, Network
from ddclust.objective.precision import PRECISIONS, is_native, outputs_in
from ddclust.scan import scan
from helpers import assert_same, interrupted_fit, quick

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 12, 12), dtype=np.uint8)


class Seen(torch.nn.Module):
    """Notes the dtypes that the layers of a network give."""

    def __init__(self, input_shape, n_clusters):
        super().__init__()
        self.network = Network("conv")(input_shape, n_clusters)
        self.dtypes = {}
        for name, layer in self.network.named_modules():
            layer.register_forward_hook(lambda _layer, _inputs, output, name=name: self._note(name, output))

    def _note(self, name, output):
        self.dtypes[name] = output.dtype if isinstance(output, torch.Tensor) else output[0].dtype

    def forward(self, x):
        return self.network(x)


def test_convolutions_are_in_bfloat16_and_the_head_in_float32():
    network, x = Seen((1, 12, 12), 3), torch.rand(8, 1, 12, 12)
    hidden, logits = outputs_in("bfloat16", network, x)
    assert network.dtypes["features.0"] == network.dtypes["features.7"] == torch.bfloat16
    assert network.dtypes["head.norm"] == network.dtypes["head.output"] == torch.float32
    assert hidden.dtype == logits.dtype == torch.float32
    outputs_in("float32", network, x)
    assert set(network.dtypes.values()) == {torch.float32}


@pytest.mark.parametrize("network", [Network("conv"), Network("mlp")])
def test_outputs_are_close_and_gradients_reach_float32_weights(network):
    torch.manual_seed(0)
    module, x = network((1, 12, 12), 3), torch.rand(50, 1, 12, 12)
    full, half = (outputs_in(precision, module, x)[1] for precision in PRECISIONS)
    assert not torch.equal(full, half)
    torch.testing.assert_close(half, full, atol=0.05, rtol=0.05)
    half.square().sum().backward()
    assert {parameter.grad.dtype for parameter in module.parameters()} == {torch.float32}


def test_a_network_in_float64_stays_in_it():
    module = Network("mlp")((4,), 3).double()
    assert {output.dtype for output in module(torch.rand(5, 4, dtype=torch.float64))} == {torch.float64}


def test_the_precision_changes_the_training_and_not_the_prediction():
    full, half = (quick(precision=precision).fit(IMAGES) for precision in PRECISIONS)
    again = quick(precision="bfloat16").fit(IMAGES)
    assert half.history_ == again.history_ != full.history_
    assert half.setup_.precision == "bfloat16"
    assert full.setup_.identity() != half.setup_.identity()
    module = half.modules_[0]
    x = torch.from_numpy(IMAGES[:1, None] / 255).float()
    with torch.inference_mode():
        expected = module(x)[0]
    np.testing.assert_allclose(half.transform(IMAGES[:1]), expected, rtol=1e-4, atol=1e-5)


def test_a_fit_in_bfloat16_is_saved_with_its_precision(tmp_path):
    model = quick(precision="bfloat16").fit(IMAGES)
    loaded = DDC.load(model.save(tmp_path / "model") or tmp_path / "model")
    assert loaded.precision == loaded.setup_.precision == "bfloat16"
    np.testing.assert_array_equal(loaded.predict(IMAGES), model.labels_)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision"):
        quick(precision="float8").fit(IMAGES)


def test_auto_is_bfloat16_for_images_where_the_processor_has_it():
    expected = "bfloat16" if is_native("bfloat16", torch.device("cpu")) else "float32"
    assert quick(precision="auto", max_iter=2).fit(IMAGES).setup_.precision == expected
    assert quick(precision="auto", max_iter=2).fit(IMAGES.reshape(40, -1)).setup_.precision == "float32"


@pytest.mark.parametrize(("begun", "has_bfloat16"), [("bfloat16", False), ("float32", True)])
def test_a_fit_goes_on_in_the_precision_it_was_begun_in(tmp_path, monkeypatch, begun, has_bfloat16):
    """Also on a processor on which it would have begun in the other one, and says so."""
    options = {"n_init": 2, "max_iter": 12}
    undisturbed = quick(**options, precision=begun).fit(IMAGES)
    interrupted_fit(quick(**options, precision=begun, checkpoint_dir=tmp_path), IMAGES, monkeypatch, 9)
    monkeypatch.setattr("ddclust.defaults.is_native", lambda precision, device: has_bfloat16)
    with pytest.warns(UserWarning, match=f"were begun in {begun} and go on in it"):
        model = quick(**options, precision="auto", checkpoint_dir=tmp_path).fit(IMAGES)
    assert model.setup_.precision == begun
    assert_same(model, undisturbed)
    other = next(precision for precision in PRECISIONS if precision != begun)
    with pytest.raises(ValueError, match=f"precision is '{begun}' there and '{other}' here"):
        quick(**options, precision=other, checkpoint_dir=tmp_path).fit(IMAGES)


def test_a_scan_goes_on_in_the_precision_it_was_begun_in(tmp_path, monkeypatch):
    model = quick(n_init=2, max_iter=3, precision="auto")
    rows = []
    for has_bfloat16 in (True, False):
        monkeypatch.setattr("ddclust.defaults.is_native", lambda *_, answer=has_bfloat16: answer)
        rows.append(scan(IMAGES, [2], model=model, folder=tmp_path).rows)
    assert rows[0] == rows[1]


def test_every_device_computes_in_float32():
    assert is_native("float32", torch.device("cpu"))
    assert isinstance(is_native("bfloat16", torch.device("cpu")), bool)
    assert not is_native("bfloat16", torch.device("meta"))
