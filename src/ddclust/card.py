"""The model card: what a model folder holds, for people, as a README.md that the Hugging Face hub takes as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ddclust import __version__

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

MOST_ROWS = 50
MOST_COLUMNS = 30
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


def described_items(model: NetworkClusterer) -> str:
    """What a model takes, in words."""
    encoder = getattr(model, "encoder_", None)
    if hasattr(model, "columns_"):
        return f"rows of a table with the columns {_listed(model.columns_.names)}"
    if model.is_of_texts:
        return "texts"
    if hasattr(model, "view_shapes_"):
        return f"items in {len(model.view_shapes_)} views"
    shape = model.raw_shape
    if len(shape) > 1:
        return f"images of shape {'x'.join(map(str, shape))}"
    named = getattr(model, "feature_names_in_", None)
    columns = "" if named is None or encoder is not None else f": {_listed(named)}"
    return f"vectors of {shape[0]} values{columns}"


def _listed(names: Sequence[str]) -> str:
    shown = [as_text(str(name)) for name in names[:MOST_COLUMNS]]
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


def _clusters(model: NetworkClusterer) -> str:
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    confidence = model.probabilities_.max(axis=1)
    rows = ["| Cluster | Items | Confidence |", "| --- | --- | --- |"]
    for cluster, size in enumerate(sizes[:MOST_ROWS]):
        mean = f"{confidence[model.labels_ == cluster].mean():.2f}" if size else ""
        rows.append(f"| {cluster} | {size:,} | {mean} |")
    if len(sizes) > MOST_ROWS:
        rows.append(f"| … | {sizes[MOST_ROWS:].sum():,} | |")
    return "\n".join(rows)


def _basis(model: NetworkClusterer) -> str:
    return {
        "runs": "It is calibrated by the agreement of the runs.",
        "copies": "It is calibrated by changed copies of the items.",
    }.get(model.calibration_.basis, "It is not calibrated.")
