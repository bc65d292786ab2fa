"""Merging: the tree by which clusters were merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ddclust.show.report import content
from ddclust.show.report.items import ShownItems


def merging(items: ShownItems) -> dict[str, Any] | None:
    """The tree of the best network, None if no clusters were merged or all items are in one of them."""
    model = items.model
    tree = getattr(model, "merge_tree_", None)
    if tree is None or not len(tree):
        return None
    fine = getattr(model, "fine_labels_", np.empty(0, dtype=np.int64))
    return content.merge_tree(tree, model.cluster_groups_[0], np.bincount(fine, minlength=len(tree) + 1))
