"""Texts to vectors, as in the paper: TF-IDF of the most frequent word stems, sparse throughout."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from functools import cache
from itertools import islice
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer, TfidfVectorizer

LONGEST_WORD = 100  # longer runs of letters are data, not words


class StemVectorizer(TfidfVectorizer):
    """Texts to TF-IDF vectors of their most frequent word stems.

    An entry is (1 + log term count) x inverse document frequency, and rows have unit length. Words are runs of at
    least two letters of any alphabet, in lower case. English stop words are left out; other languages keep theirs,
    with little weight.

    Parameters
    ----------
    language : str, default="english"
        The language of the Snowball stemmer, such as "german", "french", "norwegian" or "porter".
    max_features : int, default=2000
        The number of stems to keep, the most frequent ones in the texts.

    Examples
    --------
    >>> vectorizer = StemVectorizer().fit(["Ships sail at dawn.", "A ship was sailing."])
    >>> vectorizer.get_feature_names_out().tolist()
    ['dawn', 'sail', 'ship']
    """

    def __init__(self, language: str = "english", max_features: int = 2000) -> None:
        super().__init__(max_features=max_features, sublinear_tf=True, dtype=np.float32)
        self.language = language

    def build_analyzer(self) -> Any:
        """The function from a text to its word stems."""
        return _StemsOf(self.language)

    def fit(self, raw_documents: Iterable[str], y: object = None) -> Self:
        """Learn the stems and their weights."""
        self.fit_transform(raw_documents)
        return self

    def fit_transform(self, raw_documents: Iterable[str], y: object = None) -> Any:
        """Learn the stems and return the vectors of the texts, a CSR matrix."""
        try:
            return super().fit_transform(raw_documents)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                "Not one of the texts holds a word: they have no letters, or only English stop words."
            ) from error

    def whole_words(self, texts: Iterable[str]) -> list[str]:
        """For each stem its most frequent word in some texts, or the stem itself if they do not hold it.

        Examples
        --------
        >>> texts = ["Oil prices rise.", "The prices of oil", "A price"]
        >>> StemVectorizer().fit(texts).whole_words(texts)
        ['oil', 'prices', 'rise']
        """
        stems_of = _StemsOf(self.language)
        counts = Counter(word for text in texts for word in stems_of.words(text))
        words: dict[str | None, str] = {}
        for word in sorted(counts, key=lambda word: (-counts[word], word)):
            words.setdefault(stems_of.stem(word), word)
        return [words.get(stem, stem) for stem in self.get_feature_names_out().tolist()]

    @classmethod
    def from_stems(cls, language: str, stems: list[str], idf: NDArray[np.float64]) -> Self:
        """A fitted vectorizer from its stems and their weights."""
        vectorizer = cls(language, max_features=max(len(stems), 1))
        vectorizer.vocabulary_ = {stem: column for column, stem in enumerate(stems)}
        vectorizer.fixed_vocabulary_ = False
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


class _StemsOf:
    """The word stems of a text; each word is stemmed once."""

    def __init__(self, language: str) -> None:
        import snowballstemmer

        if language not in snowballstemmer.algorithms():
            known = ", ".join(sorted(snowballstemmer.algorithms()))
            raise ValueError(f"language={language!r} has no stemmer; there are {known}.")
        self._words = _word_pattern().findall
        self._stem = snowballstemmer.stemmer(language).stemWord
        self._known: dict[str, str | None] = {}
        if language in ("english", "porter"):
            self._known = dict.fromkeys(ENGLISH_STOP_WORDS)

    def __call__(self, text: str) -> list[str]:
        stems = (self.stem(word) for word in self.words(text))
        return [stem for stem in stems if stem is not None]

    def words(self, text: str) -> list[str]:
        """The words of a text, in lower case."""
        composed = unicodedata.normalize("NFC", text).replace(
            "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
        )
        return self._words(composed.lower())

    def stem(self, word: str) -> str | None:
        """The stem of a word, None for stop words and what is too long to be a word."""
        if word not in self._known:
            self._known[word] = self._stem(word) if len(word) <= LONGEST_WORD else None
        return self._known[word]


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
