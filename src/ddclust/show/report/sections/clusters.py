"""Clusters: the certain and doubtful items of each, and what sets it apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.show.explain import explain, feature_names, overlay
from ddclust.show.report import content, pictures
from ddclust.show.report.items import PICTURE_SIDE, ShownItems

FEATURE_ITEMS = 5000
# Certain and doubtful items of all clusters together. If there are many clusters, each shows fewer.
GALLERY_ITEMS = 500
WORDS = 15
FEATURES = 6
INFLUENTIAL = 8


def cluster_sections(
    items: ShownItems, compared: dict[str, Any] | None, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """What the page shows of each cluster."""
    model, confidence = items.model, items.confidence
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    telling = _telling(items, rng)
    count = int(np.clip(GALLERY_ITEMS // (2 * model.n_clusters_), 3, 10))
    sections = []
    for cluster, size in enumerate(sizes.tolist()):
        members = np.flatnonzero(model.labels_ == cluster)
        main_class, purity = _main_class(items, compared, cluster)
        top = content.most_certain(confidence, members, count)
        doubtful = content.least_certain(confidence, members, count)
        sections.append(
            {
                "number": cluster,
                "size": size,
                "share": size / len(model.labels_),
                "share_of_largest": size / sizes.max(),
                "confidence": float(confidence[members].mean()) if size else 0.0,
                "agreement": float(model.agreement_[members].mean()) if size else 0.0,
                "nearest": content.nearest_cluster(model.probabilities_, members, cluster),
                "main_class": main_class,
                "purity": purity,
                "top": items.gallery(top, main_class),
                "doubtful": items.gallery(doubtful, main_class),
                **_explained(items, top),
                **telling[cluster],
            }
        )
    return sections


def _main_class(items: ShownItems, compared: dict[str, Any] | None, cluster: int) -> tuple[str | None, float]:
    """The class that most items of the cluster are of, and their share; None if no class is known."""
    if compared is None or not compared["counts"][cluster].any():
        return None, 0.0
    counts = compared["counts"][cluster]
    return items.classes[counts.argmax()], counts.max() / counts.sum()


def _explained(items: ShownItems, indices: NDArray[np.intp]) -> dict[str, list[str]]:
    """What the network looks at in some items of a cluster: painted pictures, or names of features or words."""
    found: dict[str, list[str]] = {"explained": [], "influential": []}
    if not len(indices):
        return found
    rows = items.rows(indices)
    explanation = explain(items.model, rows)
    if items.is_picture:
        painted = pictures.shrunk(overlay(rows, explanation.attributions), PICTURE_SIDE)
        found["explained"] = [pictures.data_uri(picture) for picture in painted]
    elif explanation.feature_names is not None:
        mean = explanation._replace(attributions=explanation.attributions.mean(axis=0, keepdims=True))
        found["influential"] = [name for name, value in mean.top_features(INFLUENTIAL)[0] if value > 0]
    return found


def _telling(items: ShownItems, rng: np.random.Generator) -> list[dict[str, Any]]:
    """For each cluster, the words or features that set it apart; none for pictures."""
    clusters = range(items.model.n_clusters_)
    if items.is_picture:
        return [{"words": [], "features": []} for _ in clusters]
    sample = content.sample_of_clusters(items.model.labels_, FEATURE_ITEMS, rng)
    vectors, labels = items.vectors(sample), items.model.labels_[sample]
    names = [str(name) for name in feature_names(items.model)]
    if items.is_text:
        words = [content.telling_words(vectors, labels, cluster, names, WORDS) for cluster in clusters]
        return [{"words": own, "features": []} for own in words]
    features = [content.telling_features(vectors, labels, cluster, names, FEATURES) for cluster in clusters]
    return [{"words": [], "features": own} for own in features]
