"""docs/selection.md: which label-free quantities rank runs as accuracy does."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.pages.found import Found, largest
from lab.pages.markdown import spread_text, table, write_page
from lab.paths import Place
from lab.studies import SIGNS, correlation

INTRODUCTION = """# Choosing a run without labels

Which quantities that need no labels rank runs as accuracy does? `python -m lab run selection` makes the results
(`lab/results/*/selection/`, with every quantity of every run), and this page is written from them. All runs train to the end,
and classes serve only to score.

- *Spearman* is the rank correlation of a quantity with ACC and NMI, with the sign turned where a small value is good: 1 if
  the quantity ranks runs as the score does, 0 if it says nothing. For n runs, chance alone gives a standard deviation of about
  1/sqrt(n - 1).
- *ACC of the choice* replays fits: the run that the quantity takes for the best, from groups of runs drawn at random. Groups
  overlap, so the spread is not that of independent repetitions.

The quantities:

- *loss* and its terms, on the whole data, as in `runs_` (`selection="loss"`, the default, and `"divergence"`);
- *agreement*: the mean adjusted Rand index with the other runs (`selection="agreement"`), and the same by NMI;
- *steadiness*: the share of items whose cluster stays the same under Gaussian noise of a tenth of the data's deviation;
- *confidence*: the mean of the largest soft assignment; *size entropy*: the entropy of the sizes of the clusters.

**Conclusion.** Without pairs, on digits, the divergence and the agreement rank runs better than the total loss. With pairs (last
table) the total loss is on average the best of the terms or close to it, and what it chooses is far above a random run. So
the total loss is the default, and `selection` offers the others.
"""
OF_RESTARTS = "## The loss alone: the runs of [restarts.md](restarts.md)\n"
WITH_PAIRS = """## Runs with pairs: those of [RESULTS.md](../RESULTS.md)

Spearman correlations with ACC. *pairs* is the pair term of the loss on the whole data (`selection="pairs"`): how little the
assignments change from an item to its copies and neighbours. *agreement* is that of the runs that were kept. A dash means not
recorded, or the same for all runs.
"""
COLUMNS = ("loss", "divergence", "orthogonality", "corners", "pairs", "agreement")
FEWEST_RUNS = 5


def write_selection(place: Place) -> bool:
    """Write docs/selection.md, if there are results."""
    results = largest("selection", place).values()
    if results:
        parts = [INTRODUCTION, *map(_section, results), *_of_restarts(place), *_with_pairs(place)]
        write_page(place.study_page("selection"), "\n".join(parts))
    return bool(results)


def _section(found: Found) -> str:
    facts, protocol = found.result["facts"], found.result["protocol"]
    params = protocol["of"]["params"]
    weight = params["loss"]["DDCLoss"]["weights"]["orthogonality"]
    rows = []
    for name, row in facts["quantities"].items():
        shown = [row.get("Spearman", {}).get(measure) for measure in ("ACC", "NMI")]
        correlations = ["" if value is None else f"{value:+.2f}" for value in shown]
        rows.append((name, row["better"], *correlations, spread_text(row["ACC of the choice"])))
    return (
        f"## {found.cell.data}, {found.result['data']['shape'][0]:,} items, k = {found.cell.n_clusters}\n\n"
        f"{len(facts['runs'])} runs of {params['max_iter']:,} iterations that use all clusters"
        f" ({facts['runs_with_empty_clusters']} others do not); orthogonality weight {weight:g}, other weights 1; groups of"
        f" {protocol['options']['group']}. A random run has ACC {spread_text(facts['any_run'])}.\n\n"
        + table(("quantity", "better when", "Spearman with ACC", "with NMI", "ACC of the choice"), rows)
    )


def _of_restarts(place: Place) -> list[str]:
    """The loss of the runs of the study of restarts, which has more runs, but not the other quantities."""
    rows = []
    for found in largest("restarts", place).values():
        runs = [run for run in found.result["facts"]["runs"] if "ACC" in run]
        value = -np.array([run["loss"] for run in runs])
        found_correlations = [
            _correlation_text(correlation(value, [run[measure] for run in runs]))
            for measure in ("ACC", "NMI")
        ]
        rows.append((found.cell.data, str(len(runs)), *found_correlations))
    header = ("data", "runs", "Spearman of the loss with ACC", "with NMI")
    return [OF_RESTARTS, table(header, rows)] if rows else []


def _with_pairs(place: Place) -> list[str]:
    """The runs of "Beyond the paper", whose terms are recorded and, for newer ones, the agreement."""
    rows, values = [], []
    for key, found in sorted(largest("beyond", place).items()):
        runs = _runs_with_pairs(found.result)
        if len(runs) >= FEWEST_RUNS:
            row = _accuracies_and_correlations(runs, found.cell.n_clusters)
            values.append(row)
            deviation = float(np.std([run["ACC"] for run in runs]))
            rows.append((", ".join(key), str(len(runs)), *_row(row, deviation)))
    if not rows:
        return []
    columns = ([value for value in column if value is not None] for column in zip(*values, strict=True))
    rows.append(("mean of the rows", "", *_row([float(np.mean(column)) for column in columns])))
    header = ("data, cell", "runs", "ACC: random run", "lowest loss", "lowest pairs", "best", *COLUMNS)
    return [WITH_PAIRS, table(header, rows)]


def _runs_with_pairs(result: dict[str, Any]) -> list[dict[str, Any]]:
    if result["protocol"].get("smooth") is not None:
        return []
    runs = [run for entry in result.get("repetitions", ()) for run in entry["runs"] if "ACC" in run]
    return [run | run["terms"] for run in runs if "pairs" in run["terms"]]


def _accuracies_and_correlations(runs: list[dict[str, Any]], n_clusters: int) -> list[float | None]:
    """ACC of a random run, of the lowest loss, of the lowest pair term and of the best run; then the correlations."""
    accuracy = [run["ACC"] for run in runs]

    def chosen(name: str) -> float:
        return min(runs, key=lambda run: (run["clusters_used"] < n_clusters, run[name]))["ACC"]

    row: list[float | None] = [float(np.mean(accuracy)), chosen("loss"), chosen("pairs"), max(accuracy)]
    for name in COLUMNS:
        values = [run.get(name) for run in runs]
        row.append(None if None in values else correlation(SIGNS[name] * np.array(values), accuracy))
    return row


def _row(values: list[Any], deviation: float | None = None) -> list[str]:
    """Four accuracies, the first with its deviation, and the correlations."""
    first, *others = (f"{value:.3f}" for value in values[:4])
    return [
        first if deviation is None else f"{first} ± {deviation:.3f}",
        *others,
        *map(_correlation_text, values[4:]),
    ]


def _correlation_text(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"
