"""What the page says, as plain values: every function takes arrays and returns numbers, indices or words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from ddclust.choosing.calibration import COPIES, HALVES, NOTHING, RUNS
from ddclust.choosing.certainty import risk_coverage
from ddclust.choosing.k_means import AS_WELL, beside_k_means
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.data.tables import Columns, Table
from ddclust.data.tables.kinds import DateColumn, NumberColumn, Trait
from ddclust.naming import feature_gaps
from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import DDCLoss
from ddclust.show.layout import CORNERS, blocks_of, pruned_tree, simplex_points, tree_layout

LARGE_SHARE = 0.6
LOW_AGREEMENT = 0.8
CLEARLY = 0.02  # a difference of accuracies that is called one
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_CLASSES = 30
N_TICKS = 5
LINE_POINTS = 100
LEVELS = 4  # of a category, or words of a text, that are shown
# Moves the triangle of three clusters to the middle of the unit square.
TO_THE_MIDDLE = np.array([0.0, (1 - CORNERS[2, 1]) / 2])
SIMPLEX_CORNERS = CORNERS + TO_THE_MIDDLE


def in_the_simplex(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    """Places in the unit square of soft assignments to three clusters, inside ``SIMPLEX_CORNERS``."""
    return simplex_points(probabilities) + TO_THE_MIDDLE


def neighbourhoods(hidden: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """Places in the unit square by t-SNE of the hidden representation."""
    n = len(hidden)
    if n < 5:
        return np.column_stack([np.linspace(0, 1, n), np.full(n, 0.5)])
    varied = hidden[:, hidden.max(axis=0) > hidden.min(axis=0)].astype(np.float64)
    if not varied.size:  # t-SNE fails if all items are equal
        varied = np.arange(n, dtype=np.float64)[:, None]
    varied = (varied - varied.mean(axis=0)) / varied.std()
    init = "pca" if varied.shape[1] > 1 else "random"
    places = TSNE(perplexity=min(30, (n - 1) / 3), init=init, random_state=seed).fit_transform(varied)
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / np.maximum(high - low, 1e-9)


def most_certain(confidence: NDArray, members: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The members with the highest confidence, highest first."""
    return members[np.argsort(-confidence[members], kind="stable")[:count]]


def least_certain(confidence: NDArray, members: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The members with the lowest confidence, lowest first."""
    return members[np.argsort(confidence[members], kind="stable")[:count]]


def nearest_cluster(probabilities: NDArray, members: NDArray[np.intp], cluster: int) -> int | None:
    """The other cluster with the largest mean assignment of the members."""
    if probabilities.shape[1] < 2 or not len(members):
        return None
    others = probabilities[members].mean(axis=0)
    others[cluster] = -1
    return int(others.argmax())


def doubtful_below(n_clusters: int) -> float:
    """The confidence half-way between a uniform assignment and certainty.

    Examples
    --------
    >>> doubtful_below(2), doubtful_below(10)
    (0.75, 0.55)
    """
    return (1 + 1 / n_clusters) / 2


def how_calibrated(basis: str) -> str:
    """What the confidence of a model was calibrated by, as a sentence.

    Examples
    --------
    >>> how_calibrated("nothing")
    'It is as the network gives it, mostly too high: nothing was there to calibrate it by.'
    """
    return {
        RUNS: "It is calibrated: about how often another run gives the item the same cluster.",
        HALVES: "It is calibrated: about how often another half of the items would give the item the same cluster.",
        COPIES: "It is calibrated by changed copies of the items, or by their neighbours, since there is only one run; more"
        " runs (n_init) would tell more.",
        NOTHING: "It is as the network gives it, mostly too high: nothing was there to calibrate it by.",
    }[basis]


def risk_lines(
    confidence: NDArray, right: NDArray[np.bool_] | None, known: NDArray[np.bool_] | None
) -> dict[str, Any]:
    """Errors among the most certain items, against the share of items kept, as lines of places in the unit square.

    ``right`` is of the items whose class is ``known``; without it there is only the line that the confidence expects.
    """
    curves = {"expected": risk_coverage(confidence)}
    if right is not None and known is not None:
        curves["real"] = risk_coverage(confidence[known], right)
    highest = max(0.01, *(float(curve.risk.max()) for curve in curves.values()))
    lines = {}
    for name, (coverage, risk) in curves.items():
        shown = np.unique(np.linspace(0, len(coverage) - 1, LINE_POINTS).round().astype(np.intp))
        lines[name] = np.column_stack([coverage[shown], risk[shown] / highest]).round(4).tolist()
    return {"highest": highest, "lines": lines}


def histogram_of_confidence(confidence: NDArray) -> list[float]:
    """Ten bars from 0 to 1; the highest has the height 1."""
    counts, _ = np.histogram(confidence, bins=10, range=(0, 1))
    return (counts / max(counts.max(), 1)).tolist()


def box_plots(
    X: Any, labels: NDArray, cluster: int, names: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """The features whose means differ most from the other clusters', with box plots in their own units.

    A box plot consists of five quantiles, as places between 0 and 1 on an axis with ticks.
    """
    own, gaps = labels == cluster, feature_gaps(X, labels, cluster)
    is_sparse: bool = scipy.sparse.issparse(X)
    plots = []
    for i in np.argsort(-np.abs(gaps), kind="stable")[:count]:
        if gaps[i] != 0:
            column = (X[:, [i]].toarray() if is_sparse else X[:, [i]]).ravel().astype(np.float64)
            plots.append(box_plot(names[i], column[own], column[~own]))
    return plots


def box_plot(
    name: str, own: NDArray[np.float64], others: NDArray[np.float64], *, axis: type[Axis] | None = None
) -> dict[str, Any]:
    """The box plots of a feature in a cluster and elsewhere, on an axis of numbers, logarithms or days."""
    kind = axis or Axis
    boxes = np.quantile(own, QUANTILES), np.quantile(others, QUANTILES)
    on = kind(min(box[0] for box in boxes), max(box[-1] for box in boxes))
    return {
        "name": name,
        "own": on.places(boxes[0]),
        "others": on.places(boxes[1]),
        "ticks": on.ticks(),
        "medians": [kind.label(box[2]) for box in boxes],
        "levels": None,
        "empty": None,
    }


def column_plots(
    table: Table, columns: Columns, told: Iterable[str], own: NDArray[np.bool_], count: int
) -> list[dict[str, Any]]:
    """Of the columns that set a cluster apart: box plots of numbers and dates, shares of levels and words.

    ``own`` says which rows of the table are in the cluster.
    """
    described = {column.name: column for column in columns.used}
    plots = []
    for name in list(told)[:count]:
        column, values = described[name], table.columns[name]
        if isinstance(column, (NumberColumn, DateColumn)):
            numbers, axis = _on_axis(column, values)
            known = ~np.isnan(numbers)
            if (known & own).any() and (known & ~own).any():
                heading = column.heading if isinstance(column, NumberColumn) else name
                plot = box_plot(heading, numbers[known & own], numbers[known & ~own], axis=axis)
                empty = [float((~known)[side].mean()) for side in (own, ~own)] if column.gaps else None
                plots.append(plot | {"empty": empty})
        else:
            plots.append({"name": name, "levels": _level_shares(column.traits(values), own)})
    return plots


def _on_axis(column: NumberColumn | DateColumn, values: NDArray) -> tuple[NDArray[np.float64], type[Axis]]:
    """A column as numbers, NaN for gaps, and their axis; positive numbers with heavy tails as logarithms."""
    if isinstance(column, DateColumn):
        return column.days(values), DateAxis
    numbers = column.numbers(values)
    if column.quantiles and np.nanmin(numbers, initial=np.inf) > 0:
        return np.log10(numbers), LogAxis
    return numbers, Axis


def _level_shares(traits: Sequence[Trait], own: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Shares in a cluster and elsewhere of the levels or words of a column that differ most, the larger first."""
    shares = [(trait, float(trait.values[own].mean()), float(trait.values[~own].mean())) for trait in traits]
    telling = sorted(shares, key=lambda found: -abs(found[1] - found[2]))[:LEVELS]
    return [
        {
            "name": trait.high.removeprefix(trait.column).lstrip(" =:"),
            "own": own_share,
            "others": other,
        }
        for trait, own_share, other in sorted(telling, key=lambda found: -found[1])
    ]


@dataclass(frozen=True)
class Axis:
    """An axis from 0 to 1 for values from ``low`` to ``high``."""

    low: float
    high: float

    @staticmethod
    def label(value: float) -> str:
        """What a value is called."""
        return format_number(value)

    def places(self, values: Iterable[float]) -> list[float]:
        """Where values lie on the axis.

        Examples
        --------
        >>> Axis(2.0, 4.0).places([2.0, 2.5])
        [0.0, 0.25]
        """
        width = max(self.high - self.low, 1e-12)
        return [round((value - self.low) / width, 4) for value in values]

    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of a few round values.

        Examples
        --------
        >>> Axis(4.3, 7.9).ticks()
        [(0.1944, '5'), (0.4722, '6'), (0.75, '7')]
        """
        values = self._round_values()
        return list(zip(self.places(values), map(self.label, values), strict=True))

    def _round_values(self) -> list[float]:
        from matplotlib.ticker import MaxNLocator

        found = MaxNLocator(N_TICKS, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        return [float(value) for value in found if self.low <= value <= self.high] or [self.low]


class LogAxis(Axis):
    """An axis of logarithms to the base of 10, labelled by the values themselves.

    Examples
    --------
    >>> LogAxis(0.0, 3.0).ticks()
    [(0.0, '1'), (0.3333, '10'), (0.6667, '100'), (1.0, '1,000')]
    """

    @staticmethod
    def label(value: float) -> str:
        return format_number(float(f"{10**value:.3g}"))

    def _round_values(self) -> list[float]:
        step = max(round((self.high - self.low) / N_TICKS), 1)
        powers = np.arange(np.ceil(self.low), np.floor(self.high) + 1, step).tolist()
        return powers if len(powers) > 1 else [self.low, self.high]


class DateAxis(Axis):
    """An axis in days since 1970, labelled by dates.

    Examples
    --------
    >>> DateAxis(0.0, 20.0).ticks()
    [(0.0, '1970-01-01'), (0.5, '1970-01-11'), (1.0, '1970-01-21')]
    """

    @staticmethod
    def label(value: float) -> str:
        return str(np.datetime64(int(np.floor(value)), "D"))

    def _round_values(self) -> list[float]:
        return [self.low, (self.low + self.high) / 2, self.high]


def format_number(value: float) -> str:
    """A number with at most six digits that say something.

    Examples
    --------
    >>> format_number(0.30000000000000004), format_number(1234567.0), format_number(12000.0)
    ('0.3', '1,234,570', '12,000')
    """
    return f"{float(f'{value:.6g}'):,.12g}"


def kernel_matrix(
    hidden: NDArray[np.float32], labels: NDArray, loss: DDCLoss
) -> tuple[NDArray[np.uint8], list[float]]:
    """The loss's kernel, sorted by cluster, as grey levels, and the borders between clusters in [0, 1]."""
    blocks = blocks_of(labels)
    H = torch.from_numpy(hidden[blocks.order])
    K = gaussian_kernel(H, bandwidth=loss.bandwidth, bandwidth_rule=loss.bandwidth_rule).numpy()
    borders = (blocks.ends[:-1] / len(labels)).round(4).tolist()
    return np.rint(255 * np.clip(K, 0, 1)).astype(np.uint8), borders


def against_truth(
    labels: NDArray, codes: NDArray[np.int64], classes: Sequence[str], n_clusters: int
) -> dict[str, Any]:
    """Accuracy, NMI and the table of clusters and classes. The class of items with the code -1 is unknown."""
    known = codes >= 0
    labels, codes = labels[known], codes[known]
    counts = np.zeros((n_clusters, len(classes)), dtype=np.int64)
    np.add.at(counts, (labels, codes), 1)
    shown = np.argsort(-counts.sum(axis=0), kind="stable")[:MAX_CLASSES]
    # Classes in the order of the clusters that hold most of them, so that the table has a diagonal.
    shown = shown[np.argsort(counts[:, shown].argmax(axis=0), kind="stable")]
    largest = max(int(counts.max()), 1)
    table = [
        {
            "cluster": cluster,
            "cells": [
                {"count": int(counts[cluster, c]), "share": counts[cluster, c] / largest} for c in shown
            ],
        }
        for cluster in range(n_clusters)
    ]
    return {
        "accuracy": clustering_accuracy(codes, labels),
        "nmi": nmi(codes, labels),
        "classes": [classes[c] for c in shown],
        "table": table,
        "left_out": len(classes) - len(shown),
        "unknown": int((~known).sum()),
        "counts": counts,
    }


def warnings_of(
    runs: list[dict[str, Any]], labels: NDArray, confidence: NDArray, agreement: NDArray, n_clusters: int
) -> list[str]:
    """What a careful reader should know before trusting the rest."""
    found = []
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = int((sizes == 0).sum())
    if empty:
        found.append(f"{empty} of {n_clusters} clusters are empty. More runs or fewer clusters may help.")
    if n_clusters > 1 and sizes.max() > LARGE_SHARE * len(labels):
        found.append(f"One cluster holds {100 * sizes.max() / len(labels):.0f} % of all items.")
    if confidence.mean() < doubtful_below(n_clusters):
        found.append(f"The mean confidence is only {confidence.mean():.2f}: the clusters are not settled.")
    if agreement.mean() < LOW_AGREEMENT:  # it is NaN, and so never low, if there was only one run
        found.append(
            f"The mean agreement is only {agreement.mean():.2f}: other runs, or other halves of the items, give other clusters."
        )
    failed = sum(run["outcome"] == "failed" for run in runs)
    if failed:
        found.append(
            f"{failed} of {len(runs)} runs failed: {next(run['error'] for run in runs if run['error'])}"
        )
    if any(run["outcome"] in ("interrupted", "waiting") for run in runs):
        found.append("The fit was interrupted. These are the best results so far.")
    return found


def k_means_as_well(vectors: Any, labels: NDArray, codes: NDArray[np.int64] | None) -> str | None:
    """What to say if k-means does as well: by the known classes or, if there are none, because it finds the same.

    Without classes it is also said if the clusters of k-means have quite different sizes.

    The vectors are those that the networks get.
    """
    k = len(np.unique(labels))
    if k < 2 or len(labels) <= k:
        return None
    compared = beside_k_means(labels, vectors)
    if codes is None or not (codes >= 0).any():
        return str(compared) if compared.are_the_same or compared.are_far_apart else None
    own, other = (clustering_accuracy(codes[codes >= 0], found[codes >= 0]) for found in compared)
    if other < own:
        return None
    words = AS_WELL if other - own < CLEARLY else "k-means fits the known classes better"
    return f"{words}: its accuracy is {other:.3f}, that of these clusters {own:.3f}."


def merge_tree(
    tree: NDArray[np.float64], groups: NDArray[np.int64], sizes: NDArray[np.int64]
) -> dict[str, Any] | None:
    """The tree by which clusters were merged, in the unit square: brackets and leaves, with their merged clusters.

    Clusters without items are left out; ``empty`` is how many there are. A bracket above merged clusters has none.
    ``highest`` is the divergence at the top.
    """
    tree, used = pruned_tree(tree, sizes > 0)
    groups, sizes, empty = groups[used], sizes[used], int((sizes == 0).sum())
    if not len(tree):
        return None
    layout = tree_layout(tree, groups)
    highest = max(float(tree[:, 2].max()), 1e-12)
    brackets = [
        {"points": points, "cluster": group if group >= 0 else None}
        for points, group in zip(
            (layout.brackets / [len(groups), highest]).tolist(), layout.groups, strict=True
        )
    ]
    leaves = [
        {"x": (rank + 0.5) / len(groups), "size": int(sizes[leaf]), "cluster": int(groups[leaf])}
        for rank, leaf in enumerate(layout.leaves)
    ]
    return {"brackets": brackets, "leaves": leaves, "highest": highest, "empty": empty}
