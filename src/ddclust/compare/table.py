"""From the fits of a method to its row of the table, with and without knowledge of the classes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.compare.job import Result, read_labels, write_labels
from ddclust.storage.atomic import write_file
from ddclust.storage.json_files import write_sealed
from ddclust.storage.tables import csv_text
from ddclust.storage.workspace import WorkspaceError

COMPARISON_FILE = "comparison.json"
TABLE_FILE = "table.csv"
LABELS_FILE = "labels.csv"
LABELS_FOLDER = "labels"
TABLE_COLUMNS = ("method", "NMI", "ACC", "best NMI", "best ACC", "fits", "failed", "seconds", "peak MB")


class ComparisonError(WorkspaceError):
    """A comparison that cannot be made in this folder."""


@dataclass(frozen=True)
class Fit:
    """A fit that succeeded: its parameters, its result and its labels."""

    params: dict[str, Any]
    result: Result
    labels: NDArray[np.int64]


class Failure(TypedDict):
    """A fit that failed."""

    params: dict[str, Any]
    error: str


class Score(TypedDict):
    """What is said of a single fit; NMI and ACC only if classes are known."""

    NMI: NotRequired[float]
    ACC: NotRequired[float]
    params: dict[str, Any]
    seconds: float
    clusters_used: int


class Row(TypedDict):
    """What a comparison says of a method, as it is written to comparison.json.

    Everything from ``seconds`` on needs a fit that succeeded, everything from ``best`` on known classes.
    """

    method: str
    fits: int  # how many succeeded
    failures: list[Failure]
    warnings: list[str]
    seconds: NotRequired[float]  # median of a fit
    total_seconds: NotRequired[float]
    peak_mb: NotRequired[float]  # of the fit that used the most memory
    label_free: NotRequired[Score]  # the fit that is chosen without knowing the classes
    best: NotRequired[Score]  # the fit that agrees most with the classes, as in the paper's table
    NMI_mean: NotRequired[float]
    NMI_sd: NotRequired[float]
    ACC_mean: NotRequired[float]
    ACC_sd: NotRequired[float]
    protocol: NotRequired[dict[str, Any]]
    labels_sha256: NotRequired[str]  # the digest of the labels that were chosen without knowing the classes


class ComparisonFile(TypedDict):
    """What is used of comparison.json, apart from comparing it."""

    rows: list[Row]


def chosen_without_labels(fits: Sequence[Fit], n_clusters: int) -> Fit:
    """The fit to choose if the classes are unknown.

    Among fits with the same parameters, it is the one with the lowest objective of the method. Objectives under
    different parameters cannot be compared. Among those, it is the fit that agrees most with the others, by the mean
    NMI. Fits with empty clusters come after all others.
    """

    def leaves_empty(fit: Fit) -> bool:
        return len(np.unique(fit.labels)) < n_clusters

    groups: dict[str, list[Fit]] = {}
    for fit in fits:
        groups.setdefault(json.dumps(fit.params, sort_keys=True), []).append(fit)
    finalists = [
        min(group, key=lambda fit: (leaves_empty(fit), fit.result.objective or 0.0))
        for group in groups.values()
    ]

    def agreement(fit: Fit) -> float:
        others = [other for other in finalists if other is not fit]
        return statistics.mean(nmi(fit.labels, other.labels) for other in others) if others else 0.0

    return max(finalists, key=lambda fit: (not leaves_empty(fit), agreement(fit)))


def row(
    title: str,
    fits: Sequence[Fit],
    failures: Sequence[Failure],
    chosen: Fit | None,
    truth: NDArray[np.int64] | None,
) -> Row:
    """The row of a method.

    Parameters
    ----------
    title : str
    fits : sequence of Fit
        Those that succeeded.
    failures : sequence of Failure
    chosen : Fit or None
        What :func:`chosen_without_labels` returns; None if no fit succeeded.
    truth : ndarray of shape (n,) or None
        Codes of the known classes; items of code -1 do not count.
    """
    entry: Row = {
        "method": title,
        "fits": len(fits),
        "failures": list(failures),
        "warnings": sorted({message for fit in fits for message in fit.result.warnings}),
    }
    if chosen is None:
        return entry
    seconds = [fit.result.seconds for fit in fits]
    entry["seconds"] = round(statistics.median(seconds), 2)
    entry["total_seconds"] = round(sum(seconds), 1)
    entry["peak_mb"] = max(fit.result.peak_mb or 0.0 for fit in fits)
    entry["label_free"] = _scored(chosen, truth)
    if truth is not None:
        scores = [_scored(fit, truth) for fit in fits]
        entry["best"] = max(scores, key=lambda score: score["ACC"])
        entry["NMI_mean"], entry["NMI_sd"] = _mean_and_spread([score["NMI"] for score in scores])
        entry["ACC_mean"], entry["ACC_sd"] = _mean_and_spread([score["ACC"] for score in scores])
    return entry


def _scored(fit: Fit, truth: NDArray[np.int64] | None) -> Score:
    """A fit's agreement with the known classes, and what it took."""
    score: Score = {
        "params": fit.params,
        "seconds": fit.result.seconds,
        "clusters_used": len(np.unique(fit.labels)),
    }
    if truth is not None:
        known = truth >= 0
        score["NMI"] = round(nmi(truth[known], fit.labels[known]), 4)
        score["ACC"] = round(clustering_accuracy(truth[known], fit.labels[known]), 4)
    return score


def _mean_and_spread(values: list[float]) -> tuple[float, float]:
    """Mean and standard deviation, which is 0 for a single value."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return round(statistics.mean(values), 4), round(spread, 4)


def table_row(entry: Row) -> tuple[str, ...]:
    """A row for reading: the label-free choice, the best by the known classes, and the cost.

    Examples
    --------
    >>> table_row({"method": "SEC", "fits": 0, "failures": [{"params": {}, "error": "too long"}], "warnings": []})
    ('SEC', '-', '-', '-', '-', '0', '1', '-', '-')
    """
    free: Mapping[str, Any] = entry.get("label_free", {})
    best: Mapping[str, Any] = entry.get("best", {})
    return (
        entry["method"],
        *(f"{scores[m]:.3f}" if m in scores else "-" for scores in (free, best) for m in ("NMI", "ACC")),
        str(entry["fits"]),
        str(len(entry["failures"])),
        f"{entry['seconds']:.1f}" if "seconds" in entry else "-",
        f"{entry['peak_mb']:.0f}" if "peak_mb" in entry else "-",
    )


def write_tables(
    folder: Path,
    before: Mapping[str, Any],
    rows: Sequence[Row],
    chosen: Mapping[str, NDArray[np.int64]],
    item_names: Sequence[str] | None,
) -> None:
    """Write comparison.json, the table, and the labels that each method chose. Rows of other methods stay.

    ``before`` is what comparison.json holds.
    """
    place = folder / LABELS_FOLDER
    place.mkdir(exist_ok=True)
    fresh: dict[str, Row] = {entry["method"]: entry for entry in rows}
    for title, labels in chosen.items():
        fresh[title]["labels_sha256"] = write_labels(place / f"{title}.npy", labels)
    every: list[Row] = [*(entry for entry in before["rows"] if entry["method"] not in fresh), *rows]
    columns = {
        entry["method"]: _read_chosen(place / f"{entry['method']}.npy", entry)
        for entry in every
        if "label_free" in entry
    }
    write_sealed(folder / COMPARISON_FILE, {**before, "rows": every})
    write_file(folder / TABLE_FILE, csv_text(TABLE_COLUMNS, [table_row(entry) for entry in every]).encode())
    names = item_names if item_names is not None else range(max(map(len, columns.values()), default=0))
    write_file(
        folder / LABELS_FILE,
        csv_text(("item", *columns), zip(names, *columns.values(), strict=False)).encode(),
    )


def _read_chosen(file: Path, entry: Row) -> list[int]:
    labels = read_labels(file, entry.get("labels_sha256"))
    if labels is None:
        raise ComparisonError(
            f"{str(file)!r} is damaged or missing; compare again with {entry['method']} to make it anew."
        )
    return labels.tolist()
