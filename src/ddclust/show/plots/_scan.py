"""How many clusters: stability and divergence over the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ddclust.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def scan(rows: Any, recommended: int | None = None) -> Figure:
    """Stability and divergence over the number of clusters.

    A point is hollow if most runs leave clusters empty. Small grey points are single runs.

    Parameters
    ----------
    rows : list of dict, or a :class:`ddclust.scan.Scan`
        With ``k``, ``agreements``, ``divergence`` (None if there is none) and ``clusters_used``.
    recommended : int or None
        The number of clusters to mark. A Scan brings its own.

    Returns
    -------
    Figure

    Examples
    --------
    >>> rows = [{"k": k, "agreements": [0.9 / k, 1 / k], "divergence": 0.1 * k, "clusters_used": [k]} for k in (2, 3)]
    >>> figure = scan(rows, 2)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['stability of runs (ARI)', 'divergence term of the loss']
    """
    from matplotlib.ticker import MaxNLocator

    if hasattr(rows, "recommendation"):
        recommended, rows = rows.recommendation.n_clusters, rows.rows
    rows = list(rows)
    if not rows:
        raise ValueError("There are no rows of a scan to draw.")
    ks = np.array([row["k"] for row in rows])
    full = np.array([np.median(row["clusters_used"]) == row["k"] for row in rows])
    panels: dict[str, list[Any]] = {"stability of runs (ARI)": [np.mean(row["agreements"]) for row in rows]}
    if all(row["divergence"] is not None for row in rows):
        panels["divergence term of the loss"] = [row["divergence"] for row in rows]
    figure = style.new_figure(4.6 * len(panels), 3.3)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, values), colour in zip(axes, panels.items(), style.COLOURS, strict=False):
        if recommended is not None:
            axis.axvline(recommended, color=style.COLOURS[3], linewidth=6, alpha=0.25, zorder=0)
        drawn = np.array(values)
        axis.plot(ks, drawn, color=colour, linewidth=1.6)
        axis.scatter(ks[full], drawn[full], color=colour, s=30, zorder=3)
        axis.scatter(ks[~full], drawn[~full], facecolor="white", edgecolor=colour, s=30, zorder=3)
        axis.set(xlabel="number of clusters", ylabel=name)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
    for row in rows:
        axes[0].scatter(
            [row["k"]] * len(row["agreements"]), row["agreements"], color=style.GREY, s=6, zorder=2
        )
    axes[0].set_ylim(min(0.0, *(a for row in rows for a in row["agreements"])) - 0.03, 1.03)
    answer = "unclear" if recommended is None else f"recommended: {recommended}"
    axes[0].set_title(answer, fontsize=11, loc="left")
    return figure
