"""The tree by which clusters were merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ddclust.show import style
from ddclust.show.layout import tree_layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def merge_tree(tree: Any, groups: ArrayLike | None = None) -> Figure:
    """The tree by which clusters were merged; parts of one merged cluster have one colour.

    Parameters
    ----------
    tree : ndarray of shape (k - 1, 4), or a DDC fitted with ``n_final``
        See :func:`ddclust.choosing.merging.merge_tree`.
    groups : array-like of int of shape (k,), optional
        The merged cluster of each of the k clusters. By default those of the model; for an array, each cluster is
        its own.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = merge_tree(np.array([[0.0, 2.0, 0.7, 2.0], [1.0, 3.0, 3.5, 3.0]]), [0, 1, 0])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['1', '0', '2']
    """
    from matplotlib.collections import LineCollection

    if hasattr(tree, "modules_"):
        if not hasattr(tree, "merge_tree_"):
            raise ValueError(
                "This model has no tree, because its clusters were not merged; fit it with n_final."
            )
        groups = tree.cluster_groups_[0] if groups is None else groups
        tree = tree.merge_tree_
    tree = np.asarray(tree, dtype=np.float64)
    if tree.ndim != 2 or tree.shape[1] != 4 or not len(tree):
        raise ValueError(
            f"A tree of k clusters must have the shape (k - 1, 4) and at least one row, got {tree.shape}."
        )
    k = len(tree) + 1
    own = np.arange(k) if groups is None else np.asarray(groups)
    if own.shape != (k,):
        raise ValueError(f"The tree is of {k} clusters, but groups has shape {own.shape}.")

    layout = tree_layout(tree, own)
    figure = style.new_figure(max(4.0, 0.42 * k + 1), 3.3)
    axis = figure.subplots()
    colours = [style.colour(group) if group >= 0 else style.GREY for group in layout.groups]
    axis.add_collection(LineCollection(list(layout.brackets), colors=colours))
    axis.set(xlim=(0, k), ylim=(0, 1.05 * tree[:, 2].max()), ylabel="Cauchy-Schwarz divergence")
    axis.set_xticks(np.arange(k) + 0.5, [str(leaf) for leaf in layout.leaves], fontsize=10, fontweight="bold")
    merged = own[layout.leaves]
    for text, group in zip(axis.get_xticklabels(), merged.tolist(), strict=True):
        text.set_color(style.colour(group))
    for group in np.unique(merged).tolist():
        axis.annotate(
            str(group),
            (float(np.flatnonzero(merged == group).mean()) + 0.5, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -20),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=10,
            color=style.colour(group),
        )
    axis.set_xlabel("cluster, and merged cluster below", labelpad=18)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.tick_params(axis="x", length=0)
    return figure
