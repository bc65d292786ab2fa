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
    assert StemVectorizer("german").build_analyzer()("Die Häuser") == ["haus"]
    with pytest.raises(ValueError, match="language='klingon' has no stemmer; there are"):
        StemVectorizer("klingon").fit(TEXTS)


def test_marks_belong_to_words():
    hindi = StemVectorizer("hindi").build_analyzer()("हिन्दी भाषा")
    assert len(hindi) == 2
    french = StemVectorizer("french").build_analyzer()
    assert french(unicodedata.normalize("NFD", "élève café")) == french("élève café")
    assert StemVectorizer("turkish").build_analyzer()("İSTANBUL") == ["istanbul"]


@pytest.mark.parametrize(
    ("language", "texts", "words"),
    [
        ("hindi", ["तेल की कीमतें बढ़ीं", "कच्चे तेल की कीमत"], {"तेल", "कच्चे"}),
        ("arabic", ["كُرَةُ القَدَمِ اليوم", "كرة القدم"], {"كرة", "القدم"}),
        ("persian", ["نفت گران می\u200cشود", "نفت گران میشود"], {"نفت", "گران", "میشود"}),
        ("russian", ["Цена нефти", "Цены на нефть"], {"нефти", "цена"}),
        ("greek", ["Τιμή πετρελαίου", "Ομάδα"], {"τιμή", "πετρελαίου", "ομάδα"}),
        ("tamil", ["எண்ணெய் விலை"], {"எண்ணெய்", "விலை"}),
        ("armenian", ["Նավթի գինը"], {"նավթի", "գինը"}),
        ("english", ["מחיר הנפט, אמר צה״ל", 'צה"ל'], {"מחיר", "הנפט", "אמר", "צהל"}),
        ("english", ["경기를 보았다", "경기가 끝났다"], {"경기가", "보았다", "끝났다"}),
        ("english", ["অবনতি তেলের"], {"অবনতি", "তেলের"}),
        ("russian", ["п’ять об'єкт", "п'ять"], {"пять", "обєкт"}),
        ("english", ["Do\u00adnau flows"], {"donau", "flows"}),
    ],
)
def test_words_of_other_scripts_are_whole_and_stemmed(language, texts, words):
    """The languages of alphabets that few others share are known without stop words."""
    vectorizer = StemVectorizer().fit(texts)
    assert vectorizer.language_ == language
    assert words <= set(vectorizer.whole_words(texts))


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


def test_texts_without_known_words_are_named_share_a_cluster_and_are_refused():
    with pytest.warns(
        UserWarning, match=r"2 of 32 texts hold none of the \d+ word stems .*: number 30, 31\."
    ):
        model = quick().fit([*TEXTS, "", "1234"])
    assert model.labels_[30] == model.labels_[31]
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        assert model.predict([TEXTS[0], "zebra"], reject=0.0)[1] == -1


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("english", "The minister said on Monday that the banks of the country would not be closed"),
        ("german", "Der Minister sagte am Montag, dass die Banken des Landes nicht geschlossen werden"),
        ("french", "Le ministre a dit lundi que les banques du pays ne seront pas fermées"),
        ("spanish", "El ministro dijo el lunes que los bancos del país no se van a cerrar"),
        ("italian", "Il ministro ha detto lunedì che le banche del paese non saranno chiuse"),
        ("portuguese", "O ministro disse na segunda-feira que os bancos do país não vão ser fechados"),
        ("dutch", "De minister zei op maandag dat de banken van het land niet worden gesloten"),
        (
            "danish",
            "Ministeren sagde mandag, at bankerne ikke bliver lukket efter at loven blev ændret af de andre",
        ),
        (
            "norwegian",
            "Statsråden sa mandag at bankene ikke blir stengt etter at loven ble endret av noen andre",
        ),
        ("swedish", "Ministern sade på måndagen att bankerna inte ska stängas och att lagen har ändrats"),
        ("finnish", "Ministeri sanoi maanantaina, että pankit eivät ole kiinni, mutta laki on muuttunut"),
        ("hungarian", "A miniszter azt mondta, hogy a bankok nem zárnak be, de a törvény már megváltozott"),
        (
            "romanian",
            "Ministrul a spus luni că băncile din țară nu vor fi închise și că legea este schimbată",
        ),
        ("polish", "Minister powiedział w poniedziałek, że banki nie są zamknięte, ale prawo jest już inne"),
        ("turkish", "Bakan bu pazartesi bankalar için yeni bir yasa olduğu ve daha çok önlem var dedi"),
        ("russian", "Министр сказал, что банки не будут закрыты, но закон уже был изменён и это важно"),
        ("greek", "Ο υπουργός είπε ότι οι τράπεζες δεν θα κλείσουν και ότι ο νόμος είναι νέος"),
    ],
)
def test_the_language_is_found_by_stop_words(language, text):
    assert StemVectorizer().fit([text] * 3).language_ == language


def test_single_words_are_no_language():
    assert StemVectorizer().fit(["dog", "las vegas", "die hard"]).language_ == "english"


def test_several_languages_are_stemmed_each_by_its_own_rules():
    german = "Die Häuser und die Banken werden nicht geschlossen"
    english = "The houses and the banks of the country are closing"
    with pytest.warns(UserWarning, match="The texts are in English and German"):
        model = quick().fit([german, english] * 10)
    vectorizer = model.vectorizer_
    assert vectorizer.language_ == "english+german"
    assert vectorizer.build_analyzer()(german) == ["haus", "bank", "geschloss"]
    assert vectorizer.build_analyzer()(english) == ["hous", "bank", "countri", "close"]
    assert "houses" in vectorizer.whole_words([english])


def test_languages_without_spaces_are_cut_into_characters():
    words = StemVectorizer().build_analyzer()
    assert words("東京都の天気") == ["東京", "京都", "都の", "の天", "天気"]
    assert words("iPhoneを買う") == ["iphon", "を買", "買う"]
    assert words("แมวกิน ปลา") == ["แมว", "มวก", "วกิ", "กิน", "ปลา"]
    texts = [f"{a}{b}" for a in ("天気予報", "株式市場") for b in ("の明日", "の昨日", "と今日")]
    assert (StemVectorizer().fit_transform(texts).getnnz(axis=0) > 1).sum() >= 8


def test_words_that_no_two_texts_share_are_worth_a_warning():
    unique = [
        "".join(chr(97 + ord(c) % 26) for c in f"{n:016b}{n * 7919:020b}") + chr(97 + n) for n in range(25)
    ]
    with pytest.warns(UserWarning, match="occur in one text only"):
        quick().fit(unique)
