"""Texts to vectors, as in the paper: TF-IDF of the most frequent word stems, sparse throughout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set
from functools import cache
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

LONGEST_WORD = 100  # what is longer is no word but data


class StemVectorizer(TfidfVectorizer):
    """Rows of length one: (1 + log term count) x inverse document frequency of the most frequent word stems.

    Words are runs of two letters or more, of any alphabet, in lower case. English stop words are left out; in other languages frequent words
    have little weight, but are not left out.

    Parameters
    ----------
    language : str, default="english"
        Whose stems: one of Snowball's, such as "german", "french", "norwegian" or "porter".
    max_features : int, default=2000
        How many stems, the most frequent ones of the texts.

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
        """The vectors of the texts that decide on the stems, as a CSR matrix."""
        try:
            return super().fit_transform(raw_documents)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                "Not one of the texts holds a word: there are no letters, or English stop words only."
            ) from error

    @classmethod
    def from_stems(cls, language: str, stems: list[str], idf: NDArray[np.float64]) -> Self:
        """A fitted vectorizer from what it has learned."""
        vectorizer = cls(language, max_features=max(len(stems), 1))
        vectorizer.vocabulary_ = {stem: column for column, stem in enumerate(stems)}
        vectorizer.fixed_vocabulary_ = False
        vectorizer.idf_ = idf.astype(np.float32)
        return vectorizer


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
        stems = []
        composed = unicodedata.normalize("NFC", text).replace(
            "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i"
        )
        for word in self._words(composed.lower()):
            if word not in self._known:
                self._known[word] = self._stem(word) if len(word) <= LONGEST_WORD else None
            stem = self._known[word]
            if stem is not None:
                stems.append(stem)
        return stems


@cache
def _word_pattern() -> re.Pattern[str]:
    """A letter, then letters and the marks that many scripts put on them, which Python does not count as letters."""
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
    """The texts as a list; refuses what is none."""
    texts = list(X)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"X holds texts, but item {number} is of type {type(text).__name__}; replace it by a text, which may be"
                " empty."
            )
    return texts
