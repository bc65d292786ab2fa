"""What other libraries expect: weights, names of features, frames out, data sets of the hub, routed metadata."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ddclust import DDC
from ddclust.data.batches import drawn_by_weight

QUICK = {"n_init": 1, "max_iter": 40, "random_state": 0, "n_jobs": 1}


def blobs(n=300):
    return make_blobs(n, centers=3, n_features=4, random_state=0)[0]


def test_items_are_drawn_in_proportion_to_their_weights():
    weights = np.array([0.0, 0.5, 1.0, 2.5, 1.0])
    drawn = np.array(
        [np.bincount(drawn_by_weight(weights, np.random.default_rng(i)), minlength=5) for i in range(3000)]
    )
    assert (drawn.sum(axis=1) == 5).all()
    assert (np.abs(drawn - weights) < 1).all()  # rounded up or down, no more
    assert np.abs(drawn.mean(axis=0) - weights).max() < 0.03


def test_weights_change_what_is_learnt():
    """Of two pairs of blobs, those with the weight become the two clusters."""
    rng = np.random.default_rng(0)
    inner = [rng.normal((x, 0), 0.1, (150, 2)) for x in (-1, 1)]
    outer = [rng.normal((0, y), 0.1, (150, 2)) for y in (-4, 4)]
    X = np.concatenate(inner + outer)
    model = DDC(2, n_init=1, n_final=None, max_iter=150, random_state=0, n_jobs=1)

    def parts(weights):
        labels = model.fit(X, sample_weight=np.repeat(weights, 300)).labels_.reshape(4, 150)
        return [np.bincount(blob).argmax() for blob in labels]

    left, right, _, _ = parts([1.0, 0.0])
    assert left != right
    _, _, below, above = parts([0.0, 1.0])
    assert below != above


def test_equal_weights_are_none():
    X = blobs()
    assert np.array_equal(
        DDC(3, **QUICK).fit(X, sample_weight=np.full(300, 0.1)).probabilities_,
        DDC(3, **QUICK).fit(X).probabilities_,
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(299), "a weight for each item"),
        (np.r_[np.nan, np.ones(299)], r"sample_weight\[0\] is nan"),
        (np.r_[np.ones(299), -1], r"sample_weight\[299\] is -1"),
        (np.r_[1, 1, np.zeros(298)], "2 of 300 items have a positive"),
        (["heavy"] * 300, "a number for each item"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        DDC(3, **QUICK).fit(blobs(), sample_weight=weights)


def test_resuming_with_other_weights_is_refused(tmp_path):
    model, X = DDC(3, checkpoint_dir=tmp_path, **QUICK), blobs()
    weights = np.arange(300.0)
    first = model.fit(X, sample_weight=weights).labels_
    assert np.array_equal(model.fit(X, sample_weight=weights).labels_, first)
    with pytest.raises(ValueError, match="the weights of the items differ"):
        model.fit(X, sample_weight=weights[::-1])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(library):
    frames = pytest.importorskip(library)
    X = frames.DataFrame(dict(zip("abcd", blobs().T, strict=True)))
    model = DDC(3, **QUICK).fit(X).set_output(transform=library)
    assert model.feature_names_in_.tolist() == list("abcd")
    out = model.transform(X)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == model.get_feature_names_out().tolist()
    assert out.columns[0] == "ddc0"
    assert np.array_equal(out.to_numpy(), model.set_output(transform="default").transform(X))
    assert isinstance(model.predict(X), np.ndarray)


def test_frames_keep_their_index_and_take_images():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs(), index=[f"row {i}" for i in range(300)])
    X.columns = list("abcd")
    pipeline = make_pipeline(StandardScaler(), DDC(3, **QUICK)).set_output(transform="pandas")
    assert pipeline.fit_transform(X).index[7] == "row 7"
    images = load_digits().images[:100]
    out = DDC(3, **QUICK).set_output(transform="pandas").fit_transform(images)
    assert out.shape == (100, 100)


def test_arrow_tables_keep_their_names():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(dict(zip("abcd", blobs().T, strict=True)))
    model = DDC(3, **QUICK).fit(table)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict(table), model.labels_)


def test_datasets_of_the_hub():
    datasets = pytest.importorskip("datasets")
    classes = datasets.ClassLabel(names=["a", "b"])
    texts = ["red apple pie", "green apple tree", "fast car engine", "old car engine"] * 10
    of_texts = datasets.Dataset.from_dict(
        {"text": texts, "label": [0, 1] * 20},
        features=datasets.Features({"text": datasets.Value("string"), "label": classes}),
    )
    model = DDC(2, encoder=None, **QUICK)
    assert np.array_equal(model.fit(of_texts).labels_, model.fit(texts).labels_)
    images = (load_digits().images[:60] * 15).astype(np.uint8)
    of_images = datasets.Dataset.from_dict(
        {"image": list(images)}, features=datasets.Features({"image": datasets.Image()})
    )
    model = DDC(3, encoder=None, **QUICK)
    assert np.array_equal(model.fit(of_images).labels_, model.fit(images).labels_)
    of_numbers = datasets.Dataset.from_dict(dict(zip("abcd", blobs().T, strict=True)))
    model.fit(of_numbers)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict(of_numbers), model.predict(blobs()))
    with pytest.raises(TypeError, match="streaming=True"):
        model.fit(of_numbers.to_iterable_dataset())


def test_weights_and_links_are_routed():
    X, weights, links = blobs(), np.arange(1.0, 301), np.array([[0, 1]])
    model = DDC(3, **QUICK)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), model.set_fit_request(sample_weight=True, must_link=True))
        routed[0].set_fit_request(sample_weight=False)
        routed.fit(X, sample_weight=weights, must_link=links)
    direct = DDC(3, **QUICK).fit(StandardScaler().fit_transform(X), sample_weight=weights, must_link=links)
    assert np.array_equal(routed[-1].labels_, direct.labels_)
