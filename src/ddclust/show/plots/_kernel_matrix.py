"""A kernel matrix sorted by clusters or classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ddclust.show import style
from ddclust.show.layout import blocks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG_NAMES = 30  # characters of all names together, beyond which they are turned


def kernel_matrix(K: ArrayLike, labels: ArrayLike) -> Figure:
    """A kernel matrix with its items sorted by their labels; dark is similar.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Such as ``gaussian_kernel(torch.from_numpy(model.transform(X)))``, of a few thousand items at most.
    labels : array-like of shape (n,)
        Clusters or classes.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import torch
    >>> from ddclust.objective.kernels import gaussian_kernel
    >>> K = gaussian_kernel(torch.randn(12, 3))
    >>> kernel_matrix(K, [0, 1, 2] * 4).axes[0].get_images()[0].get_array().shape
    (12, 12)
    """
    K, labels = np.asarray(K), np.asarray(labels)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or labels.shape != K.shape[:1] or not len(K):
        raise ValueError(
            f"kernel_matrix takes (n, n) values and n labels, got shapes {K.shape} and {labels.shape}."
        )
    order, names, sizes, ends = blocks_of(labels)
    figure = style.new_figure(4.6, 3.9)
    axis = figure.subplots()
    picture = axis.imshow(
        K[np.ix_(order, order)], cmap="Greys", vmin=0, vmax=float(K.max()), interpolation="antialiased"
    )
    for end in ends[:-1]:
        for line in (axis.axhline, axis.axvline):
            line(end - 0.5, color=style.COLOURS[3], linewidth=0.7)
    middles = ends - sizes / 2 - 0.5
    long = max(len(str(name)) for name in names) * len(names) > LONG_NAMES
    axis.set_xticks(middles, names, rotation=90 if long else 0, fontsize=9)
    axis.set_yticks(middles, names, fontsize=9)
    axis.tick_params(length=0)
    bar = figure.colorbar(picture, ax=axis, shrink=0.75)
    bar.set_label("kernel value", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure
