"""Spectral rotation, eigenvectors, SEC and LDMGI, against the papers' formulas in dense float64 loops."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from ddclust.baselines import LDMGI, SEC, sec, spectral
from ddclust.baselines.ldmgi import local_matrices
from ddclust.baselines.spectral import smallest_eigenvectors, spectral_rotation
from ddclust.data.neighbors import Neighbors, nearest_neighbors
from ddclust.progress import Bar


@pytest.fixture
def lanczos(monkeypatch):
    """No dense matrix, however few the items."""
    monkeypatch.setattr(spectral, "DENSE_UP_TO", 0)


@pytest.fixture
def points(rng):
    """80 points in 10 dimensions: three groups, unequal and overlapping."""
    X = rng.normal(size=(80, 10))
    X[:35, 0] += 4
    X[35:60, 1] += 4
    return X


def same_subspace(A, B):
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-6)


def nearest(X, i, k):
    """The k points nearest to point i, without itself, by a loop."""
    distances = np.sqrt(((X - X[i]) ** 2).sum(axis=1))
    return sorted((distances[j], j) for j in range(len(X)) if j != i)[:k]


class TestRotation:
    def test_a_rotated_indicator_is_found_again(self, rng):
        truth = np.repeat([2, 0, 1], [50, 30, 20])
        lengths = rng.uniform(0.1, 9, size=(100, 1))  # of no meaning
        vectors = lengths * np.eye(3)[truth] @ ortho_group.rvs(3, random_state=1)
        labels, rotation, objective = spectral_rotation(vectors, np.random.RandomState(0))
        np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], [50, 30, 20]))  # by size
        np.testing.assert_allclose(vectors @ rotation / lengths, np.eye(3)[labels], atol=1e-12)
        assert objective == pytest.approx(100)

    def test_a_noisy_one_too(self, rng):
        truth = np.repeat(np.arange(5), 40)
        vectors = (np.eye(5)[truth] + 0.15 * rng.normal(size=(200, 5))) @ ortho_group.rvs(5, random_state=1)
        labels, rotation, objective = spectral_rotation(vectors, np.random.RandomState(0), n_init=5)
        assert adjusted_rand_score(truth, labels) == 1
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(5), atol=1e-12)
        rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        indicator = np.eye(5)[labels]
        assert objective == pytest.approx(np.trace(indicator.T @ rows @ rotation))
        np.testing.assert_array_equal(labels, np.argmax(rows @ rotation, axis=1))

    def test_the_best_of_several_starts_is_kept(self, rng):
        vectors = rng.normal(size=(300, 6))
        once = [spectral_rotation(vectors, np.random.RandomState(seed)).objective for seed in range(8)]
        several = spectral_rotation(vectors, np.random.RandomState(0), n_init=20).objective
        assert several >= max(once[0], np.median(once))
        assert max(once) > min(once)

    def test_rows_of_zeros_do_no_harm(self):
        vectors = np.vstack([np.eye(2)[[0, 0, 0, 1, 1]], np.zeros((1, 2))])
        labels = spectral_rotation(vectors, np.random.RandomState(0)).labels
        assert labels[0] == labels[1] == labels[2] != labels[3]
        assert labels[3] == labels[4]


class TestEigenvectors:
    def test_lanczos_and_dense_agree(self, rng, monkeypatch):
        A = rng.normal(size=(200, 200))
        M = A @ A.T / 200
        dense = smallest_eigenvectors(M, 4, ceiling=5, rng=np.random.RandomState(0))
        np.testing.assert_allclose(dense.values, np.linalg.eigvalsh(M)[:4], atol=1e-12)
        monkeypatch.setattr(spectral, "DENSE_UP_TO", 0)
        sparse = scipy.sparse.csr_array(M)
        iterated = smallest_eigenvectors(sparse, 4, ceiling=5, rng=np.random.RandomState(0))
        np.testing.assert_allclose(iterated.values, dense.values, atol=1e-9)
        np.testing.assert_allclose(np.abs((iterated.vectors * dense.vectors).sum(axis=0)), 1, atol=1e-6)

    def test_every_component_has_its_vector(self, lanczos, rng):
        X = np.vstack([rng.normal(size=(40, 3)) + 100 * group for group in range(5)])
        S = sec.normalised_affinity(nearest_neighbors(X, 5))
        M = scipy.sparse.eye_array(200) - S
        values, vectors = smallest_eigenvectors(
            M, 5, ceiling=2, rng=np.random.RandomState(0), may_repeat=True
        )
        np.testing.assert_allclose(values, 0, atol=1e-8)
        assert (
            adjusted_rand_score(
                np.repeat(range(5), 40), spectral_rotation(vectors, rng=np.random.RandomState(0)).labels
            )
            == 1
        )

    def test_what_does_not_converge_is_said_and_used(self, lanczos, monkeypatch, rng):
        monkeypatch.setattr(spectral, "MAX_RESTARTS", 1)
        monkeypatch.setattr(spectral, "DENSE_AT_WORST", 0)
        M = np.diag(np.linspace(0, 1, 400) ** 2)
        with pytest.warns(ConvergenceWarning, match="of 3 eigenvectors converged"):
            values, vectors = smallest_eigenvectors(M, 3, ceiling=1, rng=np.random.RandomState(0))
        np.testing.assert_allclose(values, np.diag(M)[:3], atol=1e-3)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-8)

    def test_few_items_converge_at_any_rate(self, lanczos, monkeypatch):
        monkeypatch.setattr(spectral, "MAX_RESTARTS", 1)
        M = np.diag(np.linspace(0, 1, 400) ** 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values, _ = smallest_eigenvectors(M, 3, ceiling=1, rng=np.random.RandomState(0))
        np.testing.assert_allclose(values, np.diag(M)[:3], atol=1e-12)


def test_empty_clusters_are_said(points, monkeypatch):
    def two_clusters(vectors, rng, n_init):
        return spectral.Rotation(np.arange(len(vectors)) % 2, np.eye(3), 0.0)

    monkeypatch.setattr(spectral, "spectral_rotation", two_clusters)
    with pytest.warns(ConvergenceWarning, match="uses 2 of the 3 clusters asked for") as caught:
        SEC(3, random_state=0).fit(points)
    assert caught[0].filename == __file__  # the line that called fit


def naive_affinity(X, k):
    n = len(X)
    scales = [nearest(X, i, k)[-1][0] for i in range(n)]
    A = np.zeros((n, n))
    for i in range(n):
        for distance, j in nearest(X, i, k):
            A[i, j] = A[j, i] = np.exp(-(distance**2) / (scales[i] * scales[j]))
    return A


class TestSEC:
    @pytest.mark.parametrize(("mu", "gamma"), [(0, 1), (0.01, 1), (1, 1), (1, 30), (20, 0.1)])
    @pytest.mark.parametrize("iterate", [False, True])
    def test_papers_formulas(self, points, mu, gamma, iterate, monkeypatch):
        if iterate:
            monkeypatch.setattr(spectral, "DENSE_UP_TO", 0)
        n, d = points.shape
        A = naive_affinity(points, 5)
        roots = np.diag(1 / np.sqrt(A.sum(axis=1)))
        L = np.eye(n) - roots @ A @ roots
        H = np.eye(n) - np.ones((n, n)) / n
        Xc = H @ points
        M = L + mu * (H - Xc @ np.linalg.inv(Xc.T @ Xc + gamma * np.eye(d)) @ Xc.T)
        values, vectors = np.linalg.eigh(M)
        model = SEC(3, mu=mu, gamma=gamma, random_state=0).fit(points)
        np.testing.assert_allclose(model.eigenvalues_, values[:3], atol=1e-8)
        same_subspace(model.embedding_, vectors[:, :3])

        F = model.embedding_
        W = np.linalg.inv(Xc.T @ Xc + gamma * np.eye(d)) @ Xc.T @ F
        b = F.mean(axis=0) - points.mean(axis=0) @ W

        def objective(W, b):
            fit = ((points @ W + b - F) ** 2).sum() + gamma * (W**2).sum()
            return np.trace(F.T @ L @ F) + mu * fit

        assert objective(W, b) == pytest.approx(model.eigenvalues_.sum(), abs=1e-8)
        if mu > 0:  # no other W and b are better
            assert objective(W + 0.01, b) > objective(W, b)
            assert objective(W, b + 0.01) > objective(W, b)
        rotation = np.linalg.lstsq(W, model.coef_, rcond=None)[0]
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-8)
        np.testing.assert_allclose(model.intercept_, b @ rotation, atol=1e-8)
        np.testing.assert_array_equal(model.labels_, np.argmax(F @ rotation, axis=1))

    @pytest.mark.parametrize("n_features", [20, 200])
    def test_sparse_and_dense_agree(self, rng, lanczos, n_features):
        X = rng.random((90, n_features)) * (rng.random((90, n_features)) < 0.3)
        X[:40, :5] += 2
        X[40:70, 5:10] += 2
        dense = SEC(3, random_state=0).fit(X)
        sparse = SEC(3, random_state=0).fit(scipy.sparse.csr_matrix(X))
        np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, atol=1e-8)
        same_subspace(sparse.embedding_, dense.embedding_)
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_array_equal(sparse.predict(scipy.sparse.csr_array(X)), dense.predict(X))

    def test_wide_data_by_the_other_side(self, rng):
        X = rng.normal(size=(30, 50))
        F = rng.normal(size=(30, 2))
        Xc = X - X.mean(axis=0)
        expected = np.linalg.inv(Xc.T @ Xc + 0.7 * np.eye(50)) @ Xc.T @ F
        for data in (X, scipy.sparse.csr_matrix(X)):
            ridge = sec.ridge_regression(sec.CentredData(data), 0.7)
            np.testing.assert_allclose(ridge.weights(F), expected, atol=1e-10)
            np.testing.assert_allclose(ridge.residual(F), F - F.mean(axis=0) - Xc @ expected, atol=1e-10)

    def test_new_items(self):
        X, y = make_blobs(400, centers=[[0, 0], [10, 0], [0, 10]], random_state=0)
        model = SEC(3, random_state=0).fit(X[:200])
        assert adjusted_rand_score(y[200:], model.predict(X[200:])) > 0.98

    def test_rings_on_the_graph_alone(self):
        X, y = make_circles(400, factor=0.4, noise=0.04, random_state=0)
        assert adjusted_rand_score(y, SEC(2, mu=0, random_state=0).fit_predict(X)) == 1

    def test_many_copies(self, rng):
        X = np.repeat(rng.normal(size=(3, 4)), [30, 20, 10], axis=0)
        X = np.vstack([X, rng.normal(size=(20, 4)) + 30])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SEC(4, random_state=0).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert adjusted_rand_score(np.repeat(range(4), [30, 20, 10, 20]), model.labels_) > 0.9

    def test_too_many_features_are_refused(self, points, monkeypatch):
        monkeypatch.setattr(sec, "MAX_SQUARE", 5)
        with pytest.raises(
            ValueError, match="10 features and 80 samples, both more than 5; reduce the features"
        ):
            SEC(3).fit(points)

    def test_a_vanishing_gamma_is_refused(self, rng):
        X = np.outer(rng.normal(size=40), np.full(6, 1e6))  # of rank one
        with pytest.raises(ValueError, match="gamma=1e-30 vanishes beside the values of X"):
            SEC(2, gamma=1e-30).fit(X)


class TestLDMGI:
    @pytest.mark.parametrize("reg_lambda", [1e-8, 1, 1e4])
    @pytest.mark.parametrize("iterate", [False, True])
    def test_papers_formulas(self, points, reg_lambda, iterate, monkeypatch):
        if iterate:
            monkeypatch.setattr(spectral, "DENSE_UP_TO", 0)
        n, k = len(points), 5
        H = np.eye(k) - np.ones((k, k)) / k
        L = np.zeros((n, n))
        for i in range(n):
            clique = [i] + [j for _, j in nearest(points, i, k - 1)]
            S = np.zeros((n, k))
            S[clique, range(k)] = 1
            Xi = points[clique].T @ H  # (d, k), centred
            L += S @ H @ np.linalg.inv(Xi.T @ Xi + reg_lambda * np.eye(k)) @ H @ S.T
        values, vectors = np.linalg.eigh(L)
        model = LDMGI(3, reg_lambda=reg_lambda, random_state=0).fit(points)
        np.testing.assert_allclose(model.eigenvalues_, values[:3], atol=1e-7 * values[-1])
        same_subspace(model.embedding_, vectors[:, :3])
        expected = np.trace(vectors[:, :3].T @ L @ vectors[:, :3])
        assert np.trace(model.embedding_.T @ L @ model.embedding_) == pytest.approx(expected, rel=1e-5)

    def test_local_matrix_is_the_discriminant_model(self, rng):
        """tr(G'LG) = const - tr((S_t + lambda I)^-1 S_b) up to the factor lambda, for the scaled indicator G."""
        X, reg_lambda = rng.normal(size=(6, 3)), 0.3
        indicator = np.eye(2)[[0, 0, 1, 1, 1, 0]]
        G = indicator / np.sqrt(indicator.sum(axis=0))
        Xc = X - X.mean(axis=0)
        between = Xc.T @ G @ G.T @ Xc
        fisher = np.trace(np.linalg.inv(Xc.T @ Xc + reg_lambda * np.eye(3)) @ between)
        (L,) = local_matrices(X[None], reg_lambda)
        constant = np.trace(G.T @ (np.eye(6) - 1 / 6) @ G)
        assert reg_lambda * np.trace(G.T @ L @ G) == pytest.approx(constant - fisher)

    def test_tiny_lambda_beside_large_values(self, rng):
        X = 1e5 * rng.normal(size=(1, 5, 8))
        Xc = X[0] - X[0].mean(axis=0)
        (L,) = local_matrices(X, 1e-8)
        np.testing.assert_allclose(L, np.linalg.pinv(Xc @ Xc.T, rcond=1e-10), rtol=1e-6)
        np.testing.assert_allclose(L.sum(axis=1), 0, atol=1e-20)

    def test_sparse_and_dense_agree(self, rng):
        X = rng.random((80, 30)) * (rng.random((80, 30)) < 0.3)
        dense = LDMGI(3, random_state=0).fit(X)
        sparse = LDMGI(3, random_state=0).fit(scipy.sparse.csr_array(X))
        np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, atol=1e-10)
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)

    @pytest.mark.parametrize("iterate", [False, True])
    def test_moons(self, iterate, monkeypatch):
        if iterate:
            monkeypatch.setattr(spectral, "DENSE_UP_TO", 0)
        X, y = make_moons(300, noise=0.05, random_state=0)
        assert adjusted_rand_score(y, LDMGI(2, clique_size=8, random_state=0).fit_predict(X)) == 1

    def test_too_large_cliques_are_refused(self, points):
        with pytest.raises(
            ValueError, match="clique_size=7 should be <= n_samples=6; ask for smaller cliques"
        ):
            LDMGI(2, clique_size=7).fit(points[:6])


@pytest.mark.parametrize("model", [SEC(3, random_state=0), LDMGI(3, random_state=0)], ids=["SEC", "LDMGI"])
class TestBoth:
    def test_groups_numbered_by_size(self, model):
        X, y = make_blobs([20, 70, 40], n_features=6, cluster_std=0.3, random_state=0)
        labels = model.fit_predict(X)
        np.testing.assert_array_equal(labels, np.array([2, 0, 1])[y])

    def test_a_seed_gives_the_same_again(self, model, points, lanczos):
        first, second = clone(model).fit(points), clone(model).fit(points)
        np.testing.assert_array_equal(first.labels_, second.labels_)
        np.testing.assert_array_equal(first.embedding_, second.embedding_)

    def test_given_neighbours_are_used(self, model, points):
        expected = clone(model).fit(points)
        given = nearest_neighbors(points, 9)  # more than needed
        np.testing.assert_array_equal(clone(model).fit_predict(points, neighbors=given), expected.labels_)
        elsewhere = Neighbors(np.roll(given.indices, 40, axis=0), given.distances)
        other = clone(model).fit(points, neighbors=elsewhere)
        assert not np.allclose(other.eigenvalues_, expected.eigenvalues_)

    def test_wrong_neighbours_are_refused(self, model, points):
        for given in (nearest_neighbors(points, 2), nearest_neighbors(points[:40], 9)):
            with pytest.raises(
                ValueError, match="neighbors holds .* of 80 are needed; compute them by nearest_n"
            ):
                clone(model).fit(points, neighbors=given)

    def test_too_many_components_are_said(self, model, rng):
        X = np.vstack([rng.normal(size=(20, 3)) + 100 * group for group in range(5)])
        with pytest.warns(
            ConvergenceWarning, match="falls apart into 5 components, more than the n_clusters=3"
        ):
            clone(model).fit(X)

    def test_no_warning_without_reason(self, model, rng):
        X = np.vstack([rng.normal(size=(20, 3)) + 100 * np.eye(3)[group] for group in range(3)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            labels = clone(model).fit_predict(X)
        assert adjusted_rand_score(np.repeat(range(3), 20), labels) == 1

    def test_a_bar_for_those_who_ask(self, model, points, lanczos, monkeypatch, capsys):
        clone(model).fit(points)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(spectral, "Bar", lambda **options: Bar(**(options | {"delay": 0})))
        clone(model).set_params(verbose=True).fit(points)
        assert "finding eigenvectors" in capsys.readouterr().err

    def test_images_are_flattened(self, model, images):
        model = clone(model).set_params(n_clusters=2)
        labels = model.fit_predict(images)
        np.testing.assert_array_equal(labels, model.fit_predict(images.reshape(60, -1)))
        assert adjusted_rand_score(np.repeat([0, 1], 30), labels) == 1

    def test_equal_items_are_refused(self, model):
        with pytest.raises(ValueError, match="All 20 samples of X are identical"):
            clone(model).fit(np.ones((20, 3)))
