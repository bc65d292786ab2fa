"""The figures of the paper. Each function takes arrays or a fitted model and returns a matplotlib figure.

``figure.savefig("name.png")`` writes one; nothing of matplotlib's global state is touched. Clusters differ in
colour (Okabe and Ito's, told apart by colour-blind readers) and in marker or line style, so that grey prints
can be read, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ddclust.choosing.merging import node_groups
from ddclust.choosing.metrics import align_labels, clustering_accuracy
from ddclust.data.batches import channel_axis
from ddclust.show.explain import explain, overlay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ddclust.snapshots import SnapshotSeries

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000", "#b8a800")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "h")
DIFFERENT_LOOKS = math.lcm(len(COLOURS), len(MARKERS))
LINE_STYLES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 3)))
MISMATCH = "#d00000"
TERM_NAMES = {
    "loss": "loss",
    "divergence": "$l_1$, divergence",
    "orthogonality": "$l_2$, orthogonality",
    "corners": "$l_3$, corners",
}
PAIRS_PER_ROW = 5
LONGEST_TITLE = 28
MARGIN = 0.09  # inches
ROUNDS = 10
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def clusterings(X: ArrayLike, labelings: Mapping[str, Any]) -> Figure:
    """Points of the plane, clustered in several ways side by side.

    A cluster has the colour of the cluster of the first clustering that it shares most points with
    (Hungarian method).

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
    figure = _figure(3.0 * len(labelings), 3.3)
    axes = figure.subplots(1, len(labelings), squeeze=False)[0]
    reference = None
    for axis, (title, given) in zip(axes, labelings.items(), strict=True):
        labels = None if given is None else np.asarray(getattr(given, "labels_", given))
        if labels is not None and labels.shape != X.shape[:1]:
            raise ValueError(f"{title!r} has labels of shape {labels.shape} for {len(X)} points.")
        if labels is None:
            axis.scatter(*X.T, s=9, c="#666666", linewidths=0)
        else:
            aligned = labels if reference is None else align_labels(reference, labels)
            reference = aligned if reference is None else reference
            _scatter(axis, X, aligned, size=11)
        axis.set(aspect="equal", xticks=[], yticks=[])
        axis.set_title(title, fontsize=11)
    return figure


def simplex(
    probabilities: Any, labels: ArrayLike | None = None, titles: Sequence[str] | None = None
) -> Figure:
    """Soft assignments to three clusters as points of a triangle, whose corners are the clusters.

    Parameters
    ----------
    probabilities : array-like of shape (m, 3) or (s, m, 3), Snapshots, or fitted DDC
        One panel for each of s moments. Of a model its ``snapshots_`` or, without them, ``probabilities_``.
    labels : array-like of shape (m,), optional
        Classes or clusters that colour the points; by default the largest assignments of the last panel. With
        snapshots they may be those of all training items.
    titles : sequence of str, optional
        One per panel; for snapshots the epochs.

    Returns
    -------
    Figure

    Examples
    --------
    >>> A = np.random.default_rng(0).dirichlet([1, 1, 1], size=(2, 30))
    >>> len(simplex(A, titles=["Before", "After"]).axes)
    2
    """
    if hasattr(probabilities, "modules_"):
        probabilities = getattr(probabilities, "snapshots_", probabilities.probabilities_)
    items = None
    if hasattr(probabilities, "probabilities"):
        items = probabilities.items
        titles = [f"Epoch {epoch}" for epoch in probabilities.epochs] if titles is None else titles
        probabilities = probabilities.probabilities
    A = np.asarray(probabilities)
    A = A[None] if A.ndim == 2 else A
    if A.ndim != 3 or A.shape[2] != 3 or 0 in A.shape:
        raise ValueError(f"simplex draws assignments to three clusters, (m, 3) or (s, m, 3), got {A.shape}.")
    found = A[-1].argmax(axis=1) if labels is None else np.asarray(labels)
    if items is not None and len(found) != len(items):
        if len(found) <= items.max():
            raise ValueError(f"There are {len(found)} labels for {len(items)} items of larger data.")
        found = found[items]
    if found.shape != A.shape[1:2]:
        raise ValueError(f"There are {A.shape[1]} items, but labels of shape {found.shape}.")
    names = [""] * len(A) if titles is None else list(titles)
    if len(names) != len(A):
        raise ValueError(f"There are {len(A)} panels, but {len(names)} titles.")

    figure = _figure(3.1 * len(A), 3.3)
    for axis, moment, title in zip(figure.subplots(1, len(A), squeeze=False)[0], A, names, strict=True):
        axis.plot(*CORNERS[[0, 1, 2, 0]].T, color="#999999", linewidth=1, zorder=1)
        _scatter(axis, moment @ CORNERS, found, size=14, alpha=0.6)
        for corner, (x, y) in enumerate(CORNERS):
            axis.annotate(
                f"cluster {corner}",
                (x, y),
                xytext=(0, 7 if corner == 2 else -7),
                textcoords="offset points",
                ha="center",
                va="bottom" if corner == 2 else "top",
                fontsize=9,
            )
        axis.set(aspect="equal", xlim=(-0.16, 1.16), ylim=(-0.13, 1.02))
        axis.axis("off")
        axis.set_title(title, fontsize=11)
    if labels is not None and len(np.unique(found)) > 1:
        handles, texts = figure.axes[0].get_legend_handles_labels()
        columns = min(len(texts), 6)
        legend = figure.legend(
            handles,
            texts,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=9,
            title="label",
        )
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1)
    return figure


def gallery(
    images: ArrayLike, probabilities: Any, truth: ArrayLike | None = None, *, n_top: int = 10
) -> Figure:
    """For each cluster a row of the images with the highest soft assignments to it.

    With the truth, those whose class is not the one that their cluster is matched with (Hungarian method, over
    all items given) are boxed in red.

    Parameters
    ----------
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w)
    probabilities : array-like of shape (n, k), or a fitted model
        Soft assignments of the same images.
    truth : array-like of shape (n,), optional
        Classes, as numbers or names.
    n_top : int, default=10

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
    A, shown = np.asarray(probabilities), _displayable(images)
    if A.ndim != 2 or len(A) != len(images):
        raise ValueError(f"There are {len(images)} images, but soft assignments of shape {A.shape}.")
    labels = A.argmax(axis=1)
    mismatched, names = np.zeros(len(A), dtype=bool), [str(cluster) for cluster in range(A.shape[1])]
    if truth is not None:
        classes, codes = np.unique(np.asarray(truth), return_inverse=True)
        matched = align_labels(codes, labels)
        mismatched = matched != codes
        of_cluster = dict(zip(labels.tolist(), matched.tolist(), strict=True))
        for cluster, found in of_cluster.items():
            names[cluster] += f" ({classes[found]})" if found < len(classes) else " (unmatched)"

    height, width = shown.shape[1:3]
    aspect = height / width
    cell = 0.62
    figure = _figure(n_top * cell + 1.1, A.shape[1] * cell * aspect + 0.2)
    axis = figure.subplots()
    gap = 0.06
    for cluster in range(A.shape[1]):
        own = np.flatnonzero(labels == cluster)
        for column, item in enumerate(own[np.argsort(-A[own, cluster], kind="stable")[:n_top]]):
            left, right = column + gap, column + 1 - gap
            top, bottom = (cluster + gap) * aspect, (cluster + 1 - gap) * aspect
            _draw_image(axis, shown[item], (left, right, bottom, top))
            if mismatched[item]:
                _box(axis, left, top, right - left, bottom - top)
    axis.set(xlim=(0, n_top), ylim=(A.shape[1] * aspect, 0), aspect="equal", xticks=[])
    axis.set_yticks((np.arange(A.shape[1]) + 0.5) * aspect, names, fontsize=10)
    axis.set_ylabel("cluster" if truth is None else "cluster (class)", fontsize=10)
    _bare(axis)
    return figure


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
        Records with ``epoch`` and any values to draw, such as ``history_``; for supervised training, records of
        one's own.
    accuracy : (epochs, values), optional
        For example from :func:`snapshot_accuracy`.
    names : mapping of str to str, optional
        What to call values in the legend.

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
        raise ValueError("The history is empty: there was no full record to draw.")
    known = TERM_NAMES | dict(names or {})
    epochs = [record["epoch"] for record in records]
    terms = [name for name in records[0] if name not in ("epoch", "iteration")]
    if len(terms) == 2 and all(record[terms[0]] == record[terms[1]] for record in records):
        terms = terms[:1]  # a loss of one term
    figure = _figure(5.6, 3.4)
    axis = figure.subplots()
    marker = "o" if len(records) == 1 else None
    if accuracy is not None:
        axis.plot(
            *accuracy,
            color=COLOURS[0],
            linewidth=2,
            marker="o",
            markersize=5,
            markerfacecolor="white",
            label="accuracy",
        )
    colours = itertools.cycle(COLOURS[1:6])
    styles = itertools.cycle(LINE_STYLES)
    for name in terms:
        is_loss = name == "loss"
        axis.plot(
            epochs,
            _rescaled(np.array([record[name] for record in records], dtype=np.float64)),
            color="black" if is_loss else next(colours),
            linestyle="-" if is_loss else next(styles),
            linewidth=2 if is_loss else 1.6,
            marker=marker,
            label=known.get(name, name.replace("_", " ")),
        )
    scale = "loss, rescaled to [0, 1]" if accuracy is None else "accuracy; losses rescaled to [0, 1]"
    axis.set(xlabel="epoch", ylabel=scale, ylim=(-0.03, 1.03))
    axis.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    return figure


def snapshot_accuracy(
    snapshots: Snapshots, truth: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Epochs, and the clustering accuracy of the snapshot of each.

    Parameters
    ----------
    snapshots : Snapshots
    truth : array-like of shape (n,)
        Of all training items.

    Examples
    --------
    >>> from ddclust.snapshots import SnapshotSeries
    >>> A = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]])
    >>> snapshot_accuracy(Snapshots(np.array([0, 2]), np.array([0, 5]), A), ["a", "a", "b"])
    (array([0, 5]), array([0.5, 1. ]))
    """
    classes = np.asarray(truth)[snapshots.items]
    scores = [clustering_accuracy(classes, A.argmax(axis=1)) for A in snapshots.probabilities]
    return snapshots.epochs, np.array(scores)


def restarts(
    histories: Sequence[Sequence[Mapping[str, float]]],
    kept: Sequence[int],
    curves: Sequence[Sequence[Mapping[str, float]]] = (),
) -> Figure:
    """The loss of every restart over training and, beside it, ACC and NMI of those that were kept.

    Parameters
    ----------
    histories : sequence of lists of dict
        A history for each restart, with ``epoch`` and ``loss``.
    kept : sequence of int
        Positions of those that were kept, the best first.
    curves : sequence of lists of dict, optional
        For each that was kept, records with ``epoch``, ``ACC`` and ``NMI``.

    Returns
    -------
    Figure

    Examples
    --------
    >>> histories = [[{"epoch": 1, "loss": 0.9}, {"epoch": 2, "loss": 0.7 + i / 10}] for i in range(3)]
    >>> figure = restarts(histories, [0], [[{"epoch": 1, "ACC": 0.4, "NMI": 0.3}]])
    >>> len(figure.axes[0].lines), len(figure.axes[1].lines)
    (3, 2)
    """
    figure = _figure(8.4 if curves else 4.6, 3.3)
    axes = figure.subplots(1, 2 if curves else 1, squeeze=False)[0]
    colour_of = {run: COLOURS[place % len(COLOURS)] for place, run in enumerate(kept)}
    for run, history in enumerate(histories):
        axes[0].plot(
            [record["epoch"] for record in history],
            [record["loss"] for record in history],
            color=colour_of.get(run, "#bbbbbb"),
            linewidth=1.8 if run in colour_of else 1,
            zorder=3 if run in colour_of else 2,
        )
    axes[0].set(xlabel="epoch", ylabel="unsupervised loss")
    for place, curve in enumerate(curves):
        epochs = [record["epoch"] for record in curve]
        for measure, style in (("ACC", "-"), ("NMI", ":")):
            axes[1].plot(
                epochs,
                [record[measure] for record in curve],
                color=COLOURS[place % len(COLOURS)],
                linestyle=style,
                label=f"{measure}, rank {place + 1} by loss",
            )
    if curves:
        axes[1].set(xlabel="epoch", ylabel="agreement with the classes", ylim=(0, 1))
        axes[1].legend(frameon=False, fontsize=8)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure


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
    order = np.argsort(labels, kind="stable")
    names, sizes = np.unique(labels, return_counts=True)
    ends = np.cumsum(sizes)
    figure = _figure(4.6, 3.9)
    axis = figure.subplots()
    picture = axis.imshow(
        K[np.ix_(order, order)], cmap="Greys", vmin=0, vmax=float(K.max()), interpolation="antialiased"
    )
    for end in ends[:-1]:
        for line in (axis.axhline, axis.axvline):
            line(end - 0.5, color=COLOURS[3], linewidth=0.7)
    middles = ends - sizes / 2 - 0.5
    long = max(len(str(name)) for name in names) * len(names) > 30
    axis.set_xticks(middles, names, rotation=90 if long else 0, fontsize=9)
    axis.set_yticks(middles, names, fontsize=9)
    axis.tick_params(length=0)
    bar = figure.colorbar(picture, ax=axis, shrink=0.75)
    bar.set_label("kernel value", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure


def merge_tree(tree: Any, groups: ArrayLike | None = None) -> Figure:
    """The tree by which clusters were merged, those of one merged cluster in one colour.

    Parameters
    ----------
    tree : ndarray of shape (k - 1, 4), or a DDC fitted with ``n_final``
        See :func:`ddclust.choosing.merging.merge_tree`.
    groups : array-like of int of shape (k,), optional
        The merged cluster of each of the k; by default each is its own, or the model's.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = merge_tree(np.array([[0.0, 2.0, 0.7, 2.0], [1.0, 3.0, 3.5, 3.0]]), [0, 1, 0])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['1', '0', '2']
    """
    from scipy.cluster.hierarchy import dendrogram

    if hasattr(tree, "modules_"):
        if not hasattr(tree, "merge_tree_"):
            raise ValueError("This model has no tree: its clusters were not merged; fit it with n_final.")
        groups = tree.cluster_groups_[0] if groups is None else groups
        tree = tree.merge_tree_
    tree = np.asarray(tree, dtype=np.float64)
    if tree.ndim != 2 or tree.shape[1] != 4 or not len(tree):
        raise ValueError(
            f"A tree of k clusters is of shape (k - 1, 4) and has at least one row, got {tree.shape}."
        )
    own = np.arange(len(tree) + 1) if groups is None else np.asarray(groups)
    if own.shape != (len(tree) + 1,):
        raise ValueError(f"The tree is of {len(tree) + 1} clusters, but groups has shape {own.shape}.")
    of_nodes = node_groups(tree, own)

    def colour(node: int) -> str:
        return COLOURS[of_nodes[node] % len(COLOURS)] if of_nodes[node] >= 0 else "#999999"

    figure = _figure(max(4.0, 0.42 * len(own) + 1), 3.3)
    axis = figure.subplots()
    drawn = dendrogram(tree, ax=axis, link_color_func=colour)
    leaves = drawn["leaves"] or []
    for text, leaf in zip(axis.get_xticklabels(), leaves, strict=True):
        text.set(color=colour(leaf), fontsize=10, fontweight="bold", rotation=0)
    merged = [int(own[leaf]) for leaf in leaves]
    for group in dict.fromkeys(merged):
        places = [10 * place + 5 for place, of in enumerate(merged) if of == group]
        axis.annotate(
            str(group),
            (sum(places) / len(places), 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -20),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=10,
            color=COLOURS[group % len(COLOURS)],
        )
    axis.set(ylabel="Cauchy-Schwarz divergence")
    axis.set_xlabel("cluster, and below it the one that it is merged into", labelpad=18)
    axis.set_ylim(bottom=0)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.tick_params(axis="x", length=0)
    return figure


def scan(rows: Any, recommended: int | None = None) -> Figure:
    """Stability and divergence over the number of clusters.

    Parameters
    ----------
    rows : list of dict, or a :class:`ddclust.scan.Scan`
        With ``k``, ``agreements``, ``divergence`` (None if there is none) and ``clusters_used``. A point is hollow
        where most restarts leave clusters empty.
    recommended : int or None
        Is marked; of a scan it is known.

    Returns
    -------
    Figure

    Examples
    --------
    >>> rows = [{"k": k, "agreements": [0.9 / k, 1 / k], "divergence": 0.1 * k, "clusters_used": [k]} for k in (2, 3)]
    >>> figure = scan(rows, 2)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['stability of restarts (ARI)', 'divergence term of the loss']
    """
    from matplotlib.ticker import MaxNLocator

    if hasattr(rows, "recommendation"):
        recommended, rows = rows.recommendation.n_clusters, rows.rows
    rows = list(rows)
    if not rows:
        raise ValueError("There are no rows of a scan to draw.")
    ks = np.array([row["k"] for row in rows])
    full = np.array([np.median(row["clusters_used"]) == row["k"] for row in rows])
    panels: dict[str, list[Any]] = {
        "stability of restarts (ARI)": [np.mean(row["agreements"]) for row in rows]
    }
    if all(row["divergence"] is not None for row in rows):
        panels["divergence term of the loss"] = [row["divergence"] for row in rows]
    figure = _figure(4.6 * len(panels), 3.3)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, values), colour in zip(axes, panels.items(), COLOURS, strict=False):
        if recommended is not None:
            axis.axvline(recommended, color=COLOURS[3], linewidth=6, alpha=0.25, zorder=0)
        drawn = np.array(values)
        axis.plot(ks, drawn, color=colour, linewidth=1.6)
        axis.scatter(ks[full], drawn[full], color=colour, s=30, zorder=3)
        axis.scatter(ks[~full], drawn[~full], facecolor="white", edgecolor=colour, s=30, zorder=3)
        axis.set(xlabel="number of clusters", ylabel=name)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
    for row in rows:  # each restart on its own
        axes[0].scatter(
            [row["k"]] * len(row["agreements"]), row["agreements"], color="#999999", s=6, zorder=2
        )
    axes[0].set_ylim(min(0.0, *(a for row in rows for a in row["agreements"])) - 0.03, 1.03)
    answer = "unclear" if recommended is None else f"recommended: {recommended}"
    axes[0].set_title(answer, fontsize=11, loc="left")
    return figure


def explanations(images: ArrayLike, attributions: Any, titles: Sequence[str] | None = None) -> Figure:
    """Images, each with the pixels that speak for its cluster in red beside it.

    Parameters
    ----------
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w)
    attributions : array-like of the same shape, or a fitted model
        Such as ``explain(model, images).attributions``.
    titles : sequence of str, optional
        One per image; with a model, by default the clusters.

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
    painted, shown = overlay(images, attributions), _displayable(images)
    names = [""] * len(images) if titles is None else [str(title) for title in titles]
    if len(names) != len(images) or not names:
        raise ValueError(f"There are {len(images)} images, but {len(names)} titles.")
    columns = min(len(images), PAIRS_PER_ROW)
    rows = math.ceil(len(images) / columns)
    aspect = shown.shape[1] / shown.shape[2]
    titled = any(names)
    figure = _figure(2.15 * columns, rows * (1.0 * aspect + (0.32 if titled else 0.12)))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, image, red, name in zip(axes, shown, painted, names, strict=False):
        _draw_image(axis, image, (0, 1, aspect, 0))
        _draw_image(axis, red, (1.04, 2.04, aspect, 0))
        axis.set(xlim=(0, 2.04), ylim=(aspect, 0), aspect="equal", xticks=[], yticks=[])
        axis.set_title(_shortened(name), fontsize=9, pad=3)
        _bare(axis)
    for axis in axes[len(images) :]:
        axis.remove()
    return figure


def _figure(width: float, height: float) -> Figure:
    """A figure that pyplot knows nothing of."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(compress=True, w_pad=MARGIN, h_pad=MARGIN, wspace=0.03, hspace=0.03)
    return Figure(figsize=(width, height), dpi=150, layout=layout)


def _looks(labels: NDArray) -> Iterator[tuple[Any, str, str]]:
    """(label, colour, marker) of each label: small numbers have a look of their own, others one by their order."""
    found = np.unique(labels).tolist()
    by_number = all(isinstance(label, int) and 0 <= label < DIFFERENT_LOOKS for label in found)
    for place, label in enumerate(found):
        number = label if by_number else place
        yield label, COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]


def _scatter(axis: Axes, points: NDArray, labels: NDArray, *, size: float, alpha: float = 1.0) -> None:
    """Points by label, in rounds, so that where they lie dense the last label does not hide the others."""
    looks = list(_looks(labels))
    shares = [np.array_split(np.flatnonzero(labels == label), ROUNDS) for label, _, _ in looks]
    for number in range(ROUNDS):
        for (label, colour, marker), share in zip(looks, shares, strict=True):
            own = points[share[number]]
            if len(own):
                axis.scatter(
                    own[:, 0],
                    own[:, 1],
                    s=size,
                    c=colour,
                    marker=marker,
                    linewidths=0,
                    alpha=alpha,
                    label=str(label) if number == 0 else None,
                    zorder=2 + number,
                )


def _draw_image(axis: Axes, image: NDArray, extent: tuple[float, float, float, float]) -> None:
    axis.imshow(image, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest")


def _box(axis: Axes, left: float, top: float, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=MISMATCH, linewidth=2.2))


def _bare(axis: Axes) -> None:
    """No frame and no tick marks, only their labels."""
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def _displayable(images: NDArray) -> NDArray[np.float64]:
    """Images from 0 to 1, as (n, h, w) in grey or (n, h, w, 3) in colour."""
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise ValueError(
            f"Images are of shape (n, h, w), (n, h, w, c) or (n, c, h, w), at least one; got {images.shape}."
        )
    if images.dtype == np.uint8:
        shown = images / 255
    else:
        shown = images - images.min().astype(np.float64)
        shown /= shown.max() or 1.0
    axis = channel_axis(images.shape[1:])
    if axis is None:
        return shown
    shown = np.moveaxis(shown, axis + 1, -1)
    return shown if shown.shape[-1] == 3 else shown.mean(axis=-1)


def _rescaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From the least value, 0, to the largest, 1; a constant is 0."""
    span = values.max() - values.min()
    return (values - values.min()) / (span if span > 0 else 1.0)


def _shortened(title: str) -> str:
    """The end of a long title, which names of files differ in."""
    return title if len(title) <= LONGEST_TITLE else "…" + title[1 - LONGEST_TITLE :]
