"""Which clusters to merge so that few pairs of items are parted, without a pull to equal sizes.

``P`` (k, k) counts pairs by the clusters of their two items: an item and what it is paired with in training. The pairs that
a merged cluster of volume v parts from the rest cost their share times v^-1.5. A normalised cut has v^-1: where classes
overlap, it prefers a sliver to a class. Where they do not, no pair is parted and any sizes are right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ddclust.choosing.merging import cluster_similarities
from ddclust.data.batches import random_items
from ddclust.objective.objective import Objective
from ddclust.training.inference import evaluation_mode
from ddclust.training.randomness import own_randomness

# Chosen on the classes of digits, of iris and of the RCV1 subset.
POWER = -1.5
LINKS = (0.5, 0.75, 1.0)
PAIRS_SEEN = 10_000  # at least, if necessary by several pairs of an item
PAIRED_ITEMS = 20_000  # at most
BATCH = 256


def pair_counts(module: nn.Module, objective: Objective, n_clusters: int) -> NDArray[np.float64]:
    """P, symmetric, by the network's clusters of at most 20,000 items and of what they are paired with."""
    source = objective.source
    items = random_items(len(source), PAIRED_ITEMS, seed=0)
    P = np.zeros((n_clusters, n_clusters))
    with evaluation_mode(module) as device, own_randomness(0):
        for _ in range(math.ceil(PAIRS_SEEN / len(items))):
            for indices in np.array_split(items, math.ceil(len(items) / BATCH)):
                x = source.batch(indices).to(device)
                other = objective.paired(x, indices)
                if other is None:
                    raise ValueError("There are no pairs to merge clusters by.")
                first, second = (module(batch)[1].argmax(dim=1).cpu().numpy() for batch in (x, other))
                np.add.at(P, (first, second), 1)
    return (P + P.T) / 2


def merged_by_pairs(P: NDArray[np.float64], S: NDArray[np.float64], n_final: int) -> NDArray[np.int64]:
    """The merged cluster, from 0 to n_final - 1, of each of the k clusters.

    Clusters without pairs join the most similar one by the overlaps ``S``, or stay alone if there are too few others.

    Examples
    --------
    >>> P = np.array([[40.0, 9, 0, 0], [9, 40, 0, 0], [0, 0, 8, 0], [0, 0, 0, 0]])
    >>> S = np.array([[9.0, 1, 0, 0], [1, 9, 0, 0], [0, 0, 9, 1], [0, 0, 1, 1]])
    >>> merged_by_pairs(P, S, 2)
    array([0, 0, 1, 1])
    """
    used = np.flatnonzero(P.sum(axis=0) > 0)
    unused = np.flatnonzero(P.sum(axis=0) == 0)
    groups = np.empty(len(P), dtype=np.int64)
    n_grouped = min(n_final, len(used))
    groups[used] = _least_parted(P[np.ix_(used, used)] / P.sum(), n_grouped)
    alone, others = np.split(unused, [n_final - n_grouped])
    groups[alone] = np.arange(n_grouped, n_final)
    nearest = cluster_similarities(S)[np.ix_(others, used)].argmax(axis=1)
    groups[others] = groups[used[nearest]]
    return groups


def _least_parted(P: NDArray[np.float64], n_groups: int) -> NDArray[np.int64]:
    """The best grouping that moves of single clusters reach from several starts."""
    found = [_improved(P, _linked(P, n_groups, power), n_groups) for power in LINKS]
    return min(found, key=lambda groups: _parted(P, groups, n_groups))


def _parted(P: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int) -> float:
    """The cost of a grouping, infinite if a group is empty."""
    member = np.eye(n_groups)[groups]  # (k, n_groups)
    inside = member.T @ P @ member
    volume = inside.sum(axis=1)
    if (volume <= 0).any():
        return math.inf
    return float(parted_cost(volume, inside.diagonal()).sum())


def _linked(P: NDArray[np.float64], n_groups: int, power: float) -> NDArray[np.int64]:
    """Merge the two clusters with the largest P_ij / (v_i v_j)^power, again and again."""
    P = P.copy()
    groups = np.arange(len(P))
    while len(P) > n_groups:
        volume = P.sum(axis=1)
        link = np.triu(P / np.outer(volume, volume) ** power + 1e-12, 1)
        i, j = map(int, np.unravel_index(link.argmax(), link.shape))  # i < j
        P[i] += P[j]
        P[:, i] += P[:, j]
        P = np.delete(np.delete(P, j, axis=0), j, axis=1)
        groups[groups == j] = i
        groups[groups > j] -= 1
    return groups


def _improved(P: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
    """Move single clusters to other groups as long as the cost falls."""
    groups, falls = groups.copy(), True
    links = P @ np.eye(n_groups)[groups]  # (k, n_groups), of each cluster to each group
    volume = P.sum(axis=1)
    members, volumes = np.bincount(groups, minlength=n_groups), np.bincount(groups, volume, n_groups)
    inside = np.bincount(groups, links[np.arange(len(P)), groups], n_groups)
    while falls:
        falls = False
        for cluster, own in enumerate(volume):
            for group in range(n_groups):
                before = groups[cluster]
                if group == before or members[before] == 1:
                    continue
                # Only the costs of the two groups change; the rest would be the same sum on both sides.
                within = P[cluster, cluster]
                left = inside[before] - 2 * links[cluster, before] + within
                joined = inside[group] + 2 * links[cluster, group] + within
                now = parted_cost(volumes[before], inside[before]) + parted_cost(
                    volumes[group], inside[group]
                )
                then = parted_cost(volumes[before] - own, left) + parted_cost(volumes[group] + own, joined)
                if then < now - 1e-12:
                    groups[cluster], falls = group, True
                    inside[before], inside[group] = left, joined
                    volumes[[before, group]] += (-own, own)
                    members[[before, group]] += (-1, 1)
                    links[:, before] -= P[:, cluster]
                    links[:, group] += P[:, cluster]
    return groups


def parted_cost(volume: Any, inside: Any) -> Any:
    """What the pairs cost that a group parts from the rest; numbers or arrays."""
    return (volume - inside) * volume**POWER
