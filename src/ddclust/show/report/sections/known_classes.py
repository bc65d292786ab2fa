"""Known classes: the clusters against the truth."""

from __future__ import annotations

from typing import Any

from ddclust.show.report import content
from ddclust.show.report.items import ShownItems


def known_classes(items: ShownItems) -> dict[str, Any] | None:
    """Accuracy, NMI and the table of clusters and classes, None if no class is known."""
    if items.codes is None or not (items.codes >= 0).any():
        return None
    model = items.model
    return content.against_truth(model.labels_, items.codes, items.classes, model.n_clusters_)
