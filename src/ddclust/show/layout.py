"""Where the points, blocks and brackets of a drawing go: geometry that the figures and the report share."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram

from ddclust.choosing.merging import node_groups

# The triangle with sides of length 1 in which assignments to three clusters are drawn.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def simplex_points(probabilities: NDArray) -> NDArray[np.float64]:
    """Points of soft assignments to three clusters in the triangle of ``CORNERS``.

    Examples
    --------
    >>> simplex_points(np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]))
    array([[1. , 0. ],
           [0.5, 0. ]])
    """
    return probabilities.astype(np.float64) @ CORNERS


class Blocks(NamedTuple):
    """Items sorted by their labels: the blocks of a kernel matrix."""

    order: NDArray[np.intp]  # (n,): the items, sorted
    names: NDArray  # (b,): the label of each block
    sizes: NDArray[np.intp]  # (b,)
    ends: NDArray[np.intp]  # (b,): one past the last item of each block


def blocks_of(labels: NDArray) -> Blocks:
    """The blocks that items form when they are sorted by label.

    Examples
    --------
    >>> blocks = blocks_of(np.array([1, 0, 1]))
    >>> blocks.order.tolist(), blocks.ends.tolist()
    ([1, 0, 2], [1, 3])
    """
    names, sizes = np.unique(labels, return_counts=True)
    return Blocks(np.argsort(labels, kind="stable"), names, sizes, np.cumsum(sizes))


def pruned_tree(
    tree: NDArray[np.float64], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """A tree of merges without some of its leaves, and the leaves that stay, which are numbered anew.

    Examples
    --------
    >>> tree = np.array([[0.0, 2.0, 0.7, 2.0], [1.0, 3.0, 3.5, 3.0]])
    >>> pruned, leaves = pruned_tree(tree, np.array([True, True, False]))
    >>> pruned.tolist(), leaves.tolist()
    ([[1.0, 0.0, 3.5, 2.0]], [0, 1])
    """
    leaves = np.flatnonzero(kept)
    node: list[int | None] = [
        int(number) if keep else None for number, keep in zip(np.cumsum(kept) - 1, kept, strict=True)
    ]
    counts = [1] * len(leaves)
    merges = []
    for first, second, height, _ in tree.tolist():
        a, b = node[int(first)], node[int(second)]
        if a is None or b is None:
            node.append(b if a is None else a)
        else:
            node.append(len(counts))
            counts.append(counts[a] + counts[b])
            merges.append([a, b, height, counts[-1]])
    return np.array(merges, dtype=np.float64).reshape(-1, 4), leaves


class TreeLayout(NamedTuple):
    """A tree of merges: leaf i from the left stands at x = i + 0.5, and heights are divergences."""

    leaves: list[int]  # (k,): the clusters from left to right
    brackets: NDArray[np.float64]  # (k - 1, 4, 2): the corners of each bracket
    groups: list[int]  # (k - 1,): the merged cluster that a bracket is inside, -1 above merged clusters


def tree_layout(tree: NDArray[np.float64], groups: NDArray[np.int64]) -> TreeLayout:
    """Leaves and brackets of the tree by which clusters were merged.

    Parameters
    ----------
    tree : ndarray of shape (k - 1, 4)
        See :func:`ddclust.choosing.merging.merge_tree`.
    groups : ndarray of shape (k,)
        The merged cluster of each cluster.

    Examples
    --------
    >>> tree = np.array([[0.0, 2.0, 0.7, 2.0], [1.0, 3.0, 3.5, 3.0]])
    >>> layout = tree_layout(tree, np.array([0, 1, 0]))
    >>> layout.leaves, layout.groups
    ([1, 0, 2], [0, -1])
    """
    of_nodes = node_groups(tree, groups)
    drawn = dendrogram(tree, no_plot=True, link_color_func=lambda node: str(of_nodes[node]))
    corners = np.stack([np.array(drawn["icoord"]) / 10, np.array(drawn["dcoord"])], axis=2)
    return TreeLayout(list(drawn["leaves"] or []), corners, [int(group) for group in drawn["color_list"]])
