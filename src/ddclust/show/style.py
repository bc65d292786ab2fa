"""The one palette, and the look that the figures and the report share.

Clusters differ in colour and also in marker or line style, so that colour-blind readers and readers of grey
prints can tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The first seven are Okabe and Ito's, which people with any colour vision can tell apart; their yellow is darker here,
# to be seen on white. All can be seen on a white and on a dark page.
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#b5a900", "#7f7f7f", "#8c564b", "#6a3d9a",
    "#1b9e77", "#a6761d", "#e7298a", "#66a61e", "#386cb0", "#f0027f", "#bf5b17", "#4d4d4d", "#80b1d3", "#fb8072",
)  # fmt: skip
# From low to high values; seen on a white and on a dark page, and told apart without colours, too.
SCALE = ("#5a5fb0", "#2a788e", "#22a884", "#7ad151", "#dfc11f")
DARK_GREY, GREY, LIGHT_GREY = "#666666", "#999999", "#bbbbbb"
MISMATCH = "#d00000"
ATTRIBUTION = (230, 20, 30)  # the red of an explained pixel
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "h")
DIFFERENT_LOOKS = math.lcm(len(COLOURS), len(MARKERS))
LINE_STYLES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 3)))
SVG_DASHES = ("", "6 3", "2 3", "8 3 2 3")

MARGIN = 0.09  # inches
ROUNDS = 10


def colour(number: int) -> str:
    """The colour of a cluster or of a line; colours repeat after the last.

    Examples
    --------
    >>> colour(1), colour(1 + len(COLOURS))
    ('#e69f00', '#e69f00')
    """
    return COLOURS[number % len(COLOURS)]


def new_figure(width: float, height: float) -> Figure:
    """A matplotlib figure of this size in inches that pyplot does not know of."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(compress=True, w_pad=MARGIN, h_pad=MARGIN, wspace=0.03, hspace=0.03)
    return Figure(figsize=(width, height), dpi=150, layout=layout)


def scatter(axis: Axes, points: NDArray, labels: NDArray, *, size: float, alpha: float = 1.0) -> None:
    """Draw points in the look of their labels.

    The labels take turns, so that the last one does not hide the others where points lie close together.
    """
    looks = list(_looks(labels))
    shares = [np.array_split(np.flatnonzero(labels == label), ROUNDS) for label, _, _ in looks]
    for number in range(ROUNDS):
        for (label, own_colour, marker), share in zip(looks, shares, strict=True):
            own = points[share[number]]
            if len(own):
                axis.scatter(
                    own[:, 0],
                    own[:, 1],
                    s=size,
                    c=own_colour,
                    marker=marker,
                    linewidths=0,
                    alpha=alpha,
                    label=str(label) if number == 0 else None,
                    zorder=2 + number,
                )


def _looks(labels: NDArray) -> Iterator[tuple[Any, str, str]]:
    """(label, colour, marker) of each label, by its number if all are small numbers, otherwise by its rank."""
    found = np.unique(labels).tolist()
    by_number = all(isinstance(label, int) and 0 <= label < DIFFERENT_LOOKS for label in found)
    for rank, label in enumerate(found):
        number = label if by_number else rank
        yield label, colour(number), MARKERS[number % len(MARKERS)]


def draw_image(axis: Axes, image: NDArray, extent: tuple[float, float, float, float]) -> None:
    """Draw a grey or colour image, with values from 0 to 1, into (left, right, bottom, top)."""
    axis.imshow(image, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest")


def hide_frame(axis: Axes) -> None:
    """Remove the frame and the tick marks, and keep the tick labels."""
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
