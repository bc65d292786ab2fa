"""Clusters: the certain and doubtful items of each, and what sets it apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddclust import pictures
from ddclust.naming import feature_gaps, sample_of_clusters, telling_words
from ddclust.show.explain import explain, overlay, says_something
from ddclust.show.report import content
from ddclust.show.report.items import ShownItems
from ddclust.show.report.sections.listing import LARGE_SIDE

FEATURE_ITEMS = 5000
# Certain and doubtful items of all clusters together. If there are many clusters, each shows fewer.
GALLERY_ITEMS = 500
PICTURES, TEXTS_OR_ROWS = 12, 5  # in a gallery
EXPLAINED = 6
WORDS = 15
FEATURES = 6
INFLUENTIAL = 8


class Gallery(NamedTuple):
    """The most and the least certain items of a cluster."""

    certain: NDArray[np.intp]
    doubtful: NDArray[np.intp]


class Telling(NamedTuple):
    """What sets the clusters apart: words of each, plots of each, and all features by what they tell."""

    words: list[list[str]]
    box_plots: list[list[dict[str, Any]]]
    columns: NDArray[np.intp]


def galleries(items: ShownItems) -> list[Gallery]:
    """The items that each cluster shows."""
    most = PICTURES if items.is_picture else TEXTS_OR_ROWS
    count = int(np.clip(GALLERY_ITEMS // (2 * items.model.n_clusters_), 3, most))
    found = []
    for cluster in range(items.model.n_clusters_):
        members = np.flatnonzero(items.model.labels_ == cluster)
        certain = content.most_certain(items.confidence, members, count)
        doubtful = content.least_certain(items.confidence, members, count)
        found.append(Gallery(certain, doubtful))
    return found


def cluster_sections(
    items: ShownItems,
    compared: dict[str, Any] | None,
    shown: list[Gallery],
    telling: Telling,
    listed: NDArray[np.intp],
) -> list[dict[str, Any]]:
    """What the page shows of each cluster; items by their places in the listing."""
    model = items.model
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    sections = []
    for cluster, size in enumerate(sizes.tolist()):
        members = np.flatnonzero(model.labels_ == cluster)
        main_class, purity = _main_class(compared, cluster)
        gallery = shown[cluster]
        sections.append(
            {
                "number": cluster,
                "size": size,
                "share": size / len(model.labels_),
                "share_of_largest": size / sizes.max(),
                "confidence": float(items.confidence[members].mean()) if size else 0.0,
                "agreement": float(model.agreement_[members].mean()) if size else 0.0,
                "nearest": content.nearest_cluster(model.probabilities_, members, cluster),
                "main_class": None if main_class is None else items.classes[main_class],
                "main_code": main_class,
                "purity": purity,
                "certain": np.searchsorted(listed, gallery.certain).tolist(),
                "doubtful": np.searchsorted(listed, gallery.doubtful).tolist(),
                "words": telling.words[cluster],
                "box_plots": telling.box_plots[cluster],
                **_explained(items, gallery.certain[:EXPLAINED]),
            }
        )
    return sections


def telling(items: ShownItems, rng: np.random.Generator) -> Telling:
    """The words or features that set the clusters apart; nothing for pictures."""
    clusters = range(items.model.n_clusters_)
    nothing: list[list[Any]] = [[] for _ in clusters]
    if items.is_picture:
        return Telling(nothing, nothing, np.empty(0, dtype=np.intp))
    sample = sample_of_clusters(items.model.labels_, FEATURE_ITEMS, rng)
    if items.is_table:
        return _telling_columns(items, sample)
    vectors, labels, names = items.vectors(sample), items.model.labels_[sample], items.words(sample)
    if items.is_text:
        words = [telling_words(vectors, labels, cluster, names, WORDS) for cluster in clusters]
        return Telling(words, nothing, np.empty(0, dtype=np.intp))
    boxes = [content.box_plots(vectors, labels, cluster, names, FEATURES) for cluster in clusters]
    gaps = np.max([np.abs(feature_gaps(vectors, labels, cluster)) for cluster in clusters], axis=0)
    return Telling(nothing, boxes, np.argsort(-gaps, kind="stable"))


def _telling_columns(items: ShownItems, sample: NDArray[np.intp]) -> Telling:
    """The columns of a table that set the clusters apart, in their own units."""
    model, labels = items.model, items.model.labels_[sample]
    table, traits = items.rows(sample), items.traits(sample)
    told = [traits.by_column(labels, cluster) for cluster in range(model.n_clusters_)]
    plots = [
        content.column_plots(table, model.columns_, own, labels == cluster, FEATURES)
        for cluster, own in enumerate(told)
    ]
    names = [column.name for column in model.columns_.used]
    most = [max(own[name][1] if name in own else 0.0 for own in told) for name in names]
    return Telling([[] for _ in told], plots, np.argsort(-np.array(most), kind="stable"))


def _main_class(compared: dict[str, Any] | None, cluster: int) -> tuple[int | None, float]:
    """The class that most items of the cluster are of, and their share; None if no class is known."""
    if compared is None or not compared["counts"][cluster].any():
        return None, 0.0
    counts = compared["counts"][cluster]
    return int(counts.argmax()), counts.max() / counts.sum()


def _explained(items: ShownItems, indices: NDArray[np.intp]) -> dict[str, list[str]]:
    """What the network looks at in some items of a cluster: painted pictures, or names of features or words."""
    found: dict[str, list[str]] = {"explained": [], "influential": []}
    if not len(indices) or items.encoded is not None:
        return found
    rows = items.rows(indices)
    explanation = explain(items.model, rows)
    if items.is_picture:
        painted = overlay(rows, explanation.attributions)[says_something(explanation.attributions)]
        found["explained"] = [pictures.data_uri(picture) for picture in pictures.shrunk(painted, LARGE_SIDE)]
    elif explanation.feature_names is not None:
        mean = explanation._replace(attributions=explanation.attributions.mean(axis=0, keepdims=True))
        found["influential"] = [name for name, value in mean.top_features(INFLUENTIAL)[0] if value > 0]
    return found
