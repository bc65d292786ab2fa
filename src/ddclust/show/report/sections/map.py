"""Map: the sampled items in the plane, drawn by the page's script."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.results import clustering_key
from ddclust.show.report import content, pictures
from ddclust.show.report.items import ShownItems
from ddclust.show.style import COLOURS

MAP_SIDE = 32


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


def script_data(items: ShownItems, cluster_names: dict[int, str] | None) -> dict[str, Any]:
    """What the script of the page works with."""
    model, sample = items.model, items.sample
    labels = model.labels_[sample]
    return {
        "key": clustering_key(model.labels_),
        "names": {str(cluster): name for cluster, name in (cluster_names or {}).items()},
        "colours": COLOURS,
        "classes": items.classes,
        "sprite": _sprite(items) if items.is_picture else None,
        "map": {
            "layouts": {name: _placed(places.round(4), labels) for name, places in _layouts(items).items()},
            "corners": content.SIMPLEX_CORNERS.tolist(),
            "cluster": labels.tolist(),
            "confidence": items.confidence[sample].astype(float).round(3).tolist(),
            "truth": None if items.codes is None else items.codes[sample].tolist(),
            "item": [items.name(i) for i in sample.tolist()],
            "caption": [items.caption(i) for i in sample.tolist()] if items.is_text else None,
        },
    }


def _layouts(items: ShownItems) -> dict[str, NDArray[np.float64]]:
    """Places of the sampled items in the unit square, by the name of the layout; the first is shown first."""
    hidden = items.model.transform(items.rows(items.sample))
    layouts = {"representation": content.neighbourhoods(hidden, seed=0)}
    if items.model.n_clusters_ == 3:
        layouts = {"simplex": content.in_the_simplex(items.model.probabilities_[items.sample]), **layouts}
    return layouts


def _sprite(items: ShownItems) -> dict[str, Any]:
    """The pictures of the sampled items on one sheet."""
    small = items.pictures(items.sample, MAP_SIDE)
    sheet, columns = pictures.sprite(small)
    height, width = small.shape[1:3]
    return {"src": pictures.data_uri(sheet), "width": width, "height": height, "columns": columns}


def _placed(places: NDArray[np.float64], labels: NDArray) -> dict[str, Any]:
    """Places of items, and for each cluster its number and the place of its name."""
    middles = [[int(c), *np.median(places[labels == c], axis=0).tolist()] for c in np.unique(labels)]
    return {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "labels": middles}
