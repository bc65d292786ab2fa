"""Kernel matrix: similarity in the hidden representation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ddclust import pictures
from ddclust.naming import sample_of_clusters
from ddclust.objective.loss import DDCLoss
from ddclust.show.report import content
from ddclust.show.report.items import ShownItems

KERNEL_ITEMS = 300


def kernel(items: ShownItems, rng: np.random.Generator) -> dict[str, Any] | None:
    """The kernel matrix of a sample as a picture, None for fewer than three items."""
    model = items.model
    sample = sample_of_clusters(model.labels_, KERNEL_ITEMS, rng)
    if len(sample) < 3:
        return None
    loss = getattr(model, "loss", None)
    matrix, borders = content.kernel_matrix(
        items.hidden(sample),
        model.labels_[sample],
        loss if isinstance(loss, DDCLoss) else DDCLoss(),
    )
    return {"picture": pictures.data_uri(matrix), "borders": borders, "n": len(sample)}
