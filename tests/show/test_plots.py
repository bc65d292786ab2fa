"""Figures hold what they should: values are read back from what is drawn."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from ddclust.objective.kernels import gaussian_kernel
from ddclust.show import plots
from ddclust.show.explain import explain, overlay
from ddclust.show.layout import simplex_points
from ddclust.snapshots import Snapshots, SnapshotSeries
from helpers import quick


def drawn(figure):
    """The figure as PNG, so that drawing itself is tried."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    return figure


def points_by_look(axes):
    """Points in the order of their coordinates, by colour and number of corners of the marker."""
    found = {}
    for collection in axes.collections:
        look = to_hex(collection.get_facecolor()[0]), collection.get_paths()[0].vertices.tobytes()
        found.setdefault(look, []).append(np.asarray(collection.get_offsets()))
    return {look: np.concatenate(parts) for look, parts in found.items()}


def sorted_rows(points):
    return np.asarray(points)[np.lexsort(np.asarray(points).T)]


def test_every_figure_is_exported():
    files = {file.stem.removeprefix("_") for file in Path(plots.__file__).parent.glob("_[!_]*.py")}
    assert files == set(plots.__all__) - {"snapshot_accuracy"}  # which is no figure
    assert all(callable(getattr(plots, name)) for name in plots.__all__)


@pytest.mark.parametrize("k", [2, 3, 8, 12])
def test_clusterings(rng, k):
    X, labels = rng.normal(size=(200, 2)), rng.integers(0, k, size=200)
    renamed = (labels + 1) % k
    figure = drawn(plots.clusterings(X, {"Data": None, "One": labels, "Same": renamed}))
    assert [axes.get_title() for axes in figure.axes] == ["Data", "One", "Same"]
    alone, one, same = (points_by_look(axes) for axes in figure.axes)
    assert len(alone) == 1
    assert len(one) == k  # every cluster looks different
    assert all(np.array_equal(same[look], points) for look, points in one.items())  # aligned
    assert {tuple(p) for p in sorted_rows(np.concatenate(list(one.values())))} == {tuple(p) for p in X}
    first = next(points for points in one.values() if X[0].tolist() in points.tolist())
    assert np.array_equal(sorted_rows(first), sorted_rows(X[labels == labels[0]]))


@pytest.mark.parametrize("names", [[-1, 0], [100, 124], list(range(24))])
def test_labels_of_any_numbers_look_different(rng, names):
    labels = np.repeat(names, 5)
    (axes,) = plots.clusterings(rng.normal(size=(len(labels), 2)), {"a": labels}).axes
    assert len(points_by_look(axes)) == len(names)


def test_clusterings_take_fitted_clusterers(blobs):
    X, y = blobs
    model = quick(max_iter=20).fit(X)
    figure = plots.clusterings(X, {"truth": y, "DDC": model})
    assert len(points_by_look(figure.axes[1])) == len(np.unique(model.labels_))
    with pytest.raises(ValueError, match="shape \\(n, 2\\)"):
        plots.clusterings(X[:, :1], {"truth": y})
    with pytest.raises(ValueError, match="'DDC' has labels of shape \\(3,\\) for 150 points"):
        plots.clusterings(X, {"DDC": [0, 1, 2]})
    with pytest.raises(ValueError, match="no clusterings"):
        plots.clusterings(X, {})


def test_simplex_by_hand():
    A = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1 / 3, 1 / 3, 1 / 3]])
    (axes,) = drawn(plots.simplex(A)).axes
    points = sorted_rows(np.concatenate(list(points_by_look(axes).values())))
    height = np.sqrt(3) / 2
    assert points == pytest.approx(sorted_rows([[0, 0], [1, 0], [0.5, height], [0.5, height / 3]]))


@pytest.mark.parametrize("n_classes", [1, 2, 5, 12])
def test_simplex_of_snapshots(rng, n_classes):
    A = rng.dirichlet([1, 1, 1], size=(3, 100)).astype(np.float32)
    truth = rng.integers(0, n_classes, size=500)
    snapshots = SnapshotSeries(np.arange(0, 500, 5), np.array([0, 5, 15]), A)
    figure = drawn(plots.simplex(snapshots, truth))
    assert [axes.get_title() for axes in figure.axes] == ["Epoch 0", "Epoch 5", "Epoch 15"]
    looks = points_by_look(figure.axes[1])
    assert len(looks) == len(np.unique(truth[::5]))
    own = sorted_rows(simplex_points(A[1][truth[::5] == 0]))
    assert any(len(own) == len(found) and np.allclose(sorted_rows(found), own) for found in looks.values())
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert texts == ([str(i) for i in range(n_classes)] if n_classes > 1 else [])


def test_simplex_of_a_model(blobs):
    X, y = blobs
    model = quick(max_iter=10, callbacks=[Snapshots([0, 2])]).fit(X)
    assert len(plots.simplex(model, y).axes) == 2
    assert len(plots.simplex(quick(max_iter=10).fit(X)).axes) == 1
    with pytest.raises(ValueError, match="three clusters"):
        plots.simplex(np.full((5, 4), 0.25))
    with pytest.raises(ValueError, match="2 panels, but 1 titles"):
        plots.simplex(model, titles=["a"])
    with pytest.raises(ValueError, match="150 items"):
        plots.simplex(model, y[:20])


def boxes(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_gallery_by_hand():
    images = np.arange(6, dtype=np.uint8)[:, None, None] * np.full((2, 2), 40, dtype=np.uint8)
    A = np.array([[0.9, 0.1], [0.8, 0.2], [0.95, 0.05], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8]])
    figure = drawn(plots.gallery(images, A, ["cat", "dog", "cat", "dog", "dog", "cat"], n_top=2))
    (axes,) = figure.axes
    # The surest two of each cluster: items 2 and 0, then 5 and 3. Cluster 0 is cats, so item 5 is a mismatch.
    assert [image.get_array()[0, 0] for image in axes.get_images()] == pytest.approx(
        np.array([2, 0, 5, 3]) * 40 / 255
    )
    (box,) = boxes(axes)
    left, right, bottom, top = axes.get_images()[2].get_extent()
    assert box.get_bbox().extents == pytest.approx([left, top, right, bottom])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0 (cat)", "1 (dog)"]


@pytest.mark.parametrize("k", [2, 7, 12])
@pytest.mark.parametrize("shape", [(6, 9), (6, 9, 3), (3, 6, 9), (6, 9, 1)])
def test_gallery(rng, k, shape):
    images, A = rng.random((300, *shape)), rng.dirichlet([0.3] * k, size=300)
    (axes,) = drawn(plots.gallery(images, A)).axes
    assert len(axes.get_images()) == np.minimum(np.bincount(A.argmax(axis=1), minlength=k), 10).sum()
    assert not boxes(axes)
    top = images[A[:, 0].argmax()]
    span = images.max() - images.min()
    expected = (top.transpose(1, 2, 0) if shape[0] == 3 else top.squeeze()) - images.min()
    assert np.asarray(axes.get_images()[0].get_array()) == pytest.approx(expected / span)


def test_gallery_of_more_clusters_than_classes_and_an_empty_one(rng):
    A = np.eye(4)[[0, 0, 0, 1, 1, 3]]
    (axes,) = drawn(plots.gallery(rng.random((6, 4, 4)), A, [5, 5, 5, 6, 6, 6])).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["0 (5)", "1 (6)", "2", "3 (unmatched)"]
    assert len(boxes(axes)) == 1


def test_gallery_of_a_model(images):
    model = quick(2, max_iter=10).fit(images)
    (axes,) = plots.gallery(images, model, [0] * 30 + [1] * 30).axes
    assert len(axes.get_images()) == 20 or len(np.unique(model.labels_)) < 2
    with pytest.raises(ValueError, match="60 images, but soft assignments of shape \\(5, 2\\)"):
        plots.gallery(images, model.probabilities_[:5])


def test_training_curves_are_rescaled():
    history = [
        {"epoch": e, "iteration": e * 7, "loss": l, "divergence": d, "corners": 5.0}
        for e, l, d in [(1, 4.0, 1.0), (2, 2.0, 3.0), (3, 3.0, 2.0)]
    ]
    figure = drawn(plots.training_curves(history, ([0, 3], [0.2, 0.9])))
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["accuracy"].get_ydata() == pytest.approx([0.2, 0.9])
    assert lines["accuracy"].get_xdata() == pytest.approx([0, 3])
    assert lines["loss"].get_ydata() == pytest.approx([1, 0, 0.5])
    assert lines["$l_1$, divergence"].get_ydata() == pytest.approx([0, 1, 0.5])
    assert lines["$l_3$, corners"].get_ydata() == pytest.approx([0, 0, 0])
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines.values()}) == len(lines)
    assert len({line.get_color() for line in lines.values()}) == len(lines)


def test_training_curves_of_other_histories(blobs):
    supervised = [{"epoch": e, "supervised": 1 / e, "divergence": 2 / e} for e in (1, 2)]
    figure = drawn(plots.training_curves(supervised, names={"supervised": "supervised loss"}))
    assert [line.get_label() for line in figure.axes[0].lines] == ["supervised loss", "$l_1$, divergence"]
    X, y = blobs
    model = quick(augment=None, max_iter=120, callbacks=[Snapshots([0, 20])]).fit(X)
    accuracy = plots.snapshot_accuracy(model.snapshots_, y)
    assert accuracy[0].tolist() == [0, 20]
    assert ((accuracy[1] >= 1 / 3) & (accuracy[1] <= 1)).all()
    assert len(plots.training_curves(model, accuracy).axes[0].lines) == 5
    with pytest.raises(ValueError, match="empty"):
        plots.training_curves([])


@pytest.mark.parametrize("k", [2, 12])
def test_kernel_matrix_is_sorted(rng, k):
    labels = rng.integers(0, k, size=90)
    K = gaussian_kernel(torch.from_numpy(rng.normal(size=(90, 4))))
    figure = drawn(plots.kernel_matrix(K, labels))
    order = np.argsort(labels, kind="stable")
    assert np.array_equal(figure.axes[0].get_images()[0].get_array(), K.numpy()[order][:, order])
    assert len(figure.axes[0].lines) == 2 * (k - 1)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [str(i) for i in range(k)]
    (red, green, blue, _), (dark, *_) = (figure.axes[0].get_images()[0].cmap(v) for v in (0.0, 1.0))
    assert red == green == blue == 1  # low is white
    assert dark < 0.1
    with pytest.raises(ValueError, match="n labels"):
        plots.kernel_matrix(K, labels[:5])


@pytest.mark.parametrize("n", [1, 5, 7])
def test_explanations(images, n):
    attributions = np.random.default_rng(0).normal(size=(n, 8, 8))
    figure = drawn(plots.explanations(images[:n], attributions, [f"item {i}" for i in range(n)]))
    assert len(figure.axes) == n
    painted = overlay(images[:n], attributions)
    for number, axes in enumerate(figure.axes):
        image, red = axes.get_images()
        assert np.asarray(image.get_array()) == pytest.approx(images[number] / 255)
        assert np.array_equal(red.get_array(), painted[number])
        assert axes.get_title() == f"item {number}"
    with pytest.raises(ValueError, match="titles"):
        plots.explanations(images[:2], attributions[:1].repeat(2, axis=0), ["one"])


def test_explanations_by_a_model(images):
    model = quick(2, max_iter=10).fit(images)
    found = explain(model, images[:3])
    figure = plots.explanations(images[:3], model)
    assert [axes.get_title() for axes in figure.axes] == [f"cluster {c}" for c in found.clusters]
    red = figure.axes[1].get_images()[1].get_array()
    assert np.array_equal(red, overlay(images[:3], found.attributions)[1])


def test_explanations_of_nothing():
    with pytest.raises(ValueError, match="at least one"):
        plots.explanations(np.zeros((0, 8, 8)), np.zeros((0, 8, 8)))


def test_runs_that_were_kept_are_in_colour():
    histories = [[{"epoch": e, "loss": 1 / e + run} for e in (1, 2)] for run in range(3)]
    curves = [[{"epoch": 1, "ACC": 0.4, "NMI": 0.3}], [{"epoch": 1, "ACC": 0.6, "NMI": 0.5}]]
    losses, scores = drawn(plots.runs(histories, [2, 0], curves)).axes
    assert [line.get_ydata().tolist() for line in losses.lines] == [[1, 0.5], [2, 1.5], [3, 2.5]]
    first, other, best = (line.get_color() for line in losses.lines)
    assert [line.get_color() for line in scores.lines] == [best, best, first, first]
    assert other not in (first, best)
    assert len(plots.runs(histories, [0]).axes) == 1


def test_long_titles_keep_their_ends(images):
    name = "photographs/of/a/long/summer/IMG_0001.png"
    figure = plots.explanations(images[:1], np.zeros((1, 8, 8)), [name])
    assert figure.axes[0].get_title() == "…" + name[-27:]


def test_nothing_global_changes(tmp_path):
    """In a process of its own: pyplot is not even loaded, the backend and settings stay."""
    code = """
import sys
import matplotlib, numpy as np
names = [name for name in matplotlib.rcParams if name != "backend"]  # asking for that would choose one
before = {name: matplotlib.rcParams[name] for name in names}
backend = matplotlib.get_backend(auto_select=False)
from ddclust.show import plots
A = np.random.default_rng(0).dirichlet([1, 1, 1], size=20)
for figure in (plots.simplex(A), plots.gallery(A[:, :, None], A), plots.clusterings(A[:, :2], {"a": None})):
    figure.savefig(sys.argv[1])
assert not {"captum", "matplotlib.pyplot"} & set(sys.modules)
assert {name: matplotlib.rcParams[name] for name in names} == before
assert matplotlib.get_backend(auto_select=False) == backend
"""
    command = [sys.executable, "-c", code, tmp_path / "figure.png"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "figure.png").exists()


def test_risk_and_coverage():
    figure = plots.risk_coverage([0.6, 0.9, 0.99, 0.7])
    (line,) = figure.axes[0].lines
    assert line.get_xdata().tolist() == [0.25, 0.5, 0.75, 1.0]
    assert line.get_ydata() == pytest.approx([0.01, 0.055, 0.41 / 3, 0.81 / 4])
    assert len(plots.risk_coverage([0.6, 0.9], [True, False]).axes[0].lines) == 2
