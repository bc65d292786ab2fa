"""What the page says, as plain values: every function takes arrays and returns numbers, indices or words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import DDCLoss
from ddclust.show.layout import CORNERS, blocks_of, simplex_points, tree_layout

LARGE_SHARE = 0.6
LOW_AGREEMENT = 0.8
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_CLASSES = 30
# Moves the triangle of three clusters to the middle of the unit square.
TO_THE_MIDDLE = np.array([0.0, (1 - CORNERS[2, 1]) / 2])
SIMPLEX_CORNERS = CORNERS + TO_THE_MIDDLE


def sample_of_clusters(labels: NDArray, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of about ``size`` items chosen at random, with at least a few from every cluster; all of small data."""
    n = len(labels)
    if n <= size:
        return np.arange(n)
    chosen = [rng.choice(n, size, replace=False)]
    few = max(size // (20 * max(labels.max() + 1, 1)), 1)
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        chosen.append(rng.choice(members, min(few, len(members)), replace=False))
    return np.unique(np.concatenate(chosen))


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


def histogram_of_confidence(confidence: NDArray) -> list[float]:
    """Ten bars from 0 to 1; the highest has the height 1."""
    counts, _ = np.histogram(confidence, bins=10, range=(0, 1))
    return (counts / max(counts.max(), 1)).tolist()


def telling_words(X: Any, labels: NDArray, cluster: int, words: Sequence[str], count: int) -> list[str]:
    """The words whose mean weight in the cluster exceeds that elsewhere most."""
    own = labels == cluster
    if not own.any():
        return []
    inside = _means(X[own])
    outside = _means(X[~own]) if (~own).any() else np.zeros_like(inside)
    order = np.argsort(outside - inside, kind="stable")[:count]
    return [words[i] for i in order if inside[i] > outside[i]]


def telling_features(
    X: Any, labels: NDArray, cluster: int, names: Sequence[str], count: int
) -> list[dict[str, Any]]:
    """The features whose means differ most from the other clusters', in standard deviations, with box plots.

    A box plot consists of five quantiles. The lowest and the highest quantile of both boxes are 0 and 1.
    """
    own = labels == cluster
    if own.all() or not own.any():
        return []
    inside, outside, everywhere = (_means(part) for part in (X[own], X[~own], X))
    is_sparse: bool = scipy.sparse.issparse(X)
    variance = _means(X.multiply(X) if is_sparse else np.square(X, dtype=np.float64)) - everywhere**2
    spread = np.sqrt(np.maximum(variance, 0.0))
    gap = np.abs(inside - outside) / np.where(spread > 1e-9 * np.abs(everywhere), spread, np.inf)
    features = []
    for i in np.argsort(-gap, kind="stable")[:count]:
        if gap[i] > 0:
            column = (X[:, [i]].toarray() if is_sparse else X[:, [i]]).ravel().astype(np.float64)
            boxes = np.quantile(column[own], QUANTILES), np.quantile(column[~own], QUANTILES)
            low = min(box[0] for box in boxes)
            width = max(max(box[-1] for box in boxes) - low, 1e-12)
            own_box, others = (np.round((box - low) / width, 4).tolist() for box in boxes)
            features.append({"name": names[i], "own": own_box, "others": others})
    return features


def _means(X: Any) -> NDArray[np.float64]:
    """The mean of each column, sparse or not."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


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
    if agreement.mean() < LOW_AGREEMENT:
        found.append(
            f"On average, {100 * agreement.mean():.0f} % of the voting networks agree on an item: different runs find"
            " different clusters."
        )
    failed = sum(run["outcome"] == "failed" for run in runs)
    if failed:
        found.append(
            f"{failed} of {len(runs)} runs failed: {next(run['error'] for run in runs if run['error'])}"
        )
    if any(run["outcome"] in ("interrupted", "waiting") for run in runs):
        found.append("The fit was interrupted. These are the best results so far.")
    return found


def merge_tree(
    tree: NDArray[np.float64], groups: NDArray[np.int64], sizes: NDArray[np.int64]
) -> dict[str, Any]:
    """The tree by which clusters were merged, in the unit square: brackets and leaves, with their merged clusters.

    A bracket above merged clusters has none. ``highest`` is the divergence at the top.
    """
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
    return {"brackets": brackets, "leaves": leaves, "highest": highest}
