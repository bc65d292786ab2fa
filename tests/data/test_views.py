"""Several views of the same items: reading, scaling, the fused network, and what users do wrong."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
import torch

from ddclust import DDC
from ddclust.baselines import DEC
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.views import ViewItems, is_views, scaling_of_views
from ddclust.datasets import load_digits
from ddclust.networks import ConvNet, MultiViewNet, ViewsNetwork
from ddclust.storage.model_folder import ModelFormatError
from helpers import edit
from helpers import quick as quick_fit

quick = partial(quick_fit, max_iter=5)


@pytest.fixture
def views(rng):
    centres = np.repeat(np.arange(3), 40)
    vectors = rng.normal(size=(120, 5)) + 4 * np.eye(3, 5)[centres]
    images = (rng.random((120, 9, 10, 3)) * 60 + 60 * centres[:, None, None, None]).astype(np.uint8)
    return [vectors, images]


def test_each_view_reaches_its_network_as_it_would_alone(views):
    items = ViewItems(views)
    source = BatchSource(items, scaling_of_views(items))
    seen = []

    class Recorder(MultiViewNet):
        def forward(self, parts):
            seen.extend(parts)
            return super().forward(parts)

    network = ViewsNetwork(items.view_shapes, 3, ["mlp", "conv"])
    network.network.__class__ = Recorder
    rows = np.array([7, 0, 99])
    network(source.batch(rows))
    for view, part in zip(views, seen, strict=True):
        alone = BatchSource(view, Scaling.of(view)).batch(rows)
        torch.testing.assert_close(part, alone)


def test_fusion_is_the_weighted_sum_of_what_the_views_give():
    torch.manual_seed(0)
    network = MultiViewNet([(1, 9, 10), (5,)], 3, ["conv", "mlp"]).eval()
    with torch.no_grad():
        network.fusion.copy_(torch.tensor([0.0, np.log(3)]))
    x = [torch.randn(4, 1, 9, 10), torch.randn(4, 5)]
    expected = 0.25 * network.views[0](x[0]) + 0.75 * network.views[1](x[1])
    hidden, logits = network(x)
    torch.testing.assert_close(hidden, network.head(expected)[0])
    assert logits.shape == (4, 3)
    hidden.sum().backward()
    assert network.fusion.grad is not None


def test_soft_start_reaches_the_fused_network():
    torch.manual_seed(0)
    soft = MultiViewNet([(5,), (5,)], 3, ["mlp", "mlp"]).head.output.weight.std()
    torch.manual_seed(0)
    he = MultiViewNet([(5,), (5,)], 3, ["mlp", "mlp"], init="he").head.output.weight.std()
    torch.testing.assert_close(10 * soft, he)


@pytest.mark.slow
def test_two_views_that_each_show_a_part_are_better_than_either(rng):
    # The first view tells clusters 0 and 1 from 2, the second 0 from 1 and 2.
    truth = np.repeat(np.arange(3), 100)
    first = rng.normal(size=(300, 4)) + 6 * (truth == 2)[:, None]
    second = rng.normal(size=(300, 4)) + 6 * (truth == 0)[:, None]
    options = {"max_iter": 400, "n_init": 2}
    both = clustering_accuracy(truth, quick(**options).fit_predict([first, second]))
    alone = [clustering_accuracy(truth, quick(**options).fit_predict(view)) for view in (first, second)]
    assert both > 0.95
    assert max(alone) < 0.8


def test_fit_predict_save_load_resume(views, tmp_path):
    model = quick(checkpoint_dir=tmp_path / "c", n_init=2, n_vote=2).fit(views)
    assert model.view_shapes_ == [(5,), (9, 10, 3)]
    assert model.n_features_in_ == 5 + 270
    assert np.array_equal(model.predict(views), model.labels_)
    assert model.transform(views).shape == (120, 100)
    model.save(tmp_path / "m")
    again = DDC.load(tmp_path / "m")
    assert again.view_shapes_ == model.view_shapes_
    assert again.setup_ == model.setup_
    assert np.array_equal(again.predict_proba(views), model.predict_proba(views))
    resumed = quick(checkpoint_dir=tmp_path / "c", n_init=2, n_vote=2).fit(views)
    assert np.array_equal(resumed.probabilities_, model.probabilities_)


@pytest.mark.slow
def test_worker_processes_get_the_same_views(views):
    alone, together = (quick(n_init=2, n_jobs=n_jobs).fit(views) for n_jobs in (1, 2))
    assert np.array_equal(alone.probabilities_, together.probabilities_)


def test_a_fit_on_one_view_forgets_the_views(views):
    model = quick().fit(views)
    model.fit(views[0])
    assert not hasattr(model, "view_shapes_")
    assert isinstance(quick().fit(views[1]).modules_[0], ConvNet)


def test_sparse_and_dense_views(views):
    sparse = scipy.sparse.csr_array(np.abs(views[0]).round())
    model = quick().fit([sparse, views[0]])
    assert np.array_equal(model.predict([sparse, views[0]]), model.labels_)


def test_pairs_of_views(views):
    model = quick(augment="noise", neighbors=3).fit([views[0], views[0] + 1])
    assert "pairs" in model.runs_[0]["terms"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: [v[0], None], "View 1 of X is missing"),
        (lambda v: [v[0], v[1][:-1]], "The views of X have 120, 119 items"),
        (lambda v: [v[0], v[1][:, :4, :4].astype(float) * np.nan], "View 1: X holds NaN"),
        (lambda v: [np.full_like(v[0], np.inf), v[1]], "View 0: X holds inf"),
    ],
)
def test_wrong_views_are_named(views, change, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(change(views))


def test_views_unlike_those_of_the_fit_are_named(views):
    model = quick().fit(views)
    with pytest.raises(ValueError, match="X is one view, but this DDC was fitted on 2"):
        model.predict(views[0])
    with pytest.raises(ValueError, match="X has 3 views, but this DDC was fitted on 2 views"):
        model.predict([*views, views[0]])
    with pytest.raises(ValueError, match="View 0: .*4 features"):
        model.predict([views[0][:, :4], views[1]])
    with pytest.raises(ValueError, match="View 1: .*fitted on items of shape"):
        model.predict([views[0], views[1][:, :8]])
    with pytest.raises(ValueError, match="X has 2 views, but this DDC was fitted on items of one view"):
        quick().fit(views[0]).predict(views)
    with pytest.raises(ValueError, match="DEC takes one view"):
        DEC(3).fit(views)


def test_what_is_a_list_of_views():
    images = [np.zeros((8, 8)) for _ in range(10)]
    assert not is_views(images)  # ten images
    assert is_views(images[:2])
    assert not is_views([[1.0, 2.0], [3.0, 4.0]])
    assert not is_views(["a text", "another"])
    assert not is_views([np.zeros(3), np.zeros(3)])  # two vectors


def test_damaged_shapes_of_views_are_noticed(views, tmp_path):
    quick().fit(views).save(tmp_path / "m")
    edit(tmp_path / "m", view_shapes=[[6], [5]])
    with pytest.raises(ModelFormatError):
        DDC.load(tmp_path / "m")


def test_halves_of_digits_as_views():
    digits = load_digits()
    halves = [
        digits.data[:, :, :4].reshape(len(digits.data), -1),
        digits.data[:, :, 4:].reshape(len(digits.data), -1),
    ]
    model = quick(n_clusters=10, max_iter=20).fit(halves)
    assert len(model.labels_) == len(digits.data)
