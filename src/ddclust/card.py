"""What a fitted model is, for people: the model card, a README.md that the Hugging Face hub takes as it is, and HTML for notebooks."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ddclust import __version__
from ddclust.data.batches import Scaling
from ddclust.pictures import as_pictures, data_uri, shrunk

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

MOST_ROWS = 50
MOST_COLUMNS = 30
THUMBNAIL_SIDE = 32
METADATA = """---
library_name: ddclust
tags:
- ddclust
- clustering
- unsupervised
---
"""
PAPER = (
    "M. Kampffmeyer, S. Løkse, F. M. Bianchi, L. Livi, A.-B. Salberg and R. Jenssen, *Deep divergence-based approach to"
    " clustering*, Neural Networks 113 (2019), 91-101"
)


def model_card(model: NetworkClusterer) -> str:
    """The card of a fitted model: what it clusters, its clusters, how to use it, and its limits."""
    name, k = type(model).__name__, model.n_clusters_
    parts = [
        f"# A clustering of {described_items(model)}",
        f"{name} with {k} clusters, fitted on {len(model.labels_):,} items by ddclust {__version__}. Clusters have no meaning of"
        " their own: look at the items of each before you name it.",
        "## Clusters",
        _clusters(model),
        "Confidence is the mean of the largest probability of its items."
        + (f" {_basis(model)}" if hasattr(model, "calibration_") else ""),
        "## Use",
        f"```python\nfrom ddclust{'.baselines' if name != 'DDC' else ''} import {name}\n\n"
        f'model = {name}.load("path/to/this/folder")\nlabels = model.predict(X)\nprobabilities = model.predict_proba(X)\n```',
        f"`X` is {described_items(model)} as in the fit. Loading runs no code from the folder: `model.json` describes the"
        " model, and its weights are safetensors.",
        "## Limits",
        "- The model knows what it was fitted on. `predict(X, reject=0.05)` refuses items that are unlike that.\n"
        "- Clusters need not be the classes that you have in mind, and the labels of no class were used.\n"
        "- Another seed may give other clusters.",
        "## Settings",
        f"```\n{model.setup_ if hasattr(model, 'setup_') else name}\n```",
    ]
    if name == "DDC":
        parts += ["## Method", PAPER + "."]
    return METADATA + "\n" + "\n\n".join(parts) + "\n"


def described_items(model: NetworkClusterer, escape: Callable[[str], str] | None = None) -> str:
    """What a model takes, in words; names of columns are escaped for Markdown, or as is said."""
    escape = as_text if escape is None else escape
    if hasattr(model, "columns_"):
        return f"rows of a table with the columns {_listed(model.columns_.names, escape)}"
    if model.is_of_texts:
        return "texts"
    if hasattr(model, "view_shapes_"):
        return f"items in {len(model.view_shapes_)} views"
    shape = model.raw_shape
    if len(shape) > 1:
        return f"images of shape {'x'.join(map(str, shape))}"
    named = getattr(model, "feature_names_in_", None)
    columns = "" if named is None or hasattr(model, "encoder_") else f": {_listed(named, escape)}"
    return f"vectors of {shape[0]} values{columns}"


def _listed(names: Sequence[str], escape: Callable[[str], str]) -> str:
    shown = [escape(str(name)) for name in names[:MOST_COLUMNS]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def as_text(name: str) -> str:
    r"""A name that Markdown shows as it is, on one line, with nothing in it that is a command to a renderer.

    Examples
    --------
    >>> as_text("a|b\n<b>"), as_text("[x](javascript:y)")
    ('a\\|b &lt;b&gt;', '\\[x\\]\\(javascript:y\\)')
    """
    plain = "".join(c if c.isprintable() else " " for c in name)
    plain = re.sub(r"\s+", " ", plain).strip()
    plain = re.sub(r"([\\`*_{}\[\]()#+!|~$-])", r"\\\1", plain)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_html(model: NetworkClusterer) -> str:
    """The clusters of a fitted model as a table for notebooks: sizes, confidence, and images. Nothing in it can run."""
    rows = list(_sizes_and_confidence(model))
    largest = max(size for _, size, _ in rows)
    shown = thumbnails(getattr(model, "_typical_images", {}))
    cells = "".join(
        f'<tr><td>{cluster}</td><td>{size:,}</td><td style="min-width:10em;text-align:left">'
        f'<div style="background:#0072b2;height:.8em;width:{100 * size / max(largest, 1):.1f}%"></div></td>'
        f"<td>{confidence}</td>{_picture_cell(cluster, shown) if shown else ''}</tr>"
        for cluster, size, confidence in rows[:MOST_ROWS]
    )
    last = "<th>most certain</th>" if shown else ""
    more = len(rows) - MOST_ROWS
    rest = f"<p>and {more} more clusters</p>" if more > 0 else ""
    items = described_items(
        model, lambda name: html.escape("".join(c if c.isprintable() else " " for c in name))
    )
    basis = f" {html.escape(_basis(model))}" if hasattr(model, "calibration_") else ""
    return (
        f"<div><p>{len(rows)} clusters of {len(model.labels_):,} items: {items}.{basis}</p>"
        f"<table><thead><tr><th>cluster</th><th>items</th><th></th><th>confidence</th>{last}</tr></thead>"
        f"<tbody>{cells}</tbody></table>{rest}</div>"
    )


def thumbnails(images: Mapping[int, NDArray]) -> dict[int, str]:
    """Images by cluster as addresses of small pictures, black and white being the least and the largest of their values."""
    if not images:
        return {}
    items = np.stack(list(images.values()))
    small = shrunk(as_pictures(items, Scaling.of(items)), THUMBNAIL_SIDE)
    return {cluster: data_uri(picture) for cluster, picture in zip(images, small, strict=True)}


def _picture_cell(cluster: int, shown: Mapping[int, str]) -> str:
    if cluster not in shown:
        return "<td></td>"
    style = f"height:{THUMBNAIL_SIDE}px;image-rendering:pixelated;display:block;margin:0"
    return f'<td><img src="{shown[cluster]}" alt="the most certain item of cluster {cluster}" style="{style}"></td>'


def _sizes_and_confidence(model: NetworkClusterer) -> Iterator[tuple[int, int, str]]:
    """(cluster, items, mean confidence) of each cluster."""
    confidence = model.probabilities_.max(axis=1)
    for cluster, size in enumerate(np.bincount(model.labels_, minlength=model.n_clusters_).tolist()):
        yield cluster, size, f"{confidence[model.labels_ == cluster].mean():.2f}" if size else ""


def _clusters(model: NetworkClusterer) -> str:
    found = list(_sizes_and_confidence(model))
    rows = ["| Cluster | Items | Confidence |", "| --- | --- | --- |"]
    rows += [f"| {cluster} | {size:,} | {confidence} |" for cluster, size, confidence in found[:MOST_ROWS]]
    if len(found) > MOST_ROWS:
        rows.append(f"| … | {sum(size for _, size, _ in found[MOST_ROWS:]):,} | |")
    return "\n".join(rows)


def _basis(model: NetworkClusterer) -> str:
    return {
        "runs": "It is calibrated by the agreement of the runs.",
        "halves": "It is calibrated by what halves of the items give.",
        "copies": "It is calibrated by changed copies of the items.",
    }.get(model.calibration_.basis, "It is not calibrated.")
