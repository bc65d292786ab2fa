"""Training: the losses over training, and a table of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddclust.defaults import resolved_selection
from ddclust.show.report.items import ShownItems
from ddclust.show.style import SVG_DASHES, colour
from ddclust.training.record import Outcome

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

NAMED_LINES = 8
# What the best run has, by each criterion.
BEST = {
    "loss": "the lowest unsupervised loss",
    "divergence": "the lowest divergence term",
    "pairs": "the lowest pair term",
    "agreement": "the highest agreement with the other runs",
}


def training(items: ShownItems) -> dict[str, Any]:
    """Charts of the losses, and the table of the runs."""
    model = items.model
    terms = list(model.runs_[model.voters_[0]]["terms"])
    return {
        "charts": _charts(model),
        "terms": terms,
        "runs": _run_rows(model, terms),
        "criterion": BEST[resolved_selection(getattr(model, "selection", "loss")).criterion],
    }


def _charts(model: NetworkClusterer) -> list[dict[str, Any]]:
    """The loss and its terms in the best run, and the losses of all runs."""
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
        charts.append(_chart("Loss of all runs", all_runs, thick=f"run {model.voters_[0] + 1}"))
    return charts


def _chart(title: str, series: dict[str, list[tuple[int, float]]], thick: str) -> dict[str, Any]:
    """Lines in the frame that the template draws; the important one is thick."""
    points = [point for line in series.values() for point in line]
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)

    def at(x: float, y: float) -> str:
        left = 45 + 405 * (x - first) / max(last - first, 1)
        top = 210 - 195 * (y - low) / max(high - low, 1e-12)
        return f"{left:.1f},{top:.1f}"

    lines = [
        {
            "name": name if len(series) <= NAMED_LINES or name == thick else "",
            "points": " ".join(at(x, y) for x, y in line),
            "colour": colour(i),
            "dash": "" if name == thick else SVG_DASHES[i % len(SVG_DASHES)],
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


def _run_rows(model: NetworkClusterer, terms: list[str]) -> list[dict[str, Any]]:
    """One row for each run, with its role in the result."""
    roles = {run: "chosen" if rank == 0 else "votes" for rank, run in enumerate(model.voters_)}

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.4f}"

    return [
        {
            "number": run["run"] + 1,
            "seed": run["seed"],
            "loss": number(run["loss"]),
            "terms": [number(run["terms"].get(term)) for term in terms],
            "clusters_used": run["clusters_used"] or "",
            "n_iter": run["n_iter"],
            "outcome": Outcome(run["outcome"]).in_words,
            "seconds": f"{run['seconds']:.1f}",
            "role": roles.get(i, ""),
        }
        for i, run in enumerate(model.runs_)
    ]
