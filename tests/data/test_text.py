import unicodedata
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from ddclust import DDC
from ddclust.data.text import StemVectorizer, tfidf_of_counts
from ddclust.storage.model_folder import ModelFormatError
from helpers import edit
from helpers import quick as quick_fit

SHIPS = ["The ship sailed at dawn", "Ships were sailing home", "A sailor on the ship's deck"]
BREAD = ["Bakers bake bread", "The baker baked a loaf of bread", "Loaves of baked bread"]
TEXTS = (SHIPS + BREAD) * 5


quick = partial(quick_fit, 2, max_iter=3)


def test_two_texts_by_hand():
    X = StemVectorizer().fit_transform(["ships ship sail", "sailing"])
    # Columns sail, ship. idf: ln(3/3) + 1 = 1 and ln(3/2) + 1; counts weigh 1 + ln(count).
    row = np.array([1, (1 + np.log(2)) * (np.log(1.5) + 1)])
    np.testing.assert_allclose(X.toarray(), [row / np.linalg.norm(row), [1, 0]], rtol=1e-6)


def test_counts_are_weighted_as_the_texts_they_are_of():
    texts = ["ships ship sail", "sailing", "ship"]
    counts = CountVectorizer(analyzer=StemVectorizer().build_analyzer()).fit_transform(texts)
    expected = StemVectorizer().fit_transform(texts).toarray()
    np.testing.assert_allclose(tfidf_of_counts(counts).toarray(), expected, rtol=1e-6)


def test_only_the_most_frequent_stems_are_kept():
    vectorizer = StemVectorizer(max_features=2).fit(["cat dog bird", "dog bird", "bird"])
    assert vectorizer.get_feature_names_out().tolist() == ["bird", "dog"]


def test_words():
    analyse = StemVectorizer().build_analyzer()
    assert analyse("The U.S. economy grew 3.5% in 1987; économies grew_too") == [
        "economi",
        "grew",
        "économi",
        "grew",
    ]
    assert analyse("x" * 200) == []
    assert StemVectorizer("german").build_analyzer()("Die Häuser") == ["die", "haus"]
    with pytest.raises(ValueError, match="language='klingon' has no stemmer; there are"):
        StemVectorizer("klingon").fit(TEXTS)


def test_marks_belong_to_words():
    hindi = StemVectorizer("hindi").build_analyzer()("हिन्दी भाषा")
    assert len(hindi) == 2
    french = StemVectorizer("french").build_analyzer()
    assert french(unicodedata.normalize("NFD", "élève café")) == french("élève café")
    assert StemVectorizer("turkish").build_analyzer()("İSTANBUL") == ["istanbul"]


def test_keys_are_no_texts():
    with pytest.raises((ValueError, TypeError)):
        quick().fit({"one": [1], "two": [2]})


def test_vectorizer_clones():
    assert clone(StemVectorizer("french", 7)).get_params() == {"language": "french", "max_features": 7}


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, lambda t: np.array(t, dtype=object)])
def test_texts_in_any_container(make):
    model = quick().fit(make(TEXTS))
    assert model.n_features_in_ == len(model.vectorizer_.vocabulary_)
    np.testing.assert_array_equal(model.predict(make(TEXTS)), model.labels_)
    vectors = model.vectorizer_.transform(TEXTS)
    np.testing.assert_array_equal(model.predict_proba(vectors), model.probabilities_)


def test_saved_model_takes_raw_text(tmp_path):
    model = quick(language="porter", n_init=2, n_vote=2, max_iter=30).fit(TEXTS)
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    new = ["A baker on a ship", "bread and loaves"]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.probabilities_)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_text() == (tmp_path / "model" / "model.json").read_text()


@pytest.mark.parametrize(
    "change",
    [{"stems": ["one"]}, {"stems": 5}, {"language": "klingon"}, {"language": None}, {"stems": None}],
)
def test_damaged_vectorizer_is_refused(tmp_path, change):
    quick().fit(TEXTS).save(tmp_path / "model")
    vectorizer = edit(tmp_path / "model")["vectorizer"]
    edit(tmp_path / "model", vectorizer=vectorizer | change)
    with pytest.raises(ModelFormatError):
        DDC.load(tmp_path / "model")


def test_twice_the_same_stem_is_refused(tmp_path):
    quick().fit(TEXTS).save(tmp_path / "model")
    vectorizer = edit(tmp_path / "model")["vectorizer"]
    vectorizer["stems"][0] = vectorizer["stems"][1]
    edit(tmp_path / "model", vectorizer=vectorizer)
    with pytest.raises(ModelFormatError, match="stems"):
        DDC.load(tmp_path / "model")


def test_a_fit_on_numbers_forgets_the_words(blobs):
    model = quick().fit(TEXTS).fit(blobs[0])
    assert not hasattr(model, "vectorizer_")
    with pytest.raises(ValueError, match=r"X is texts, but this DDC was fitted on items of shape \(2,\)"):
        model.predict(TEXTS)


def test_numbers_for_a_model_of_texts(blobs):
    with pytest.raises(ValueError, match="features"):
        quick().fit(TEXTS).predict(blobs[0])


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ("one text", "give a list of texts"),
        (["a text", None, "another"], "item 1 is of type NoneType"),
        ([None, "a text"], "item 0 is of type NoneType"),
        ([b"bytes", b"more"], "item 0 is of type bytes"),
        (["12 34", "the and of"] * 3, "Not one of the texts holds a word"),
    ],
)
def test_bad_texts(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        quick().fit(X)


def test_texts_without_known_words_are_counted():
    with pytest.warns(UserWarning, match=r"2 of 32 texts hold none of the \d+ word stems"):
        model = quick().fit([*TEXTS, "", "1234"])
    assert len(model.labels_) == 32
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        model.predict(["zebra"])
