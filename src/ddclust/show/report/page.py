"""The page: gathers what its sections show and renders the template."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from numpy.typing import NDArray

from ddclust import __version__
from ddclust.show.report.items import ShownItems
from ddclust.show.report.sections.clusters import FEATURE_ITEMS, cluster_sections
from ddclust.show.report.sections.kernel import kernel
from ddclust.show.report.sections.known_classes import known_classes
from ddclust.show.report.sections.map import map_caption, script_data
from ddclust.show.report.sections.merging import merging
from ddclust.show.report.sections.overview import overview
from ddclust.show.report.sections.training import training
from ddclust.show.style import colour

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer


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
        Names of clusters to start with. Readers can change them on the page.
    command : str, optional
        The command that made the model, shown at the end.

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
    with warnings.catch_warnings():
        # The fit has warned already, and the features of a table are known by their order here.
        warnings.simplefilter("ignore", UserWarning)
        content = _content_of(model, X, title, item_names, truth, class_names, cluster_names, command)
    return _template().render(content)


@cache
def _template() -> jinja2.Template:
    """The template with its style sheet and script. What users named is escaped."""
    folder = files("ddclust.show.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    template.globals["css"] = folder.joinpath("page.css").read_text(encoding="utf-8")
    template.globals["js"] = folder.joinpath("page.js").read_text(encoding="utf-8")
    template.globals["colour"] = colour
    return template


def _content_of(
    model: NetworkClusterer,
    X: Any,
    title: str,
    item_names: Sequence[str] | None,
    truth: Any,
    class_names: Sequence[str] | None,
    cluster_names: dict[int, str] | None,
    command: str | None,
) -> dict[str, Any]:
    """All values of the template."""
    n = len(model.labels_)
    for name, given in (("X", X), ("item_names", item_names), ("truth", truth)):
        if given is not None and _length(given) != n:
            raise ValueError(f"{name} has {_length(given):,} items, but the model was fitted on {n:,}.")
    rng = np.random.default_rng(0)
    items = ShownItems(model, X, rng, names=item_names, truth=truth, class_names=class_names)
    compared = known_classes(items)
    return {
        "version": __version__,
        "title": title,
        "method": type(model).__name__,
        "command": command,
        "n_items": n,
        "n_clusters": model.n_clusters_,
        "overview": overview(items),
        "map_caption": map_caption(items),
        "script_data": script_data(items, cluster_names),
        "kernel": kernel(items, rng),
        "clusters": cluster_sections(items, compared, rng),
        "sampled": FEATURE_ITEMS if n > FEATURE_ITEMS else None,
        "merging": merging(items),
        "truth": compared,
        "training": training(items),
    }


def _length(X: Any) -> int:
    """The number of items in anything that can be fitted."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
