"""Overview: warnings, sizes and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ddclust.choosing.calibration import Calibration
from ddclust.choosing.metrics import are_right
from ddclust.reading import scaled_vectors
from ddclust.show.report import content
from ddclust.show.report.items import ShownItems


def overview(items: ShownItems, warnings: Sequence[str]) -> dict[str, Any]:
    """The figures at the top of the page, and what to know before all else: of the fit, then of the result."""
    model, confidence = items.model, items.confidence
    limit = content.doubtful_below(model.n_clusters_)
    unanimous = None
    if not np.isnan(model.agreement_).any():
        unanimous = float((model.agreement_ == 1).mean())
    found = content.warnings_of(model.runs_, model.labels_, confidence, model.agreement_, model.n_clusters_)
    codes = None if items.codes is None else items.codes[items.sample]
    compared = content.k_means_as_well(_as_networks_see_them(items), model.labels_[items.sample], codes)
    return {
        "warnings": list(dict.fromkeys([*warnings, *found, *([compared] if compared else [])])),
        "clusters_used": len(np.unique(model.labels_)),
        "mean_confidence": float(confidence.mean()),
        "doubtful_below": limit,
        "doubtful": float((confidence < limit).mean()),
        "histogram": content.histogram_of_confidence(confidence),
        "calibration": content.how_calibrated(getattr(model, "calibration_", Calibration()).basis),
        "risk": _risk(items),
        "unanimous": unanimous,
        "voters": len(model.voters_),
    }


def _as_networks_see_them(items: ShownItems) -> Any:
    """The sampled items as vectors."""
    if items.encoded is not None:
        return items.encoded.at(items.sample).features
    if items.is_table:
        return items.vectors(items.sample)
    return scaled_vectors(items.vectors(items.sample) if items.is_text else items.rows(items.sample))


def _risk(items: ShownItems) -> dict[str, Any]:
    """The errors that the confidence expects and, if classes are known, the real ones."""
    if items.codes is None or not (items.codes >= 0).any():
        return content.risk_lines(items.confidence, None, None)
    known = items.codes >= 0
    return content.risk_lines(
        items.confidence, are_right(items.codes[known], items.model.labels_[known]), known
    )
