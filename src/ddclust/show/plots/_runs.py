"""The loss of every run over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ddclust.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(
    histories: Sequence[Sequence[Mapping[str, float]]],
    kept: Sequence[int],
    curves: Sequence[Sequence[Mapping[str, float]]] = (),
) -> Figure:
    """The loss of every run over training and, beside it, ACC and NMI of the runs that were kept.

    Parameters
    ----------
    histories : sequence of lists of dict
        One history per run, with ``epoch`` and ``loss``.
    kept : sequence of int
        Positions of the runs that were kept, the best first. They are drawn in colour.
    curves : sequence of lists of dict, optional
        For each run that was kept, records with ``epoch``, ``ACC`` and ``NMI``.

    Returns
    -------
    Figure

    Examples
    --------
    >>> histories = [[{"epoch": 1, "loss": 0.9}, {"epoch": 2, "loss": 0.7 + i / 10}] for i in range(3)]
    >>> figure = runs(histories, [0], [[{"epoch": 1, "ACC": 0.4, "NMI": 0.3}]])
    >>> len(figure.axes[0].lines), len(figure.axes[1].lines)
    (3, 2)
    """
    figure = style.new_figure(8.4 if curves else 4.6, 3.3)
    axes = figure.subplots(1, 2 if curves else 1, squeeze=False)[0]
    colour_of = {run: style.colour(rank) for rank, run in enumerate(kept)}
    for run, history in enumerate(histories):
        axes[0].plot(
            [record["epoch"] for record in history],
            [record["loss"] for record in history],
            color=colour_of.get(run, style.LIGHT_GREY),
            linewidth=1.8 if run in colour_of else 1,
            zorder=3 if run in colour_of else 2,
        )
    axes[0].set(xlabel="epoch", ylabel="unsupervised loss")
    for rank, curve in enumerate(curves):
        epochs = [record["epoch"] for record in curve]
        for measure, line_style in (("ACC", "-"), ("NMI", ":")):
            axes[1].plot(
                epochs,
                [record[measure] for record in curve],
                color=style.colour(rank),
                linestyle=line_style,
                label=f"{measure}, rank {rank + 1} by loss",
            )
    if curves:
        axes[1].set(xlabel="epoch", ylabel="agreement with the classes", ylim=(0, 1))
        axes[1].legend(frameon=False, fontsize=8)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure
