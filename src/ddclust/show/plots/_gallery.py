"""The most certain images of each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ddclust.choosing.metrics import align_labels
from ddclust.show import style
from ddclust.show.images import displayable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 0.62  # inches
GAP = 0.06  # of a cell


def gallery(
    images: ArrayLike, probabilities: Any, truth: ArrayLike | None = None, *, n_top: int = 10
) -> Figure:
    """A row of images for each cluster: those with the highest soft assignments to it.

    If the truth is given, each cluster is matched with a class (Hungarian method, over all given items), and
    images of other classes are boxed in red.

    Parameters
    ----------
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w)
    probabilities : array-like of shape (n, k), or a fitted model
        Soft assignments of the same images.
    truth : array-like of shape (n,), optional
        Classes, as numbers or names.
    n_top : int, default=10
        Number of images per cluster.

    Returns
    -------
    Figure

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> figure = gallery(rng.random((30, 8, 8)), rng.dirichlet([1, 1, 1], size=30), n_top=4)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['0', '1', '2']
    """
    images = np.asarray(images)
    if hasattr(probabilities, "predict_proba"):
        probabilities = probabilities.predict_proba(images)
    A, shown = np.asarray(probabilities), displayable(images)
    if A.ndim != 2 or len(A) != len(images):
        raise ValueError(f"There are {len(images)} images, but soft assignments of shape {A.shape}.")
    n_clusters, labels = A.shape[1], A.argmax(axis=1)
    names = [str(cluster) for cluster in range(n_clusters)]
    mismatched = np.zeros(len(A), dtype=bool)
    if truth is not None:
        classes, mismatched = _matched(labels, np.asarray(truth))
        names = [f"{name} ({classes[c]})" if c in classes else name for c, name in enumerate(names)]

    aspect = shown.shape[1] / shown.shape[2]
    figure = style.new_figure(n_top * CELL + 1.1, n_clusters * CELL * aspect + 0.2)
    axis = figure.subplots()
    for cluster in range(n_clusters):
        own = np.flatnonzero(labels == cluster)
        for column, item in enumerate(own[np.argsort(-A[own, cluster], kind="stable")[:n_top]]):
            left, right = column + GAP, column + 1 - GAP
            top, bottom = (cluster + GAP) * aspect, (cluster + 1 - GAP) * aspect
            style.draw_image(axis, shown[item], (left, right, bottom, top))
            if mismatched[item]:
                _box(axis, left, top, right - left, bottom - top)
    axis.set(xlim=(0, n_top), ylim=(n_clusters * aspect, 0), aspect="equal", xticks=[])
    axis.set_yticks((np.arange(n_clusters) + 0.5) * aspect, names, fontsize=10)
    axis.set_ylabel("cluster" if truth is None else "cluster (class)", fontsize=10)
    style.hide_frame(axis)
    return figure


def _matched(labels: NDArray, truth: NDArray) -> tuple[dict[int, str], NDArray[np.bool_]]:
    """The class that each cluster in use is matched with, and which items are of another class."""
    classes, codes = np.unique(truth, return_inverse=True)
    matched = align_labels(codes, labels)
    pairs = zip(labels.tolist(), matched.tolist(), strict=True)
    names = {
        cluster: str(classes[code]) if code < len(classes) else "unmatched" for cluster, code in set(pairs)
    }
    return names, matched != codes


def _box(axis: Axes, left: float, top: float, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=style.MISMATCH, linewidth=2.2))
