"""Which outputs of a network become one cluster in the course of training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ddclust.choosing.grouping import merged_by_pairs, pair_counts
from ddclust.choosing.merging import network_overlaps
from ddclust.choosing.selection import labels_of
from ddclust.choosing.words import divided_by_words
from ddclust.objective.loss import DDCLoss
from ddclust.objective.objective import Objective


def groups_by_pairs(
    module: nn.Module, objective: Objective, n_outputs: int, n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The cluster of each output, such that few pairs are parted, and the shares of the clusters."""
    P = pair_counts(module, objective, n_outputs)
    S, _ = network_overlaps(module, objective.source, DDCLoss())
    groups = merged_by_pairs(P, S, n_groups)
    return groups, np.bincount(groups, weights=P.sum(axis=0), minlength=n_groups) / P.sum()


def sizes_by_words(
    module: nn.Module, objective: Objective, n_outputs: int, n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32] | None]:
    """Every output its own cluster, the shares of the clusters by words, and the assignments by words, if these keep all clusters."""
    labels = labels_of(module, objective.source)
    anchors = divided_by_words(objective.source.vectors(), labels, n_outputs)
    labels = labels if anchors is None else anchors.argmax(axis=1)
    return np.arange(n_outputs), np.bincount(labels, minlength=n_outputs) / len(labels), anchors
