"""Points of the plane, clustered in several ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ddclust.choosing.metrics import align_labels
from ddclust.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def clusterings(X: ArrayLike, labelings: Mapping[str, Any]) -> Figure:
    """Points of the plane, clustered in several ways side by side.

    Each cluster takes the colour of the cluster in the first clustering that it is matched with (Hungarian
    method).

    Parameters
    ----------
    X : array-like of shape (n, 2)
    labelings : mapping of title to array-like of int of shape (n,), fitted clusterer, or None
        One panel each. None draws the points alone.

    Returns
    -------
    Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> figure = clusterings(X, {"Data": None, "Halves": (X[:, 0] > 0).astype(int)})
    >>> [axes.get_title() for axes in figure.axes]
    ['Data', 'Halves']
    """
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must be points of the plane, of shape (n, 2), got {X.shape}.")
    if not labelings:
        raise ValueError("There are no clusterings to draw.")
    figure = style.new_figure(3.0 * len(labelings), 3.3)
    axes = figure.subplots(1, len(labelings), squeeze=False)[0]
    reference = None
    for axis, (title, given) in zip(axes, labelings.items(), strict=True):
        labels = None if given is None else np.asarray(getattr(given, "labels_", given))
        if labels is not None and labels.shape != X.shape[:1]:
            raise ValueError(f"{title!r} has labels of shape {labels.shape} for {len(X)} points.")
        if labels is None:
            axis.scatter(*X.T, s=9, c=style.DARK_GREY, linewidths=0)
        else:
            aligned = labels if reference is None else align_labels(reference, labels)
            reference = aligned if reference is None else reference
            style.scatter(axis, X, aligned, size=11)
        axis.set(aspect="equal", xticks=[], yticks=[])
        axis.set_title(title, fontsize=11)
    return figure
