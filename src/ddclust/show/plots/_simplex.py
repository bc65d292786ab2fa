"""Soft assignments to three clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ddclust.show import style
from ddclust.show.layout import CORNERS, simplex_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND_COLUMNS = 6


def simplex(
    probabilities: Any, labels: ArrayLike | None = None, titles: Sequence[str] | None = None
) -> Figure:
    """Soft assignments to three clusters, as points of a triangle whose corners are the clusters.

    Parameters
    ----------
    probabilities : array-like of shape (m, 3) or (s, m, 3), snapshots, or fitted DDC
        There is one panel for each of s moments of training. A model is drawn by its ``snapshots_``, or by its
        ``probabilities_`` if it has none.
    labels : array-like of shape (m,), optional
        Classes or clusters that colour the points; by default the largest assignments in the last panel. For
        snapshots they may be the labels of all training items.
    titles : sequence of str, optional
        One per panel; by default the epochs of snapshots.

    Returns
    -------
    Figure

    Examples
    --------
    >>> A = np.random.default_rng(0).dirichlet([1, 1, 1], size=(2, 30))
    >>> len(simplex(A, titles=["Before", "After"]).axes)
    2
    """
    A, items, names = _panels(probabilities)
    names = names if titles is None else list(titles)
    if len(names) != len(A):
        raise ValueError(f"There are {len(A)} panels, but {len(names)} titles.")
    found = A[-1].argmax(axis=1) if labels is None else _labels_of(np.asarray(labels), items, A.shape[1])

    figure = style.new_figure(3.1 * len(A), 3.3)
    for axis, moment, title in zip(figure.subplots(1, len(A), squeeze=False)[0], A, names, strict=True):
        _draw_triangle(axis)
        style.scatter(axis, simplex_points(moment), found, size=14, alpha=0.6)
        axis.set_title(title, fontsize=11)
    if labels is not None and len(np.unique(found)) > 1:
        _add_legend(figure)
    return figure


class _Panels(NamedTuple):
    probabilities: NDArray  # (s, m, 3)
    items: NDArray[np.intp] | None  # (m,): which of the training items, if known
    titles: list[str]  # (s,)


def _panels(given: Any) -> _Panels:
    """Soft assignments of a model, of snapshots or as they are, checked."""
    if hasattr(given, "modules_"):
        given = getattr(given, "snapshots_", given.probabilities_)
    is_snapshots = hasattr(given, "probabilities")
    A = np.asarray(given.probabilities if is_snapshots else given)
    A = A[None] if A.ndim == 2 else A
    if A.ndim != 3 or A.shape[2] != 3 or 0 in A.shape:
        raise ValueError(
            f"simplex draws assignments to three clusters, of shape (m, 3) or (s, m, 3); got {A.shape}."
        )
    if is_snapshots:
        return _Panels(A, given.items, [f"Epoch {epoch}" for epoch in given.epochs])
    return _Panels(A, None, [""] * len(A))


def _labels_of(labels: NDArray, items: NDArray[np.intp] | None, n: int) -> NDArray:
    """The labels of the n points, picked from those of all training items if need be."""
    if items is not None and len(labels) != len(items):
        if len(labels) <= items.max():
            raise ValueError(
                f"There are {len(labels)} labels, neither one for each of the {len(items)} items of the snapshots"
                " nor one for each training item."
            )
        labels = labels[items]
    if labels.shape != (n,):
        raise ValueError(f"There are {n} items, but labels of shape {labels.shape}.")
    return labels


def _draw_triangle(axis: Axes) -> None:
    axis.plot(*CORNERS[[0, 1, 2, 0]].T, color=style.GREY, linewidth=1, zorder=1)
    for corner, (x, y) in enumerate(CORNERS):
        above = corner == 2
        axis.annotate(
            f"cluster {corner}",
            (x, y),
            xytext=(0, 7 if above else -7),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=9,
        )
    axis.set(aspect="equal", xlim=(-0.16, 1.16), ylim=(-0.13, 1.02))
    axis.axis("off")


def _add_legend(figure: Figure) -> None:
    """One legend for all panels, in full colour."""
    handles, texts = figure.axes[0].get_legend_handles_labels()
    legend = figure.legend(
        handles,
        texts,
        loc="outside lower center",
        ncols=min(len(texts), LEGEND_COLUMNS),
        frameon=False,
        fontsize=9,
        title="label",
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
