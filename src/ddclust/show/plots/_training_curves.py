"""The loss and its terms over training."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ddclust.choosing.metrics import clustering_accuracy
from ddclust.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ddclust.snapshots import SnapshotSeries

TERM_NAMES = {
    "loss": "loss",
    "divergence": "$l_1$, divergence",
    "orthogonality": "$l_2$, orthogonality",
    "corners": "$l_3$, corners",
}


def training_curves(
    history: Any,
    accuracy: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    names: Mapping[str, str] | None = None,
) -> Figure:
    """The loss and its terms over training, each rescaled to [0, 1], and the accuracy as it is.

    Parameters
    ----------
    history : list of dict, or a fitted model
        Records with ``epoch`` and the values to draw, such as ``history_``.
    accuracy : (epochs, values), optional
        For example from :func:`snapshot_accuracy`.
    names : mapping of str to str, optional
        Names of values in the legend.

    Returns
    -------
    Figure

    Examples
    --------
    >>> history = [{"epoch": e, "loss": 3 / e, "divergence": 2 / e, "corners": 1 / e} for e in range(1, 5)]
    >>> figure = training_curves(history, ([1, 4], [0.3, 0.9]))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['accuracy', 'loss', '$l_1$, divergence', '$l_3$, corners']
    """
    from matplotlib.ticker import MaxNLocator

    records = list(getattr(history, "history_", history))
    if not records:
        raise ValueError("The history is empty; there is nothing to draw.")
    known = TERM_NAMES | dict(names or {})
    epochs = [record["epoch"] for record in records]
    figure = style.new_figure(5.6, 3.4)
    axis = figure.subplots()
    if accuracy is not None:
        axis.plot(
            *accuracy,
            color=style.COLOURS[0],
            linewidth=2,
            marker="o",
            markersize=5,
            markerfacecolor="white",
            label="accuracy",
        )
    colours, line_styles = itertools.cycle(style.COLOURS[1:6]), itertools.cycle(style.LINE_STYLES)
    for name in _drawn_terms(records):
        is_loss = name == "loss"
        axis.plot(
            epochs,
            _rescaled(np.array([record[name] for record in records], dtype=np.float64)),
            color="black" if is_loss else next(colours),
            linestyle="-" if is_loss else next(line_styles),
            linewidth=2 if is_loss else 1.6,
            marker="o" if len(records) == 1 else None,
            label=known.get(name, name.replace("_", " ")),
        )
    scale = "loss, rescaled to [0, 1]" if accuracy is None else "accuracy; losses rescaled to [0, 1]"
    axis.set(xlabel="epoch", ylabel=scale, ylim=(-0.03, 1.03))
    axis.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    return figure


def snapshot_accuracy(
    snapshots: SnapshotSeries, truth: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The epochs of snapshots, and the clustering accuracy at each.

    Parameters
    ----------
    snapshots : SnapshotSeries
        Such as ``model.snapshots_``.
    truth : array-like of shape (n,)
        The classes of all training items.

    Returns
    -------
    epochs : ndarray of int of shape (s,)
    accuracy : ndarray of float of shape (s,)

    Examples
    --------
    >>> from ddclust.snapshots import SnapshotSeries
    >>> A = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]])
    >>> snapshot_accuracy(SnapshotSeries(np.array([0, 2]), np.array([0, 5]), A), ["a", "a", "b"])
    (array([0, 5]), array([0.5, 1. ]))
    """
    classes = np.asarray(truth)[snapshots.items]
    scores = [clustering_accuracy(classes, A.argmax(axis=1)) for A in snapshots.probabilities]
    return snapshots.epochs, np.array(scores)


def _drawn_terms(records: list[dict[str, float]]) -> list[str]:
    """Names of the values to draw. A loss that consists of one term is drawn once."""
    terms = [name for name in records[0] if name not in ("epoch", "iteration")]
    if len(terms) == 2 and all(record[terms[0]] == record[terms[1]] for record in records):
        return terms[:1]
    return terms


def _rescaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values from 0, the least, to 1, the largest; a constant becomes 0."""
    span = values.max() - values.min()
    return (values - values.min()) / (span if span > 0 else 1.0)
