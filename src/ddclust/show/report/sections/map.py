"""Map: the sampled items in the plane, drawn by the page's script."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.show.report import content
from ddclust.show.report.items import ShownItems


def map_caption(items: ShownItems) -> str:
    """What the map shows, in words."""
    n, n_shown = len(items.model.labels_), len(items.sample)
    part = "All items" if n_shown == n else f"A sample of {n_shown:,} of {n:,} items"
    caption = (
        f"{part}. The hidden representation is laid out by t-SNE: items that are close are alike, but distances between"
        " groups mean little."
    )
    if items.model.n_clusters_ == 3:
        caption += " The simplex shows the soft assignments themselves: an item in a corner is certain."
    return caption


def map_of(items: ShownItems, listed: NDArray[np.intp]) -> dict[str, Any]:
    """The sampled items by their places in the listing, and where each layout puts them."""
    return {
        "items": np.searchsorted(listed, items.sample).tolist(),
        "layouts": {name: _placed(places) for name, places in _layouts(items).items()},
        "corners": content.SIMPLEX_CORNERS.tolist(),
    }


def _layouts(items: ShownItems) -> dict[str, NDArray[np.float64]]:
    """Places of the sampled items in the unit square, by the name of the layout; the first is shown first."""
    hidden = items.hidden(items.sample)
    layouts = {"representation": content.neighbourhoods(hidden, seed=0)}
    if items.model.n_clusters_ == 3:
        layouts["simplex"] = content.in_the_simplex(items.model.probabilities_[items.sample])
    return layouts


def _placed(places: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"x": places[:, 0].round(4).tolist(), "y": places[:, 1].round(4).tolist()}
