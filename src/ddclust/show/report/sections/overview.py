"""Overview: warnings, sizes and confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ddclust.show.report import content
from ddclust.show.report.items import ShownItems


def overview(items: ShownItems) -> dict[str, Any]:
    """The figures at the top of the page."""
    model, confidence = items.model, items.confidence
    limit = content.doubtful_below(model.n_clusters_)
    vote = None
    if len(model.voters_) > 1:
        vote = {"voters": len(model.voters_), "unanimous": float((model.agreement_ == 1).mean())}
    return {
        "warnings": content.warnings_of(
            model.runs_, model.labels_, confidence, model.agreement_, model.n_clusters_
        ),
        "clusters_used": len(np.unique(model.labels_)),
        "mean_confidence": float(confidence.mean()),
        "doubtful_below": limit,
        "doubtful": float((confidence < limit).mean()),
        "histogram": content.histogram_of_confidence(confidence),
        "vote": vote,
    }
