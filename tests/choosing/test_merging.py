"""Merging: by hand, against naive recomputation, and as part of the estimator."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage
from sklearn.datasets import make_blobs

from ddclust import DDC, DDCLoss, Snapshots
from ddclust.choosing import merging
from ddclust.choosing.merging import (
    cluster_overlaps,
    cluster_similarities,
    merge_tree,
    merged_assignments,
    merged_groups,
    renumbered_tree,
)
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.objective.kernels import gaussian_kernel
from ddclust.show import plots
from ddclust.show.explain import explain
from ddclust.show.report import report_page
from ddclust.storage.model_folder import ModelFormatError
from helpers import OneTerm, Small, edit, own_loss, quick


@pytest.fixture
def outputs(rng):
    """Hidden representation and soft assignments of 60 items to 6 clusters, in float64."""
    H = torch.from_numpy(rng.normal(size=(60, 4)))
    A = torch.from_numpy(rng.dirichlet(np.full(6, 0.3), size=60))
    return H, A


def test_overlaps_are_the_formula(outputs):
    H, A = outputs
    expected = (A.T @ gaussian_kernel(H) @ A).numpy()
    np.testing.assert_allclose(cluster_overlaps(H, A), expected, rtol=1e-10)


def test_overlaps_in_blocks_are_the_same(outputs, monkeypatch):
    H, A = outputs
    whole = cluster_overlaps(H, A, bandwidth=0.3, bandwidth_rule="median")
    monkeypatch.setattr(merging, "BLOCK", 7)
    np.testing.assert_allclose(
        cluster_overlaps(H, A, bandwidth=0.3, bandwidth_rule="median"), whole, rtol=1e-12
    )


def test_a_hand_worked_tree():
    # Four clusters: 0 and 3 most alike (.8), then 1 and 2 (.5); the pairs are far from each other.
    S = np.array([[1, 0.1, 0.0, 0.8], [0.1, 1, 0.5, 0.0], [0.0, 0.5, 1, 0.1], [0.8, 0.0, 0.1, 1]])
    tree = merge_tree(S)
    # {0, 3} has overlap 3.6 with itself, {1, 2} has 3, and they have .1 + 0 + 0 + .1 with each other.
    last = 0.2 / np.sqrt(3.6 * 3.0)
    np.testing.assert_allclose(tree[:, 2], -np.log([0.8, 0.5, last]))
    assert tree[:, [0, 1, 3]].tolist() == [[0, 3, 2], [1, 2, 2], [4, 5, 4]]
    assert merged_groups(tree, 4).tolist() == [0, 1, 2, 3]
    assert merged_groups(tree, 3).tolist() == [0, 1, 2, 0]
    assert merged_groups(tree, 2).tolist() == [0, 1, 1, 0]
    assert merged_groups(tree, 1).tolist() == [0, 0, 0, 0]


def test_every_merge_is_what_recomputation_from_the_items_gives(outputs):
    H, A = outputs
    K = gaussian_kernel(H)
    tree = merge_tree(cluster_overlaps(H, A))
    columns = {cluster: A[:, cluster] for cluster in range(6)}
    for row, (first, second, divergence, _) in enumerate(tree):
        similarity = {}
        for i in columns:
            for j in columns:
                if i < j:
                    a, b = columns[i], columns[j]
                    similarity[i, j] = float(a @ K @ b / torch.sqrt((a @ K @ a) * (b @ K @ b)))
        best = max(similarity, key=similarity.get)
        assert best == (first, second)
        assert divergence == pytest.approx(-np.log(similarity[best]), rel=1e-9)
        columns[6 + row] = columns.pop(int(first)) + columns.pop(int(second))


@pytest.mark.parametrize("n_final", [1, 2, 4, 6])
def test_overlaps_are_additive(outputs, n_final):
    H, A = outputs
    S = cluster_overlaps(H, A)
    groups = merged_groups(merge_tree(S), n_final)
    M = np.eye(n_final)[groups]  # (k, n_final)
    merged = merged_assignments(A.numpy(), groups)
    np.testing.assert_allclose(merged, A.numpy() @ M, rtol=1e-12)
    np.testing.assert_allclose(cluster_overlaps(H, torch.from_numpy(merged)), M.T @ S @ M, rtol=1e-10)


def test_trees_are_scipy_s(outputs):
    tree = merge_tree(cluster_overlaps(*outputs))
    assert is_valid_linkage(tree)
    assert sorted(dendrogram(tree, no_plot=True)["leaves"]) == list(range(6))


def test_clusters_that_never_meet_have_a_finite_divergence():
    tree = merge_tree(np.eye(3))
    assert np.isfinite(tree).all()
    assert is_valid_linkage(tree)


def test_clusters_without_items_are_merged_first():
    S = np.array([[1, 0.9, 0.1, 0.0], [0.9, 1, 0.1, 0.0], [0.1, 0.1, 1, 0.0], [0, 0, 0, 0.0]])
    sizes = [10, 10, 0, 0]
    groups = merged_groups(merge_tree(S, sizes), 2)
    assert groups[0] != groups[1]  # not merged, alike as they are: both are needed
    assert merged_groups(merge_tree(S), 3).tolist() == [0, 0, 1, 2]


def test_similarities_are_symmetric_with_ones(outputs):
    C = cluster_similarities(cluster_overlaps(*outputs))
    np.testing.assert_allclose(C, C.T)
    np.testing.assert_allclose(C.diagonal(), 1)
    assert C.min() >= 0


def test_wrong_numbers_of_clusters(blobs):
    with pytest.raises(ValueError, match="n_final=3 should be from 1 to the number of clusters, 2"):
        merged_groups(merge_tree(np.eye(2)), 3)
    with pytest.raises(ValueError, match="n_final=4 should be <= n_clusters=3: clusters can only be merged"):
        quick(3, n_final=4).fit(blobs[0])


@pytest.fixture(scope="module")
def merged():
    """Three groups, found as eight clusters by five runs, of which three vote."""
    from sklearn.datasets import make_blobs

    X, y = make_blobs(240, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.7, random_state=0)
    loss = DDCLoss(weights={"orthogonality": 4})
    model = quick(8, n_final=3, n_init=4, n_vote=3, max_iter=300, loss=loss, augment=None)
    return model.fit(X), X, y


def test_merged_clusters_are_the_groups(merged):
    model, _, y = merged
    assert model.n_clusters_ == 3
    assert len(np.unique(model.fine_labels_)) > 3
    assert clustering_accuracy(y, model.labels_) == 1
    assert model.probabilities_.shape == (240, 3)
    assert model.probabilities_.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()  # numbered by size


def test_predictions_agree_with_the_fit(merged):
    model, X, _ = merged
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict_proba(X), model.probabilities_)
    assert np.array_equal(model.predict_proba(X[5:6]), model.probabilities_[5:6])
    assert np.array_equal(model.predict_fine(X), model.fine_labels_)
    assert np.array_equal(model.member_labels_[0], model.member_probabilities(X)[0].argmax(axis=1))


def test_the_tree_speaks_of_the_fine_clusters(merged):
    model, X, _ = merged
    assert is_valid_linkage(model.merge_tree_)
    groups = model.cluster_groups_[0]
    again = merged_groups(model.merge_tree_, 3)
    assert len({*zip(groups.tolist(), again.tolist(), strict=True)}) == 3  # the same partition
    # The overlaps of the fine clusters in their own numbering give the tree.
    with torch.no_grad():
        hidden, logits = model.modules_[0](model.scaling_(X))
    A = logits.softmax(dim=1)[:, model.cluster_orders_[0]]
    tree = merge_tree(cluster_overlaps(hidden, A), np.bincount(model.fine_labels_, minlength=8))
    np.testing.assert_allclose(tree[:, 2], model.merge_tree_[:, 2], rtol=1e-3)


def test_without_a_vote_merging_is_a_sum_of_outputs(blobs):
    X, _ = blobs
    model = quick(5, n_final=2, max_iter=60).fit(X)
    with torch.no_grad():
        raw = model.modules_[0](model.scaling_(X))[1].softmax(dim=1).numpy()
    fine = raw[:, model.cluster_orders_[0]]
    groups = model.cluster_groups_[0]
    assert (np.diff(groups) >= 0).all()  # clusters that are merged stand together
    expected = np.stack([fine[:, groups == group].sum(axis=1) for group in range(2)], axis=1)
    np.testing.assert_allclose(model.probabilities_, expected, atol=1e-6)


def test_as_many_as_there_are_changes_nothing(blobs):
    plain, merged = (quick(3, max_iter=40, n_final=n_final).fit(blobs[0]) for n_final in (None, 3))
    assert np.array_equal(plain.probabilities_, merged.probabilities_)
    assert np.array_equal(plain.cluster_orders_, merged.cluster_orders_)
    assert not hasattr(plain, "merge_tree_")
    assert not hasattr(merged.set_params(n_final=None).fit(blobs[0]), "merge_tree_")


def test_a_run_may_leave_more_clusters_empty_than_are_merged(blobs):
    model = quick(40, n_final=2, max_iter=30).fit(blobs[0])  # a warning would be an error
    assert set(np.unique(model.labels_)) == {0, 1}


def test_merging_with_a_loss_of_one_s_own(blobs):
    assert OneTerm._fields == ("value",)
    model = quick(4, n_final=2, loss=own_loss, max_iter=20).fit(blobs[0])
    assert model.n_clusters_ == 2


def test_merged_models_are_saved_whole(merged, tmp_path):
    model, X, _ = merged
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    for name in ("labels_", "fine_labels_", "merge_tree_", "cluster_groups_", "probabilities_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name))
    assert np.array_equal(loaded.predict_proba(X), model.probabilities_)
    assert np.array_equal(loaded.predict_fine(X), model.fine_labels_)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cluster_groups", [[0] * 8] * 3, "cluster_groups"),
        ("cluster_groups", [[0, 1, 2, 0, 1, 2, 0, 1]], "differ in number"),
        ("merge_tree", [[0, 1, 0.5, 2]], "merge_tree"),
        ("merge_tree", [[0, 0, -1, 2]] * 7, "merge_tree"),
    ],
)
def test_damaged_merging_is_refused(merged, tmp_path, name, value, message):
    merged[0].save(tmp_path / "model")
    edit(tmp_path / "model", **{name: value})
    with pytest.raises(ModelFormatError, match=message):
        DDC.load(tmp_path / "model")


def test_snapshots_are_of_the_merged_clusters(blobs):
    model = quick(5, n_final=2, max_iter=20, callbacks=[Snapshots((0, 10))]).fit(blobs[0])
    assert model.snapshots_.probabilities.shape == (2, 150, 2)
    np.testing.assert_allclose(model.snapshots_.probabilities[1], model.probabilities_, atol=1e-6)


def test_explanations_are_of_the_part_that_an_item_belongs_to(merged):
    model, X, _ = merged
    found = explain(model, X[:20])
    assert np.array_equal(found.clusters, model.labels_[:20])
    # A single network of which nothing is merged, asked for the very outputs, says the same.
    outputs_of = model._outputs_of(model._source(X[:20]), model.labels_[:20])
    with torch.no_grad():
        logits = model.modules_[0](model.scaling_(X[:20]))[1].numpy()
    group_of_output = np.empty(8, dtype=int)
    group_of_output[model.cluster_orders_[0]] = model.cluster_groups_[0]
    for item, output in enumerate(outputs_of):
        own = np.flatnonzero(group_of_output == model.labels_[item])
        assert output == own[logits[item, own].argmax()]
    with pytest.raises(ValueError, match="no cluster 3; they are numbered from 0 to 2"):
        explain(model, X[:2], clusters=3)


def test_the_tree_is_drawn(merged):
    model, _, _ = merged
    (axes,) = plots.merge_tree(model).axes
    leaves = [int(label.get_text()) for label in axes.get_xticklabels()]
    assert sorted(leaves) == list(range(8))
    tops = sorted(float(path.vertices[1, 1]) for c in axes.collections for path in c.get_paths())
    assert tops == pytest.approx(sorted(model.merge_tree_[:, 2]))
    assert sorted(int(text.get_text()) for text in axes.texts) == [0, 1, 2]
    with pytest.raises(ValueError, match="fit it with n_final"):
        plots.merge_tree(quick(1, max_iter=2).fit(merged[1]))
    with pytest.raises(ValueError, match=r"\(k - 1, 4\)"):
        plots.merge_tree(np.ones((3, 3)))
    with pytest.raises(ValueError, match="8 clusters, but groups has shape"):
        plots.merge_tree(model.merge_tree_, [0, 1])


def test_the_report_has_the_tree_and_the_final_clusters(merged):
    model, X, y = merged
    page = report_page(model, X, truth=y)
    assert "trained with 8 clusters, which were merged into 3" in page
    assert page.count("<polyline") >= 7
    assert page.count('<section class="cluster"') == 3
    assert "Merging" not in report_page(quick(1, max_iter=2).fit(X), X)


def test_renumbering_a_tree_keeps_its_partitions(outputs, rng):
    tree = merge_tree(cluster_overlaps(*outputs))
    order = rng.permutation(6)
    renumbered = renumbered_tree(tree, order)
    assert is_valid_linkage(renumbered)
    for n_final in range(1, 7):
        before, after = merged_groups(tree, n_final), merged_groups(renumbered, n_final)
        assert len({*zip(before[order].tolist(), after.tolist(), strict=True)}) == n_final


def plan_of_sizes(X, k=3, links=None, **options):
    model = quick(k, **options)
    setup = model._plan(model._items(X), must_link=links).setup
    return setup.n_clusters, setup.n_final


def test_more_clusters_are_trained_by_default_and_merged(blobs):
    few, X = blobs[0], np.tile(blobs[0], (4, 1))
    assert plan_of_sizes(few) == (3, None)
    assert plan_of_sizes(X) == plan_of_sizes(X, neighbors=3) == (9, 3)
    assert plan_of_sizes(X, n_final=None) == (3, None)
    assert plan_of_sizes(X, n_final=2) == (3, 2)
    for options in (
        {"loss": DDCLoss()},
        {"augment": None},
        {"links": [[0, 1]]},
        {"batch_size": 6},
        {"network": Small},
    ):
        assert plan_of_sizes(X, **options) == (3, None)
    assert plan_of_sizes(scipy.sparse.csr_array(np.abs(X))) == (3, None)
    images = np.arange(400.0 * 64).reshape(400, 8, 8)
    assert plan_of_sizes(images, k=4) == (12, 4)
    assert plan_of_sizes(images[:100], k=4) == (5, 4)
    assert plan_of_sizes(X, k=1) == (1, None)
    assert DDC.paper(3).n_final is None


def test_a_model_merged_by_default_is_read_again(blobs, tmp_path):
    X = np.tile(blobs[0], (4, 1))
    model = quick(3, max_iter=20).fit(X)
    assert model.n_clusters_ == 3
    assert len(model.merge_tree_) == model.setup_.n_clusters - 1 == 8
    model.save(tmp_path / "m")
    again = DDC.load(tmp_path / "m")
    assert np.array_equal(again.predict(X), model.labels_)
    assert again.predict_proba(X).shape == (600, 3)


@pytest.mark.slow
def test_clusters_of_unequal_sizes_are_found_by_default():
    centers = [[-5.0, 0.0], [5.0, 0.0], [0.0, 8.0]]
    X, truth = make_blobs([850, 120, 30], centers=centers, random_state=5)
    options = {"max_iter": 500, "n_init": 1, "random_state": 0, "n_jobs": 1}
    assert clustering_accuracy(truth, DDC(3, **options).fit_predict(X)) >= 0.99
    assert clustering_accuracy(truth, DDC(3, n_final=None, **options).fit_predict(X)) < 0.7
