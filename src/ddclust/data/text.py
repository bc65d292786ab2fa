"""Texts to vectors, as in the paper: TF-IDF of the most frequent word stems, sparse throughout."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import islice
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from ddclust.data.languages import AUTO, BETWEEN, USUAL, language_of, languages_of, stop_words

LONGEST_WORD = 100  # longer runs of letters are data, not words
# Scripts that do not part words by spaces, and how many characters stand for a word: Chinese and Japanese, and those of Thai,
# Lao, Burmese and Khmer, whose vowels and tones are characters, too.
UNSPACED = {
    "[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+": 2,
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+": 3,
}
# Marks that do not part words and that are often left out: soft hyphens, joiners, Arabic vowels and Hebrew points.
_INVISIBLE = "\u00ad\u200c\u200d\u2060\ufeff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u0640\u064b-\u065f\u0670"
# Apostrophes and gershayim between the letters of Cyrillic and Hebrew words.
_INSIDE = "(?<=[\u0400-\u04ff])['\u2019\u02bc](?=[\u0400-\u04ff])|(?<=[\u05d0-\u05ea])[\"'\u05f3\u05f4](?=[\u05d0-\u05ea])"
# Korean particles, the longer ones first. They follow a noun without a space; nouns have two syllables or more.
_PARTICLES = "에서는 으로는 에게서 에서 에게 으로 까지 부터 보다 처럼 이나 라고 이라 하고 은 는 이 가 을 를 의 에 와 과 도 로 만"
UNIQUE_SHARE = 0.9  # of the words in texts: if so many occur in one text only, words do not group the texts
FEWEST_TEXTS = 20  # of which that can be said
SHOWN = 5
SAMPLED_TEXTS, SAMPLED_CHARACTERS = 2000, 2000  # by which the language is found
# Share of letters behind the Latin ones from which on texts are in another alphabet.
LAST_LATIN, OTHER_LETTERS = "\u0250", 0.3


class StemVectorizer(TfidfVectorizer):
    """Texts to TF-IDF vectors of their most frequent word stems.

    An entry is (1 + log term count) x inverse document frequency, and rows have unit length. Words are runs of at
    least two letters of any alphabet, in lower case, without stop words. Of scripts without spaces between words, such as
    Chinese, Japanese and Thai, all runs of two or three characters are taken for words.

    Parameters
    ----------
    language : str, default="auto"
        The language of the Snowball stemmer and of the stop words, such as "german", "french", "norwegian" or "porter", or
        several, such as "english+german". Then each text is taken for the one that most of its stop words are of.
        "auto" finds them by stop words.
    max_features : int, default=2000
        The number of stems to keep, the most frequent ones in the texts.

    Attributes
    ----------
    language_ : str
        What "auto" stands for.

    Examples
    --------
    >>> vectorizer = StemVectorizer().fit(["Ships sail at dawn.", "A ship was sailing."])
    >>> vectorizer.get_feature_names_out().tolist()
    ['dawn', 'sail', 'ship']
    """

    def __init__(self, language: str = AUTO, max_features: int = 2000) -> None:
        super().__init__(max_features=max_features, sublinear_tf=True, dtype=np.float32)
        self.language = language

    def build_analyzer(self) -> Any:
        """The function from a text to its word stems."""
        return _StemsOf(getattr(self, "language_", USUAL if self.language == AUTO else self.language))

    def fit(self, raw_documents: Iterable[str], y: object = None) -> Self:
        """Learn the stems and their weights."""
        self.fit_transform(raw_documents)
        return self

    def fit_transform(self, raw_documents: Iterable[str], y: object = None) -> Any:
        """Learn the stems and return the vectors of the texts, a CSR matrix."""
        self.language_ = self.language
        if self.language == AUTO:
            raw_documents = list(raw_documents)
            self.language_ = resolved_language(AUTO, raw_documents)
        try:
            return super().fit_transform(raw_documents)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                "Not one of the texts holds a word: they have no letters, or only stop words."
            ) from error

    def whole_words(self, texts: Iterable[str]) -> list[str]:
        """For each stem its most frequent word in some texts, or the stem itself if they do not hold it.

        Examples
        --------
        >>> texts = ["Oil prices rise.", "The prices of oil", "A price"]
        >>> StemVectorizer().fit(texts).whole_words(texts)
        ['oil', 'prices', 'rise']
        """
        stems_of = self.build_analyzer()
        counts = Counter(pair for text in texts for pair in stems_of.pairs(text))
        words: dict[str | None, str] = {}
        for word, stem in sorted(counts, key=lambda pair: (-counts[pair], pair[0])):
            words.setdefault(stem, word)
        return [words.get(stem, stem) for stem in self.get_feature_names_out().tolist()]

    @classmethod
    def from_stems(cls, language: str, stems: list[str], idf: NDArray[np.float64]) -> Self:
        """A fitted vectorizer from its stems and their weights."""
        vectorizer = cls(language, max_features=max(len(stems), 1))
        vectorizer.vocabulary_ = {stem: column for column, stem in enumerate(stems)}
        vectorizer.fixed_vocabulary_ = False
        vectorizer.language_ = language
        vectorizer.idf_ = idf.astype(np.float32)
        return vectorizer


def tfidf_of_counts(counts: Any) -> Any:
    """TF-IDF of a sparse matrix of term counts, weighted as :class:`StemVectorizer` does.

    Examples
    --------
    >>> tfidf_of_counts(scipy.sparse.csr_array([[3, 0], [0, 1]])).toarray()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return scipy.sparse.csr_array(
        TfidfTransformer(sublinear_tf=True).fit_transform(counts.astype(np.float32))
    )


def resolved_language(language: str, texts: list[str]) -> str:
    """The language of texts, or several joined by "+", if ``language`` is "auto"."""
    if language != AUTO:
        return language
    drawn = np.linspace(0, len(texts) - 1, min(len(texts), SAMPLED_TEXTS)).astype(int)
    return languages_of(words_of(texts[place][:SAMPLED_CHARACTERS]) for place in drawn.tolist())


def other_language(texts: list[str]) -> str:
    """What many of the texts are in, if it is not English: languages, or another alphabet; else an empty text.

    Examples
    --------
    >>> other_language(["Die Katze und der Hund", "Das Haus ist nicht da"]), other_language(["The cat and the dog"])
    ('German', '')
    """
    languages = [name for name in resolved_language(AUTO, texts).split(BETWEEN) if name != USUAL]
    if languages:
        return " and ".join(map(str.capitalize, languages))
    letters = [
        letter for text in texts[:SAMPLED_TEXTS] for letter in text[:SAMPLED_CHARACTERS] if letter.isalpha()
    ]
    n_latin = sum(letter < LAST_LATIN for letter in letters)
    return "another alphabet" if n_latin < (1 - OTHER_LETTERS) * len(letters) else ""


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case.

    Examples
    --------
    >>> words_of("A cat's 2 Äpfel"), words_of("\u6771\u4eac\u90fd"), words_of("\u0e41\u0e21\u0e27 x")
    (['cat', 'äpfel'], ['東京', '京都'], ['แมว'])
    """
    composed = unicodedata.normalize("NFC", text).replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i")
    words = _word_pattern().findall(_joined().sub("", composed).lower())
    return (
        words if _unspaced().search(composed) is None else [part for word in words for part in _parts(word)]
    )


def unusual_texts(vectors: Any, vectorizer: StemVectorizer, *, is_fit: bool) -> Iterator[UserWarning]:
    """Warnings of texts without a word that is counted and, in a fit, of texts that words hardly group.

    Parameters
    ----------
    vectors : CSR matrix
        What the vectorizer made of the texts.
    """
    wordless = np.flatnonzero(np.diff(vectors.indptr) == 0)
    if len(wordless):
        yield WordlessWarning(wordless.tolist(), *vectors.shape)
    if not is_fit:
        return
    languages = vectorizer.build_analyzer().languages
    if len(languages) > 1:
        yield UserWarning(
            f"The texts are in {' and '.join(map(str.capitalize, languages))}. Words of different languages are counted apart, so"
            " clusters may follow the languages; a multilingual encoder compares meanings (encoder=folder of a"
            " sentence-transformers model)."
        )
    n_texts = np.bincount(vectors.indices, minlength=vectors.shape[1])
    if vectors.shape[0] >= FEWEST_TEXTS and (n_texts[vectors.indices] == 1).mean() > UNIQUE_SHARE:
        yield UserWarning(
            f"More than {UNIQUE_SHARE:.0%} of the words occur in one text only, so words hardly say which texts belong together; an"
            " encoder might (encoder='minilm')."
        )


class WordlessWarning(UserWarning):
    """Names the texts that are empty or hold no word that is counted. They are all alike, and ``reject`` refuses them."""

    def __init__(
        self,
        places: list[int],
        n_texts: int,
        n_stems: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.places, self.n_texts, self.n_stems = places, n_texts, n_stems
        what = "are empty" if n_stems is None else f"hold none of the {n_stems:,} word stems that are counted"
        named = [str(place) if names is None else repr(names[place]) for place in places[:SHOWN]]
        more = ", ..." if len(places) > SHOWN else ""
        super().__init__(
            f"{len(places):,} of {n_texts:,} texts {what}: {'number ' if names is None else ''}{', '.join(named)}{more}. Nothing"
            " tells these texts apart, so they share a cluster, which says nothing about them."
        )

    def with_item_names(self, names: Sequence[str]) -> Self:
        """The same warning with the names of the texts."""
        return type(self)(self.places, self.n_texts, self.n_stems, names)


class _StemsOf:
    """The word stems of a text; each word is stemmed once for each language."""

    def __init__(self, language: str) -> None:
        import snowballstemmer

        self.languages = language.split(BETWEEN)
        self._stems: dict[str, Any] = {}
        self._known: dict[str, dict[str, str | None]] = {}
        every_stop_word = frozenset[str]().union(*map(stop_words, self.languages))
        for name in self.languages:
            if name not in snowballstemmer.algorithms():
                known = ", ".join(sorted(snowballstemmer.algorithms()))
                raise ValueError(f"language={name!r} has no stemmer; there are {known}.")
            self._stems[name] = snowballstemmer.stemmer(name).stemWord
            self._known[name] = dict.fromkeys(every_stop_word)

    def __call__(self, text: str) -> list[str]:
        return [stem for _, stem in self.pairs(text) if stem is not None]

    def pairs(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text with their stems; that of stop words and of what is too long to be a word is None."""
        words = words_of(text)
        language = self.languages[0]
        if len(self.languages) > 1:
            language = language_of(words, self.languages) or language
        known, stem = self._known[language], self._stems[language]
        for word in words:
            if word not in known:
                known[word] = stem(_without_particle(word)) if len(word) <= LONGEST_WORD else None
        return [(word, known[word]) for word in words]


def _without_particle(word: str) -> str:
    """A Korean noun without the particle behind it; any other word as it is.

    Examples
    --------
    >>> [_without_particle(word) for word in ("\uacbd\uae30\ub97c", "\uacbd\uae30", "games")]
    ['경기', '경기', 'games']
    """
    found = _particle().fullmatch(word)
    return found[1] if found else word


@cache
def _particle() -> re.Pattern[str]:
    return re.compile(f"([\uac00-\ud7a3]{{2,}}?)(?:{_PARTICLES.replace(' ', '|')})")


@cache
def _joined() -> re.Pattern[str]:
    """What is removed, so that words stay whole."""
    return re.compile(f"[{_INVISIBLE}]|{_INSIDE}")


@cache
def _unspaced() -> re.Pattern[str]:
    """A run of each of the scripts without spaces, as a group of its own."""
    return re.compile("|".join(f"({script})" for script in UNSPACED))


def _parts(word: str) -> Iterator[str]:
    """The parts of a run of letters: as many characters as stand for a word, or what is between such scripts."""
    lengths, end = tuple(UNSPACED.values()), 0
    for run in _unspaced().finditer(word):
        if run.start() - end > 1:
            yield word[end : run.start()]
        end, found = run.end(), run.group()
        n = min(lengths[(run.lastindex or 1) - 1], len(found))
        yield from (found[i : i + n] for i in range(len(found) - n + 1))
    if len(word) - end > 1:
        yield word[end:]


@cache
def _word_pattern() -> re.Pattern[str]:
    """A letter, then letters and the combining marks of many scripts, which Python does not count as letters."""
    letters, marks = (
        r"[^\W\d_]",
        "".join(c for c in map(chr, range(2**16)) if unicodedata.category(c)[0] == "M"),
    )
    return re.compile(f"{letters}(?:{letters}|[{re.escape(marks)}])+")


def is_text(X: Any) -> bool:
    """Whether X is a one-dimensional sequence with a text among its first items."""
    if isinstance(X, (str, bytes, Mapping, Set)) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    if not hasattr(X, "__iter__") or not hasattr(X, "__getitem__"):
        return False
    return any(isinstance(item, (str, bytes)) for item in islice(X, 100))


def checked_texts(X: Iterable[Any]) -> list[str]:
    """The texts as a list; items that are not texts are refused."""
    texts = list(X)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"X holds texts, but item {number} is of type {type(text).__name__}; replace it by a text, possibly an"
                " empty one."
            )
    return texts
