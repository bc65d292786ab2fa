"""Names for clusters, proposed from what sets them apart: words, columns, or a typical image."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ddclust.data.batches import input_shape
from ddclust.data.containers import as_items
from ddclust.data.items import SparseItems
from ddclust.data.readers.bunch import NumberedNames
from ddclust.data.tables.kinds import Trait
from ddclust.data.text import StemVectorizer

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

SAMPLE_ITEMS = 5000
WORDS, COLUMNS = 3, 1  # in a name, if they are enough to tell it from the others
MOST_PARTS = 6
LONGEST_PART = 40
UNIT = re.compile(r"\s*[(\[][^()\[\]]*[)\]]$")  # of a column, such as "(cm)"


class FittedItems:
    """The data of a fitted model, from which some items can be taken by position."""

    def __init__(self, model: NetworkClusterer, X: Any) -> None:
        self.model = model
        self.is_text = model.is_of_texts
        self.is_table = hasattr(model, "columns_")
        self.is_picture = len(model.raw_shape) > 1 and min(input_shape(model.raw_shape)[1:]) > 1
        self.X = self._taken(X)
        self.encoded = model._encoded(self.X, reset=False)

    def _taken(self, X: Any) -> Any:
        """Texts as a list, whatever their index, tables as such, and any other data as items."""
        if self.is_text:
            return list(X)
        if self.is_table:
            return self.model._table(X, reset=False)
        if hasattr(self.model, "encoder_"):
            return as_items(self.model._with_files_read(X, reset=False))
        return self.model._source(X).items

    def inputs(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data, as the model takes it; encoded if they are."""
        return self.rows(indices) if self.encoded is None else self.encoded.at(indices)

    def hidden(self, indices: NDArray[np.intp]) -> NDArray[np.float32]:
        """The hidden representation of some items; an array, even if the model gives data frames."""
        return np.asarray(self.model.transform(self.inputs(indices)))

    @cached_property
    def vectorizer(self) -> StemVectorizer | None:
        """What counts the words of texts: that of the model or, if texts are encoded, a new one; None if they hold none."""
        if self.encoded is None:
            return self.model.vectorizer_
        try:
            return StemVectorizer(self.model.language).fit(self.X)
        except ValueError:
            return None

    def rows(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data, as it was given."""
        if self.is_text:
            return [self.X[i] for i in indices.tolist()]
        return self.X.matrix[indices] if isinstance(self.X, SparseItems) else self.X[indices]

    def vectors(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data as vectors of features, sparse or not."""
        rows = self.rows(indices)
        if self.is_text:
            empty = scipy.sparse.csr_array((len(rows), 0))
            return empty if self.vectorizer is None else self.vectorizer.transform(rows)
        if self.is_table:
            return self.model.columns_.encode(rows)
        return rows if isinstance(self.X, SparseItems) else rows.reshape(len(rows), -1)

    def traits(self, indices: NDArray[np.intp]) -> Traits:
        """What can set some rows of a table apart, in terms of its columns."""
        return Traits(self.model.columns_.traits(self.rows(indices)))

    def words(self, indices: NDArray[np.intp]) -> list[str]:
        """The features as words: the most frequent whole word of each stem in some texts, or the columns."""
        if self.is_text:
            return [] if self.vectorizer is None else self.vectorizer.whole_words(self.rows(indices))
        return [str(name) for name in feature_names(self.model)]


class Traits:
    """What rows of a table have more or less of."""

    def __init__(self, traits: Sequence[Trait]) -> None:
        self.traits = traits
        self.values = np.column_stack([trait.values for trait in traits])

    def by_column(self, labels: NDArray, cluster: int) -> dict[str, tuple[str, float]]:
        """For each column that sets a cluster apart the most telling words, and how telling; the most telling first."""
        gaps = feature_gaps(self.values, labels, cluster)
        found: dict[str, tuple[str, float]] = {}
        for place in np.argsort(-np.abs(gaps), kind="stable"):
            trait, gap = self.traits[place], float(gaps[place])
            words = trait.high if gap > 0 else trait.low
            if gap != 0 and words is not None and trait.column not in found:
                words = f"{words} {UNIT.sub('', trait.column)}" if trait.is_measure else words
                found[trait.column] = (words, abs(gap))
        return found


def proposed_names(
    model: NetworkClusterer, X: Any, item_names: Sequence[str] | None = None
) -> dict[int, str]:
    """A name for each cluster that holds items: its telling words or columns, or its most typical image.

    Names are computed on 5,000 items at most, and no two are the same.

    Parameters
    ----------
    model : fitted DDC or DEC
    X : the data of the fit
    item_names : sequence of str, optional

    Returns
    -------
    dict of int to str

    Examples
    --------
    >>> import pandas
    >>> from ddclust import DDC
    >>> table = pandas.DataFrame({"length (cm)": [1.0, 1.2, 1.1, 5.0, 5.2, 5.1] * 5})
    >>> model = DDC(2, n_init=1, max_iter=60, random_state=0).fit(table)
    >>> sorted(proposed_names(model, table).values())
    ['high length', 'low length']
    """
    items, labels = FittedItems(model, X), model.labels_
    if items.is_picture:
        names = NumberedNames(len(labels)) if item_names is None else item_names
        called = {c: _with_noun(names[i]) for c, i in typical_images(items).items()}
        return _without_twins({c: [f"like {name}"] for c, name in called.items()}, 1)
    sample = sample_of_clusters(labels, SAMPLE_ITEMS, np.random.default_rng(0))
    clusters = np.unique(labels).tolist()
    if items.is_table:
        traits = items.traits(sample)
        told = {c: [words for words, _ in traits.by_column(labels[sample], c).values()] for c in clusters}
        return _without_twins({c: words[:MOST_PARTS] for c, words in told.items()}, COLUMNS)
    vectors, words = items.vectors(sample), items.words(sample)
    if items.is_text or scipy.sparse.issparse(
        vectors
    ):  # a sparse vector says which words or tags an item has
        parts = {c: telling_words(vectors, labels[sample], c, words, MOST_PARTS) for c in clusters}
        return _without_twins(parts, WORDS)
    return _without_twins(
        {c: _column_parts(feature_gaps(vectors, labels[sample], c), words) for c in clusters}, COLUMNS
    )


def feature_names(model: NetworkClusterer) -> NDArray[np.object_]:
    """Names of the features or word stems that a fitted model sees.

    Examples
    --------
    >>> from ddclust import DDC
    >>> feature_names(DDC(2, n_init=1, max_iter=5, random_state=0).fit([[0.0, 1.0], [1.0, 0.0]])).tolist()
    ['feature 0', 'feature 1']
    """
    if hasattr(model, "vectorizer_"):
        return model.vectorizer_.get_feature_names_out()
    if hasattr(model, "columns_"):
        return model.columns_.features
    if hasattr(model, "feature_names_in_"):
        return model.feature_names_in_
    n = math.prod(model.raw_shape) if hasattr(model, "encoder_") else model.n_features_in_
    return np.array([f"feature {i}" for i in range(n)], dtype=object)


def sample_of_clusters(labels: NDArray, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of about ``size`` items chosen at random, with at least a few from every cluster; all of small data."""
    n = len(labels)
    if n <= size:
        return np.arange(n)
    chosen = [rng.choice(n, size, replace=False)]
    few = max(size // (20 * max(labels.max() + 1, 1)), 1)
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        chosen.append(rng.choice(members, min(few, len(members)), replace=False))
    return np.unique(np.concatenate(chosen))


def telling_words(X: Any, labels: NDArray, cluster: int, words: Sequence[str], count: int) -> list[str]:
    """The words whose mean weight in the cluster exceeds that elsewhere most."""
    own = labels == cluster
    if not own.any():
        return []
    inside = _means(X[own])
    outside = _means(X[~own]) if (~own).any() else np.zeros_like(inside)
    order = np.argsort(outside - inside, kind="stable")[:count]
    return [words[i] for i in order if inside[i] > outside[i]]


def feature_gaps(X: Any, labels: NDArray, cluster: int) -> NDArray[np.float64]:
    """The mean of each feature in the cluster less its mean elsewhere, in standard deviations.

    Examples
    --------
    >>> feature_gaps(np.array([[0.0, 5.0], [0.0, 5.0], [2.0, 5.0], [2.0, 5.0]]), np.array([0, 0, 1, 1]), 0)
    array([-2.,  0.])
    """
    own = labels == cluster
    if own.all() or not own.any():
        return np.zeros(X.shape[1])
    inside, outside, everywhere = (_means(part) for part in (X[own], X[~own], X))
    is_sparse: bool = scipy.sparse.issparse(X)
    squares = X.multiply(X) if is_sparse else np.square(X, dtype=np.float64)
    spread = np.sqrt(np.maximum(_means(squares) - everywhere**2, 0.0))
    return (inside - outside) / np.where(spread > 1e-9 * np.abs(everywhere), spread, np.inf)


def typical_images(items: FittedItems) -> dict[int, int]:
    """For each cluster of images the number of a typical one, which can stand for it."""
    labels = items.model.labels_
    sample = sample_of_clusters(labels, SAMPLE_ITEMS, np.random.default_rng(0))
    typical = typical_items(items.hidden(sample), labels[sample])
    return {cluster: int(sample[place]) for cluster, place in typical.items()}


def typical_items(hidden: NDArray[np.float32], labels: NDArray) -> dict[int, int]:
    """For each cluster the position of the item that is closest to the mean of its hidden representations.

    Examples
    --------
    >>> typical_items(np.array([[0.0], [1.0], [5.0], [9.0]], dtype=np.float32), np.array([0, 0, 0, 1]))
    {0: 1, 1: 3}
    """
    typical = {}
    for cluster in np.unique(labels).tolist():
        members = np.flatnonzero(labels == cluster)
        own = hidden[members].astype(np.float64)
        typical[cluster] = int(members[np.square(own - own.mean(axis=0)).sum(axis=1).argmin()])
    return typical


def _with_noun(name: str) -> str:
    """The name of an item; a mere number says what it is the number of."""
    return f"item {name}" if name.isdecimal() else name


def _column_parts(gaps: NDArray[np.float64], columns: Sequence[str]) -> list[str]:
    """The columns that set a cluster apart, each as "high …" or "low …", the most telling first."""
    order = np.argsort(-np.abs(gaps), kind="stable")[:MOST_PARTS]
    return [f"{'high' if gaps[i] > 0 else 'low'} {UNIT.sub('', columns[i])}" for i in order if gaps[i] != 0]


def _without_twins(parts: dict[int, list[str]], enough: int) -> dict[int, str]:
    """Names of a few parts each; where two would be the same, of more parts, and at last with their numbers."""
    short = {c: [_shortened(part) for part in own] for c, own in parts.items() if own}
    names = {c: ", ".join(own[:enough]) for c, own in short.items()}
    for length in range(enough + 1, MOST_PARTS + 1):
        names |= {c: ", ".join(short[c][:length]) for c in _twins(names)}
    return names | {c: f"{names[c]} ({c})" for c in _twins(names)}


def _twins(names: dict[int, str]) -> list[int]:
    """The clusters that share their name with another one."""
    counts = Counter(names.values())
    return [cluster for cluster, name in names.items() if counts[name] > 1]


def _shortened(part: str) -> str:
    """A part of a name on one line."""
    line = " ".join(part.split())
    return line if len(line) <= LONGEST_PART else line[: LONGEST_PART - 1] + "…"


def _means(X: Any) -> NDArray[np.float64]:
    """The mean of each column, sparse or not."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
