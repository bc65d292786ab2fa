"""How many errors are left if only the most certain items are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ddclust.choosing.certainty import risk_coverage as curve_of
from ddclust.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def risk_coverage(confidence: ArrayLike, right: ArrayLike | None = None) -> Figure:
    """The share of errors among the most certain items, against the share of items that are kept.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        ``model.probabilities_.max(axis=1)``.
    right : array-like of bool of shape (n_samples,), optional
        Whether each item is right, by :func:`ddclust.choosing.metrics.are_right`. It adds the real curve to the one that the
        confidence expects.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = risk_coverage([0.6, 0.9, 0.99, 0.7], [False, True, True, True])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['expected from the confidence', 'by the known classes']
    """
    figure = style.new_figure(4.6, 3.3)
    axis = figure.subplots()
    axis.plot(
        *curve_of(confidence), color=style.colour(0), linestyle="--", label="expected from the confidence"
    )
    if right is not None:
        axis.plot(*curve_of(confidence, right), color=style.colour(3), label="by the known classes")
    axis.set(
        xlabel="share of items kept, the most certain first", ylabel="share of errors among them", xlim=(0, 1)
    )
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return figure
