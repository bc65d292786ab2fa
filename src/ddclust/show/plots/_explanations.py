"""Images beside what speaks for their clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ddclust.show import style
from ddclust.show.explain import explain, overlay
from ddclust.show.images import displayable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES_PER_ROW = 5
LONGEST_TITLE = 28


def explanations(images: ArrayLike, attributions: Any, titles: Sequence[str] | None = None) -> Figure:
    """Images and, beside each, the same image with the pixels that speak for its cluster in red.

    Parameters
    ----------
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w)
    attributions : array-like of the same shape, or a fitted model
        Such as ``explain(model, images).attributions``.
    titles : sequence of str, optional
        One per image. By default the clusters if a model is given, otherwise none.

    Returns
    -------
    Figure

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> figure = explanations(rng.random((3, 8, 8)), rng.normal(size=(3, 8, 8)), ["a", "b", "c"])
    >>> [len(axes.get_images()) for axes in figure.axes]
    [2, 2, 2]
    """
    images = np.asarray(images)
    if hasattr(attributions, "modules_"):
        found = explain(attributions, images)
        attributions = found.attributions
        titles = [f"cluster {cluster}" for cluster in found.clusters] if titles is None else titles
    painted, shown = overlay(images, attributions), displayable(images)
    names = [""] * len(images) if titles is None else [str(title) for title in titles]
    if len(names) != len(images):
        raise ValueError(f"There are {len(images)} images, but {len(names)} titles.")
    columns = min(len(images), IMAGES_PER_ROW)
    rows = math.ceil(len(images) / columns)
    aspect = shown.shape[1] / shown.shape[2]
    figure = style.new_figure(2.15 * columns, rows * (1.0 * aspect + (0.32 if any(names) else 0.12)))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, image, red, name in zip(axes, shown, painted, names, strict=False):
        style.draw_image(axis, image, (0, 1, aspect, 0))
        style.draw_image(axis, red, (1.04, 2.04, aspect, 0))
        axis.set(xlim=(0, 2.04), ylim=(aspect, 0), aspect="equal", xticks=[], yticks=[])
        axis.set_title(_shortened(name), fontsize=9, pad=3)
        style.hide_frame(axis)
    for axis in axes[len(images) :]:
        axis.remove()
    return figure


def _shortened(title: str) -> str:
    """The end of a long title, because names of files differ at their ends."""
    return title if len(title) <= LONGEST_TITLE else "…" + title[1 - LONGEST_TITLE :]
