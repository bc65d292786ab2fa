"""The page: gathers what its sections show and renders the template."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import jinja2
import numpy as np
from numpy.typing import NDArray

from ddclust import __version__
from ddclust.data.readers.bunch import NumberedNames
from ddclust.naming import proposed_names, typical_images
from ddclust.results import clustering_key
from ddclust.show.explain import not_explained
from ddclust.show.report.items import ShownItems
from ddclust.show.report.sections.clusters import FEATURE_ITEMS, cluster_sections, galleries, telling
from ddclust.show.report.sections.kernel import kernel
from ddclust.show.report.sections.known_classes import known_classes
from ddclust.show.report.sections.listing import listed_items, listing
from ddclust.show.report.sections.map import map_caption, map_of
from ddclust.show.report.sections.merging import merging
from ddclust.show.report.sections.overview import overview
from ddclust.show.report.sections.training import training
from ddclust.show.style import COLOURS, SCALE, colour

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer


SCRIPTS = ("page.js", "page.items.js", "page.map.js")  # in the order in which they run


def report_page(
    model: NetworkClusterer,
    X: Any,
    *,
    title: str = "Clusters",
    item_names: Sequence[str] | None = None,
    truth: Sequence[Any] | NDArray | None = None,
    class_names: Sequence[str] | None = None,
    cluster_names: dict[int, str] | None = None,
    command: str | None = None,
    warnings: Sequence[str] = (),
    skipped: Mapping[str, str] | None = None,
    image_folder: str | os.PathLike[str] | None = None,
) -> str:
    """The report of a fitted model on the data of its fit, as one HTML page.

    The page is self-contained: it needs no other file and no network. Of large data it shows a sample, and says so.

    Parameters
    ----------
    model : fitted DDC or DEC
    X : the data of the fit
    title : str, default="Clusters"
    item_names : sequence of str, optional
    truth : sequence, optional
        Known classes to compare with; -1 and None for unknown.
    class_names : sequence of str, optional
        Names of the codes 0, 1, ... in the truth. By default classes are called by their values.
    cluster_names : dict of int to str, optional
        Names of clusters, in place of those that are proposed. Readers can change them on the page.
    command : str, optional
        The command that made the model, shown at the end.
    warnings : sequence of str, optional
        What the fit warned of, shown at the top.
    skipped : mapping of str to str, optional
        Files that could not be read, with the reasons, shown at the top.
    image_folder : path-like, optional
        Where the images are, if they are files that are called by ``item_names``. The page then shows some of them
        in a better resolution than the network sees.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ddclust import DDC
    >>> X, y = make_blobs(60, centers=3, random_state=0)
    >>> page = report_page(DDC(3, n_init=1, max_iter=50, random_state=0).fit(X), X, truth=y)
    >>> page.startswith("<!doctype html>")
    True
    """
    with catch_warnings():
        # The fit has warned already, and the features of a table are known by their order here.
        simplefilter("ignore", UserWarning)
        content = _content_of(model, X, item_names, truth, class_names, cluster_names, warnings, image_folder)
    return _template().render(content, title=title, command=command, skipped=skipped or {})


@cache
def _template() -> jinja2.Template:
    """The template with its style sheet and script. What users named is escaped."""
    folder = files("ddclust.show.report")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(read("page.html"))
    css = read("page.css") + _palette()
    js = "".join(read(name) for name in SCRIPTS)
    template.globals.update({"css": css, "js": js, "css_hash": _hash(css), "js_hash": _hash(js)})
    template.globals.update(colour=colour, colour_class=lambda number: f"c{number % len(COLOURS)}")
    template.globals["version"] = __version__
    return template


def _palette() -> str:
    """The colours of clusters and of the scale as rules of the style sheet."""
    rules = [f".c{number} {{ --own: {value}; }}" for number, value in enumerate(COLOURS)]
    rules.append(f".scale {{ background: linear-gradient(to right, {', '.join(SCALE)}); }}")
    return "\n".join(rules) + "\n"


def _hash(content: str) -> str:
    """What the page's policy calls a script or style sheet by, so that no other runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _content_of(
    model: NetworkClusterer,
    X: Any,
    item_names: Sequence[str] | None,
    truth: Any,
    class_names: Sequence[str] | None,
    cluster_names: dict[int, str] | None,
    warnings: Sequence[str],
    image_folder: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """What the template shows of the model and its data."""
    n = len(model.labels_)
    for name, given in (("X", X), ("item_names", item_names), ("truth", truth)):
        if given is not None and _length(given) != n:
            raise ValueError(f"{name} has {_length(given):,} items, but the model was fitted on {n:,}.")
    rng = np.random.default_rng(0)
    items = ShownItems(
        model,
        X,
        rng,
        names=None if isinstance(item_names, NumberedNames) else item_names,
        truth=truth,
        class_names=class_names,
        image_folder=None if image_folder is None else Path(image_folder),
    )
    compared, shown, told = known_classes(items), galleries(items), telling(items, rng)
    signs = typical_images(items) if items.is_picture else {}
    opened = np.unique(np.concatenate([*(np.concatenate(gallery) for gallery in shown), [*signs.values()]]))
    opened = opened.astype(np.intp)
    listed = listed_items(items, opened, rng)
    sections = cluster_sections(items, compared, shown, told, listed)
    names = proposed_names(model, X, item_names)
    script_data = {
        "key": clustering_key(model.labels_),
        "clusters": [
            {
                "proposed": names.get(section["number"]),
                "mainClass": section["main_code"],
                "sign": int(np.searchsorted(listed, signs[number])) if number in signs else None,
            }
            for number, section in enumerate(sections)
        ],
        "names": {str(cluster): name for cluster, name in (cluster_names or {}).items()},
        "colours": COLOURS,
        "scale": SCALE,
        "classes": items.classes,
        "items": listing(items, listed, opened, told.columns),
        "map": map_of(items, listed),
    }
    return {
        "method": type(model).__name__,
        "n_items": n,
        "n_clusters": model.n_clusters_,
        "names": {number: f"cluster {number}" for number in range(model.n_clusters_)}
        | names
        | (cluster_names or {}),
        "overview": overview(items, warnings),
        "map_caption": map_caption(items),
        "script_data": script_data,
        "kernel": kernel(items, rng),
        "clusters": sections,
        "not_explained": not_explained(model) if hasattr(model, "encoder_") else None,
        "sampled": FEATURE_ITEMS if n > FEATURE_ITEMS and not items.is_picture else None,
        "merging": merging(items),
        "truth": compared,
        "training": training(items),
    }


def _length(X: Any) -> int:
    """The number of items in anything that can be fitted."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
