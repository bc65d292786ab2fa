"""The search: place all points, dissolve the worst cluster, place its points again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ddclust.baselines.itc.densities import Clusters
from ddclust.baselines.itc.divergence import (
    cauchy_schwarz_divergence,
    log_cuts_if_joined,
    log_cuts_without_each,
)
from ddclust.baselines.itc.log_sums import Floats, Ints
from ddclust.progress import Bar


class Level(NamedTuple):
    """A level of the hierarchy."""

    labels: Ints
    divergence: float
    dissolved: int | None  # the cluster that makes way for the next level


def place_all(clusters: Clusters, distances: Floats) -> Iterator[int]:
    """Place every free point, always the one nearest to any labelled point next; yields each point."""
    labelled = clusters.labels >= 0
    reach = distances[labelled].min(axis=0)
    taken = np.where(labelled, np.inf, 0.0)
    for _ in range(len(labelled) - labelled.sum()):
        point = int(np.maximum(reach, taken).argmin())
        joined = clusters.joined(clusters.row(point))
        cuts = log_cuts_if_joined(clusters.log_overlaps, joined.log_overlaps)
        clusters.add(point, int(cuts.argmin()), joined)
        np.minimum(reach, distances[point], out=reach)
        taken[point] = np.inf
        yield point


def clusters_to_join(clusters: Clusters, rows: Floats) -> Ints:
    """The cluster that each of some further points should join, each taken on its own.

    Parameters
    ----------
    clusters : Clusters
    rows : ndarray of shape (n_points, n)
        Rows of the points, as :meth:`Clusters.row` returns them.
    """
    blocks = np.array_split(rows, math.ceil(len(rows) / 32))  # small enough for the processor's cache
    log_overlaps = clusters.log_overlaps
    cuts = [log_cuts_if_joined(log_overlaps, clusters.joined(block).log_overlaps) for block in blocks]
    return np.concatenate(cuts).argmin(axis=1)


def reduce_clusters(clusters: Clusters, distances: Floats, n_clusters: int, bar: Bar) -> list[Level]:
    """Place all points, then dissolve the worst cluster and place its points again, until n_clusters are left."""
    levels: list[Level] = []
    while True:
        for _ in place_all(clusters, distances):
            bar.update()
        log_overlaps = clusters.log_overlaps_to_judge()
        divergence = cauchy_schwarz_divergence(log_overlaps)
        if clusters.n_clusters <= n_clusters:
            return [*levels, Level(clusters.labels, divergence, None)]
        worst = int(log_cuts_without_each(log_overlaps).argmin())
        levels.append(Level(clusters.labels.copy(), divergence, worst))
        clusters.dissolve(worst)
