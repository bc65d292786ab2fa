"""The page itself: what it needs is gathered here, then set in the template."""

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
from ddclust.choosing.metrics import known_classes
from ddclust.data.batches import Scaling
from ddclust.data.items import SparseItems
from ddclust.objective.loss import DDCLoss
from ddclust.results import clustering_key
from ddclust.show.explain import explain, overlay
from ddclust.show.report import content as _content
from ddclust.show.report import pictures as _pictures

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

MAP_ITEMS = 2000
KERNEL_ITEMS = 300
FEATURE_ITEMS = 5000
# Of certain and of doubtful items together; fewer for each cluster if there are many clusters.
PICTURES = 500
MAP_SIDE = 32
PICTURE_SIDE = 64
CAPTION_CHARACTERS = 240
WORDS = 15
FEATURES = 6
INFLUENTIAL = 8
# First Okabe and Ito's (their yellow darker, for a white page), which people with any colour vision can tell apart.
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#b5a900", "#7f7f7f", "#8c564b", "#6a3d9a",
    "#1b9e77", "#a6761d", "#e7298a", "#66a61e", "#386cb0", "#f0027f", "#bf5b17", "#4d4d4d", "#80b1d3", "#fb8072",
)  # fmt: skip


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
    """The page for a fitted model and the data that it was fitted on, as HTML.

    Everything is in it: no network request, no other file. Of large data a sample is shown, and the page says so.

    Parameters
    ----------
    model : fitted DDC or DEC
    X : the data of the fit
    title : str, default="Clusters"
    item_names : sequence of str, optional
    truth : sequence, optional
        Known classes, only to compare with; -1 and None for unknown.
    class_names : sequence of str, optional
        What the truth's codes 0, 1, ... mean. By default classes are called by their values.
    cluster_names : dict of int to str, optional
        Names that the page starts with.
    command : str, optional
        How the model was made.

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
        # The fit has said what is to be said; and features of a table are known by their order here.
        warnings.simplefilter("ignore", UserWarning)
        content = _content_of(model, X, title, item_names, truth, class_names, cluster_names, command)
    return _template().render(content)


@cache
def _template() -> jinja2.Template:
    folder = files("ddclust.show.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8"))
    template.globals["css"] = folder.joinpath("page.css").read_text(encoding="utf-8")
    template.globals["js"] = folder.joinpath("page.js").read_text(encoding="utf-8")
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
    labels, probabilities = model.labels_, model.probabilities_
    for name, given in (("X", X), ("item_names", item_names), ("truth", truth)):
        if given is not None and _length(given) != len(labels):
            raise ValueError(
                f"{name} has {_length(given):,} items, but the model was fitted on {len(labels):,}."
            )
    confidence = probabilities.max(axis=1)
    rng = np.random.default_rng(0)
    show = _Shown(model, X, item_names, confidence)
    compared = None
    if truth is not None:
        show.codes, show.classes = _coded(truth, class_names)
        if (show.codes >= 0).any():
            compared = _content.against_truth(labels, show.codes, show.classes, model.n_clusters_)
    mapped = _content.sample_of_clusters(labels, MAP_ITEMS, rng)
    kernel_items = _content.sample_of_clusters(labels, KERNEL_ITEMS, rng)
    vote = None
    if len(model.voters_) > 1:
        vote = {"voters": len(model.voters_), "unanimous": float((model.agreement_ == 1).mean())}
    return {
        "version": __version__,
        "title": title,
        "method": type(model).__name__,
        "command": command,
        "colours": COLOURS,
        "n_items": len(labels),
        "n_clusters": model.n_clusters_,
        "clusters_used": len(np.unique(labels)),
        "confidence": {
            "mean": float(confidence.mean()),
            "doubtful_below": _content.doubtful_below(model.n_clusters_),
            "doubtful": float((confidence < _content.doubtful_below(model.n_clusters_)).mean()),
            "histogram": _content.histogram_of_confidence(confidence),
        },
        "vote": vote,
        "warnings": _content.warnings_of(
            model.runs_, labels, confidence, model.agreement_, model.n_clusters_
        ),
        "clusters": _clusters(model, show, compared, rng),
        "map_caption": _map_caption(model, len(mapped)),
        "sampled": None if len(labels) <= FEATURE_ITEMS else FEATURE_ITEMS,
        "kernel": _kernel(model, show, kernel_items),
        "merging": _merging(model),
        "truth": compared,
        "curves": _curves(model),
        "terms": list(model.runs_[model.voters_[0]]["terms"]),
        "runs": _run_rows(model),
        "page_data": _page_data(model, show, mapped, cluster_names),
    }


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _coded(truth: Any, class_names: Sequence[str] | None) -> tuple[NDArray[np.int64], list[str]]:
    """Codes from 0, -1 for unknown, and what they mean."""
    codes, classes = known_classes(truth)
    if class_names is None:
        return codes, classes
    codes = np.asarray(truth, dtype=np.int64)
    if codes.max(initial=-1) >= len(class_names):
        raise ValueError(f"truth holds the code {codes.max()}, but there are {len(class_names)} class_names.")
    return codes, [str(name) for name in class_names]


class _Shown:
    """Single items as the page shows them: by picture, text or name."""

    def __init__(
        self, model: NetworkClusterer, X: Any, item_names: Sequence[str] | None, confidence: NDArray
    ) -> None:
        self.model = model
        self.is_text = hasattr(model, "vectorizer_")
        # Texts by their places, whatever index they came with; anything else as items, which give any rows.
        self.X: Any = list(X) if self.is_text else model._source(X).items
        self.names = item_names
        self.confidence = confidence
        self.codes: NDArray[np.int64] | None = None
        self._range: Scaling | None = None
        self.classes: list[str] = []
        self.is_picture = _pictures.is_picture(model.item_shape_)

    def rows(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data, as the model takes it."""
        if self.is_text:
            return [self.X[i] for i in indices.tolist()]
        return self.X.matrix[indices] if isinstance(self.X, SparseItems) else self.X[indices]

    def vectors(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data as vectors of features, sparse or not."""
        rows = self.rows(indices)
        if self.is_text:
            return self.model.vectorizer_.transform(rows)
        return rows if isinstance(self.X, SparseItems) else rows.reshape(len(rows), -1)

    def feature_names(self) -> list[str]:
        model: Any = self.model
        if self.is_text:
            return model.vectorizer_.get_feature_names_out().tolist()
        if hasattr(model, "feature_names_in_"):
            return [str(name) for name in model.feature_names_in_]
        return [f"feature {i}" for i in range(model.n_features_in_)]

    def name(self, index: int) -> str:
        return str(self.names[index]) if self.names is not None else f"item {index}"

    def caption(self, index: int) -> str | None:
        if not self.is_text:
            return None
        text = " ".join(self.X[index].split())
        return text if len(text) <= CAPTION_CHARACTERS else text[: CAPTION_CHARACTERS - 1] + "…"

    def truth(self, index: int) -> str | None:
        if self.codes is None or self.codes[index] < 0:
            return None
        return self.classes[self.codes[index]]

    def pictures(self, indices: NDArray[np.intp], side: int) -> NDArray[np.uint8]:
        """Pictures in the range of all that are shown; the model's own scaling need not be one to look at."""
        if self._range is None:
            sample = _content.sample_of_clusters(self.model.labels_, MAP_ITEMS, np.random.default_rng(0))
            self._range = Scaling.of(self.rows(sample))
        return _pictures.shrunk(_pictures.as_pictures(self.rows(indices), self._range), side)

    def items(self, indices: NDArray[np.intp], main_class: str | None) -> list[dict[str, Any]]:
        """A gallery."""
        if not len(indices):
            return []
        pictures: list[str | None] = [None] * len(indices)
        if self.is_picture:
            pictures = [_pictures.data_uri(p) for p in self.pictures(indices, PICTURE_SIDE)]
        return [
            {
                "name": self.name(i),
                "confidence": float(self.confidence[i]),
                "truth": self.truth(i),
                "wrong": main_class is not None and self.truth(i) not in (None, main_class),
                "caption": self.caption(i),
                "picture": picture,
            }
            for i, picture in zip(indices.tolist(), pictures, strict=True)
        ]


def _clusters(
    model: NetworkClusterer, show: _Shown, compared: dict[str, Any] | None, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """The section of each cluster."""
    labels, k = model.labels_, model.n_clusters_
    sizes = np.bincount(labels, minlength=k)
    count = int(np.clip(PICTURES // (2 * k), 3, 10))
    sampled = _content.sample_of_clusters(labels, FEATURE_ITEMS, rng)
    vectors = None if show.is_picture else show.vectors(sampled)
    feature_names = [] if show.is_picture else show.feature_names()
    sections = []
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        main_class, purity = None, 0.0
        if compared is not None and compared["counts"][cluster].sum():
            counts = compared["counts"][cluster]
            main_class, purity = show.classes[counts.argmax()], counts.max() / counts.sum()
        top = _content.most_certain(show.confidence, members, count)
        section = {
            "number": cluster,
            "size": int(sizes[cluster]),
            "share": sizes[cluster] / len(labels),
            "share_of_largest": sizes[cluster] / sizes.max(),
            "confidence": float(show.confidence[members].mean()) if len(members) else 0.0,
            "agreement": float(model.agreement_[members].mean()) if len(members) else 0.0,
            "nearest": _content.nearest_cluster(model.probabilities_, members, cluster),
            "main_class": main_class,
            "purity": purity,
            "top": show.items(top, main_class),
            "doubtful": show.items(_content.least_certain(show.confidence, members, count), main_class),
            "explained": [],
            "influential": [],
            "words": [],
            "features": [],
        }
        if len(members):
            section |= _explained(model, show, top)
        if show.is_text and len(members):
            section["words"] = _content.telling_words(vectors, labels[sampled], cluster, feature_names, WORDS)
        elif vectors is not None and len(members):
            section["features"] = _content.telling_features(
                vectors, labels[sampled], cluster, feature_names, FEATURES
            )
        sections.append(section)
    return sections


def _explained(model: NetworkClusterer, show: _Shown, indices: NDArray[np.intp]) -> dict[str, list[str]]:
    """What the network goes by in some items of a cluster: pictures, or names of features or words."""
    explanation = explain(model, show.rows(indices))
    if show.is_picture:
        painted = overlay(show.rows(indices), explanation.attributions)
        return {"explained": [_pictures.data_uri(p) for p in _pictures.shrunk(painted, PICTURE_SIDE)]}
    if explanation.feature_names is None:
        return {}
    mean = explanation._replace(attributions=explanation.attributions.mean(axis=0, keepdims=True))
    return {"influential": [name for name, value in mean.top_features(INFLUENTIAL)[0] if value > 0]}


def _map_caption(model: NetworkClusterer, n_shown: int) -> str:
    part = (
        "All items"
        if n_shown == len(model.labels_)
        else f"A sample of {n_shown:,} of {len(model.labels_):,} items"
    )
    simplex = " The simplex shows the soft assignments themselves: corners are certainty." * (
        model.n_clusters_ == 3
    )
    return (
        f"{part}. The network's representation is laid out by t-SNE: near means alike, distances between groups mean"
        f" little.{simplex}"
    )


def _page_data(
    model: NetworkClusterer, show: _Shown, mapped: NDArray[np.intp], cluster_names: dict[int, str] | None
) -> dict[str, Any]:
    """What the page's script works with."""
    labels = model.labels_[mapped]
    layouts = {"representation": _content.neighbourhoods(model.transform(show.rows(mapped)), seed=0)}
    if model.n_clusters_ == 3:
        layouts = {"simplex": _content.in_the_simplex(model.probabilities_[mapped]), **layouts}
    sheet = None
    if show.is_picture:
        pictures = show.pictures(mapped, MAP_SIDE)
        grid, columns = _pictures.sprite(pictures)
        height, width = pictures.shape[1:3]
        sheet = {"src": _pictures.data_uri(grid), "width": width, "height": height, "columns": columns}
    return {
        "key": clustering_key(model.labels_),
        "names": {str(c): name for c, name in (cluster_names or {}).items()},
        "colours": COLOURS,
        "classes": show.classes,
        "sprite": sheet,
        "map": {
            "layouts": {name: _placed(places.round(4), labels) for name, places in layouts.items()},
            "corners": _content.CORNERS.tolist(),
            "cluster": labels.tolist(),
            "confidence": show.confidence[mapped].astype(float).round(3).tolist(),
            "truth": None if show.codes is None else show.codes[mapped].tolist(),
            "item": [show.name(i) for i in mapped.tolist()],
            "caption": [show.caption(i) for i in mapped.tolist()] if show.is_text else None,
        },
    }


def _placed(places: NDArray[np.float64], labels: NDArray) -> dict[str, Any]:
    """Places of items, and for each cluster its number and where its name stands."""
    middles = [[int(c), *np.median(places[labels == c], axis=0).tolist()] for c in np.unique(labels)]
    return {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "labels": middles}


def _kernel(model: NetworkClusterer, show: _Shown, indices: NDArray[np.intp]) -> dict[str, Any] | None:
    if len(indices) < 3:
        return None
    loss = getattr(model, "loss", None)
    loss = loss if isinstance(loss, DDCLoss) else DDCLoss()
    matrix, borders = _content.kernel_matrix(
        model.transform(show.rows(indices)), model.labels_[indices], loss
    )
    return {"picture": _pictures.data_uri(matrix), "borders": borders, "n": len(indices)}


def _merging(model: NetworkClusterer) -> dict[str, Any] | None:
    """The tree by which clusters were merged."""
    tree = getattr(model, "merge_tree_", None)
    if tree is None or not len(tree):
        return None
    fine = getattr(model, "fine_labels_", np.empty(0, dtype=np.int64))
    return _content.merge_tree(tree, model.cluster_groups_[0], np.bincount(fine, minlength=len(tree) + 1))


def _curves(model: NetworkClusterer) -> list[dict[str, Any]]:
    """The loss and its terms of the best run, and the losses of all restarts."""
    history = model.history_
    charts = []
    if len(history) > 1:
        terms = [name for name in history[0] if name not in ("epoch", "iteration")]
        series = {name: [(record["iteration"], record[name]) for record in history] for name in terms}
        charts.append(_chart("Loss and its terms, best run", series, thick="loss"))
    all_runs = {
        f"run {run['run'] + 1}": [(record["iteration"], record["loss"]) for record in run["history"]]
        for run in model.runs_
        if len(run["history"]) > 1
    }
    if len(all_runs) > 1:
        charts.append(_chart("Loss of all restarts", all_runs, thick=f"run {model.voters_[0] + 1}"))
    return charts


def _chart(title: str, series: dict[str, list[tuple[int, float]]], thick: str) -> dict[str, Any]:
    """Lines in the frame of the template's chart, the important one thick."""
    points = [point for line in series.values() for point in line]
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)

    def at(x: float, y: float) -> str:
        return f"{45 + 405 * (x - first) / max(last - first, 1):.1f},{210 - 195 * (y - low) / max(high - low, 1e-12):.1f}"

    dashes = ("", "6 3", "2 3", "8 3 2 3")
    lines = [
        {
            "name": name if len(series) <= 8 or name == thick else "",
            "points": " ".join(at(x, y) for x, y in line),
            "colour": COLOURS[i % len(COLOURS)],
            "dash": "" if name == thick else dashes[i % len(dashes)],
            "width": 2.5 if name == thick else 1.4,
        }
        for i, (name, line) in enumerate(series.items())
    ]
    return {
        "title": title,
        "lines": lines,
        "first": f"{first:,}",
        "last": f"{last:,}",
        "low": f"{low:.3g}",
        "high": f"{high:.3g}",
    }


def _run_rows(model: NetworkClusterer) -> list[dict[str, Any]]:
    roles = {run: "chosen" if place == 0 else "votes" for place, run in enumerate(model.voters_)}

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.4f}"

    terms = list(model.runs_[model.voters_[0]]["terms"])
    return [
        {
            "number": run["run"] + 1,
            "seed": run["seed"],
            "loss": number(run["loss"]),
            "terms": [number(run["terms"].get(term)) for term in terms],
            "clusters_used": run["clusters_used"] or "",
            "n_iter": run["n_iter"],
            "outcome": run["outcome"],
            "seconds": f"{run['seconds']:.1f}",
            "role": roles.get(i, ""),
        }
        for i, run in enumerate(model.runs_)
    ]
