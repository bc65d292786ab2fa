"""ITC: its formulas against loops, the whole search against one that recomputes everything, and known shapes."""

import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_circles, make_moons

from ddclust.baselines import ITC
from ddclust.baselines.itc.divergence import (
    cauchy_schwarz_divergence,
    log_cut,
    log_cuts_if_joined,
    log_cuts_without_each,
)
from ddclust.baselines.itc.knn import NeighborClusters, NeighborDensity, least_distance
from ddclust.baselines.itc.parzen import ParzenClusters, ParzenDensity
from ddclust.baselines.itc.seeds import seeded_labels
from ddclust.choosing.metrics import clustering_accuracy

DIMENSION = 2
DENSITIES = [("parzen", 0), ("knn", 1), ("knn", 2)]  # and the number of neighbours


def squared_distances(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


def naive_overlaps(X, labels, density, k, sigma, *, to_place):
    """The integrals of p_i p_j as published: with volumes, kernels and sizes in full, by loops."""
    n_clusters = labels.max() + 1
    M = np.zeros((n_clusters, n_clusters))
    for i in range(n_clusters):
        for j in range(n_clusters):
            of_i, of_j = np.flatnonzero(labels == i), np.flatnonzero(labels == j)
            for x in of_i:
                if density == "parzen":
                    variance = 2 * sigma**2
                    for y in of_j:
                        r2 = sum((X[x] - X[y]) ** 2)
                        M[i, j] += math.exp(-r2 / (2 * variance)) / (2 * math.pi * variance) ** (
                            DIMENSION / 2
                        )
                else:
                    reach = sorted(math.dist(X[x], X[y]) for y in of_j if y != x)
                    r = reach[-1] if i == j and to_place else reach[k - 1]
                    M[i, j] += 1 / (math.pi ** (DIMENSION / 2) / math.gamma(DIMENSION / 2 + 1) * r**DIMENSION)
            M[i, j] /= len(of_i) * len(of_j)
    return (M + M.T) / 2


def naive_cut(M):
    return sum(M[i, j] / math.sqrt(M[i, i] * M[j, j]) for i in range(len(M)) for j in range(i + 1, len(M)))


def naive_search(X, labels, density, k, sigma, n_clusters):
    """The whole algorithm after the seeds, which recomputes everything for every decision."""
    labels = labels.copy()
    levels = []
    while True:
        while (labels < 0).any():
            free, labelled = np.flatnonzero(labels < 0), np.flatnonzero(labels >= 0)
            point = min(free, key=lambda x: min(math.dist(X[x], X[y]) for y in labelled))
            cuts = []
            for cluster in range(labels.max() + 1):
                trial = labels.copy()
                trial[point] = cluster
                cuts.append(naive_cut(naive_overlaps(X, trial, density, k, sigma, to_place=True)))
            labels[point] = int(np.argmin(cuts))
        M = naive_overlaps(X, labels, density, k, sigma, to_place=False)
        divergence = -math.log(naive_cut(M) / math.comb(len(M), 2))
        if len(M) == n_clusters:
            return [*levels, (labels.copy(), divergence, None)]
        rest = [np.delete(np.delete(M, i, axis=0), i, axis=1) for i in range(len(M))]
        worst = int(np.argmin([naive_cut(N) for N in rest]))
        levels.append((labels.copy(), divergence, worst))
        labels[labels == worst] = -1
        labels[labels > worst] -= 1


def clusters_of(X, labels, density, k, sigma=0.3):
    squared = squared_distances(X)
    if density == "parzen":
        model = ParzenDensity(sigma**2)
    else:
        model = NeighborDensity(least_distance(squared), k, float(X.shape[1]))
    return model.clusters(model.logs(squared), labels)


def same_up_to_sizes(log_overlaps, M):
    """Equal in the ratios that count; sizes and constants cancel there."""
    own = log_overlaps.diagonal()
    ratios = np.exp(log_overlaps - (own[:, None] + own) / 2)
    np.testing.assert_allclose(ratios, M / np.sqrt(np.outer(M.diagonal(), M.diagonal())), rtol=1e-9)


@pytest.fixture
def points(rng):
    """40 points in a plane in four loose groups, and labels of three clusters with ten left free."""
    X = rng.normal(size=(40, 2)) * 0.4 + np.repeat([[0, 0], [2, 0], [0, 2], [2.5, 2]], 10, axis=0)
    labels = np.arange(40) % 3
    labels[rng.choice(40, 10, replace=False)] = -1
    return X, labels


# The formulas


def test_cut_and_divergence_by_hand():
    # Ratios of the pairs: 1/sqrt(4*1) = .5, 2/sqrt(4*16) = .25, 1/sqrt(1*16) = .25.
    M = np.array([[4.0, 1.0, 2.0], [1.0, 1.0, 1.0], [2.0, 1.0, 16.0]])
    assert log_cut(np.log(M)) == pytest.approx(math.log(1.0))
    assert cauchy_schwarz_divergence(np.log(M)) == pytest.approx(math.log(3))
    np.testing.assert_allclose(np.exp(log_cuts_without_each(np.log(M))), [0.25, 0.25, 0.5])


def test_a_cluster_s_own_factor_cancels(rng):
    M = rng.uniform(0.1, 1, (4, 4))
    M += M.T
    factors = rng.uniform(0.1, 10, 4)
    assert log_cut(np.log(M * np.outer(factors, factors))) == pytest.approx(log_cut(np.log(M)))
    assert log_cut(np.log(M)) == pytest.approx(math.log(naive_cut(M)))


def test_one_cluster_has_no_divergence():
    assert cauchy_schwarz_divergence(np.array([[3.0]])) == 0
    assert cauchy_schwarz_divergence(np.log([[2.0, 2.0], [2.0, 2.0]])) == 0  # two that coincide


def test_cuts_of_any_size():
    log_overlaps = np.array([[0.0, -5000.0], [-5000.0, 0.0]])
    assert log_cut(log_overlaps) == -5000
    assert cauchy_schwarz_divergence(-log_overlaps) == -5000


def test_parzen_by_hand():
    # Three points on a line, sigma 1: the kernel of variance 2 at distances 1, 2, 3.
    squared = squared_distances(np.array([[0.0], [1.0], [3.0]]))
    clusters = ParzenClusters(ParzenDensity(1.0).logs(squared), np.array([0, 0, 1]))
    within, across = 2 + 2 * math.exp(-1 / 4), math.exp(-9 / 4) + math.exp(-4 / 4)
    np.testing.assert_allclose(np.exp(clusters.log_overlaps), [[within, across], [across, 1]])


def test_parzen_gives_renyi_s_entropy(points):
    X, labels = points
    sigma, of_0 = 0.3, X[labels == 0]
    V = 0.0
    for x in of_0:
        for y in of_0:
            V += math.exp(-sum((x - y) ** 2) / (4 * sigma**2)) / (4 * math.pi * sigma**2)
    entropy = -math.log(V / len(of_0) ** 2)
    ours = clusters_of(X, labels, "parzen", 0, sigma).log_overlaps[0, 0]
    assert 2 * math.log(len(of_0)) + math.log(4 * math.pi * sigma**2) - ours == pytest.approx(entropy)


def test_neighbours_by_hand():
    # On a line: {0, 1, 3} and {7, 9}. Nearest across: 7, 6, 4 and 4, 6; farthest within: 3, 2, 3 and 2, 2.
    x = np.array([[0.0], [1.0], [3.0], [7.0], [9.0]])
    clusters = NeighborClusters(
        NeighborDensity(1.0, 1, 1.0).logs(squared_distances(x)), np.array([0, 0, 0, 1, 1]), 1, 1.0
    )
    across = (1 / 7 + 1 / 6 + 1 / 4 + 1 / 4 + 1 / 6) / 2
    far = [1 / 3 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 2]
    near = [1 + 1 + 1 / 2, 1 / 2 + 1 / 2]
    np.testing.assert_allclose(np.exp(clusters.log_overlaps), [[far[0], across], [across, far[1]]])
    np.testing.assert_allclose(
        np.exp(clusters.log_overlaps_to_judge()), [[near[0], across], [across, near[1]]]
    )


@pytest.mark.parametrize(("density", "k"), DENSITIES)
def test_overlaps_are_the_published_ones(points, density, k):
    X, labels = points
    clusters = clusters_of(X, labels, density, k)
    same_up_to_sizes(clusters.log_overlaps, naive_overlaps(X, labels, density, k, 0.3, to_place=True))
    same_up_to_sizes(
        clusters.log_overlaps_to_judge(), naive_overlaps(X, labels, density, k, 0.3, to_place=False)
    )


@pytest.mark.parametrize(("density", "k"), DENSITIES)
def test_a_joined_point_is_as_if_computed_anew(points, density, k):
    X, labels = points
    clusters = clusters_of(X, labels, density, k)
    for point in np.flatnonzero(labels < 0)[:5]:
        joined = clusters.joined(clusters.row(point))
        (cuts,) = log_cuts_if_joined(clusters.log_overlaps, joined.log_overlaps)
        for cluster in range(3):
            trial = clusters.labels.copy()
            trial[point] = cluster
            anew = clusters_of(X, trial, density, k)
            np.testing.assert_allclose(joined.log_overlaps[0, cluster], anew.log_overlaps[cluster], rtol=1e-9)
            assert cuts[cluster] == pytest.approx(log_cut(anew.log_overlaps), abs=1e-9)
        clusters.add(point, 1, joined)
        anew = clusters_of(X, clusters.labels, density, k)
        np.testing.assert_allclose(clusters.log_overlaps_to_judge(), anew.log_overlaps_to_judge(), rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_what_is_left_out_in_many_dimensions_does_not_count(rng, k):
    X, labels = rng.normal(size=(80, 300)), np.arange(80) % 4
    labels[:8] = -1
    clusters = clusters_of(X, labels, "knn", k)
    for point in range(8):
        joined = clusters.joined(clusters.row(point))
        for cluster in range(4):
            trial = clusters.labels.copy()
            trial[point] = cluster
            anew = clusters_of(X, trial, "knn", k)
            np.testing.assert_allclose(joined.log_overlaps[0, cluster], anew.log_overlaps[cluster], atol=1e-9)
        clusters.add(point, point % 4, joined)


@pytest.mark.parametrize(("density", "k"), DENSITIES)
def test_dissolving_leaves_the_others_as_they_are(points, density, k):
    X, labels = points
    clusters = clusters_of(X, labels, density, k)
    clusters.dissolve(1)
    expected = np.array([-1, 0, -1, 1])[labels + 1]
    np.testing.assert_array_equal(clusters.labels, expected)
    anew = clusters_of(X, expected, density, k)
    np.testing.assert_allclose(clusters.log_overlaps, anew.log_overlaps, rtol=1e-9)


def test_seeds_are_connected_and_disjoint(rng):
    X = rng.normal(size=(30, 2))
    distances = squared_distances(X)
    labels = seeded_labels(distances, 4, 5, np.random.RandomState(0))
    np.testing.assert_array_equal(np.bincount(labels + 1), [10, 5, 5, 5, 5])
    first = seeded_labels(distances, 1, 2, np.random.RandomState(0))
    a, b = np.flatnonzero(first == 0)
    assert distances[a, b] in (np.sort(distances[a])[1], np.sort(distances[b])[1])


# The whole search


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("density", "k"), DENSITIES)
def test_the_search_is_the_naive_one(points, density, k, seed):
    X, _ = points
    model = ITC(2, density=density, n_neighbors=max(k, 1), n_seeds=5, n_init=1, random_state=seed).fit(X)
    seed = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=1)[0]
    squared = squared_distances(X)
    pairs = np.sort(np.sqrt(squared[np.triu_indices(40, 1)]))
    sigma = 0.15 * pairs[(len(pairs) - 1) // 2]
    levels = naive_search(
        X, seeded_labels(squared, 5, 3, np.random.RandomState(seed)), density, k, sigma, n_clusters=2
    )
    assert [level["dissolved"] for level in model.hierarchy_] == [dissolved for _, _, dissolved in levels]
    assert [level["n_clusters"] for level in model.hierarchy_] == [5, 4, 3, 2]
    for level, (labels, divergence, _) in zip(model.hierarchy_, levels, strict=True):
        np.testing.assert_array_equal(level["labels"], labels)
        assert level["divergence"] == pytest.approx(divergence)
    assert clustering_accuracy(levels[-1][0], model.labels_) == 1


@pytest.mark.parametrize("density", ["parzen", "knn"])
def test_as_many_landmarks_as_items_is_exact(points, density):
    X, _ = points
    exact = ITC(3, density=density, n_landmarks=None, random_state=0).fit(X)
    landmarks = ITC(3, density=density, n_landmarks=len(X), random_state=0).fit(X)
    np.testing.assert_array_equal(exact.labels_, landmarks.labels_)
    assert exact.divergence_ == landmarks.divergence_


@pytest.mark.parametrize(("density", "k"), DENSITIES)
def test_items_beyond_the_landmarks_follow_the_same_rule(points, density, k):
    X, _ = points
    model = ITC(
        3, density=density, n_neighbors=max(k, 1), n_landmarks=25, n_seeds=5, n_init=1, random_state=0
    ).fit(X)
    sample = model.landmarks_
    assert len(sample) == 25
    labels = np.full(40, -1)
    labels[sample] = model.hierarchy_[-1]["labels"]
    pairs = np.sort(np.sqrt(squared_distances(X[sample])[np.triu_indices(25, 1)]))
    sigma = 0.15 * pairs[(len(pairs) - 1) // 2]
    for item in np.setdiff1d(np.arange(40), sample):
        seen = np.append(sample, item)
        cuts = []
        for cluster in range(3):
            trial = np.append(labels[sample], cluster)
            cuts.append(naive_cut(naive_overlaps(X[seen], trial, density, k, sigma, to_place=True)))
        labels[item] = np.argmin(cuts)
    assert clustering_accuracy(labels, model.labels_) == 1


# What it should find


@pytest.mark.parametrize("n_landmarks", [None, 150])
def test_shapes(n_landmarks):
    for X, y in (
        make_moons(300, noise=0.05, random_state=0),
        make_circles(300, noise=0.04, factor=0.3, random_state=0),
    ):
        labels = ITC(2, n_init=2, n_landmarks=n_landmarks, random_state=0).fit_predict(X)
        assert clustering_accuracy(y, labels) > 0.99


def test_moons_with_parzen_windows():
    X, y = make_moons(300, noise=0.05, random_state=0)
    labels = ITC(2, density="parzen", n_init=2, random_state=0).fit_predict(X)
    assert clustering_accuracy(y, labels) > 0.98


def test_neighbours_bear_vastly_different_scales(rng):
    centres, scales = [[0, 0], [6, 0], [0, 1]], [0.01, 1, 0.1]
    X = np.concatenate(
        [rng.normal(c, s, (n, 2)) for c, s, n in zip(centres, scales, [60, 120, 60], strict=True)]
    )
    y = np.repeat([0, 1, 2], [60, 120, 60])
    knn = clustering_accuracy(y, ITC(3, n_init=2, random_state=0).fit_predict(X))
    parzen = clustering_accuracy(y, ITC(3, density="parzen", n_init=2, random_state=0).fit_predict(X))
    assert knn > 0.99
    assert knn > parzen


def test_many_dimensions_neither_overflow_nor_vanish(rng):
    X = rng.normal(size=(90, 3000)) + np.repeat(rng.normal(size=(3, 3000)), 30, axis=0)
    with np.errstate(over="raise", invalid="raise"):
        for density in ("knn", "parzen"):
            model = ITC(3, density=density, n_init=5, random_state=0).fit(X)
            assert np.isfinite(model.divergences_).all()
            assert clustering_accuracy(np.repeat([0, 1, 2], 30), model.labels_) == 1


# The estimator


def test_clusters_are_numbered_by_size(blobs):
    X, y = blobs
    X = np.r_[X[y == 2][:10], X[y == 0], X[y == 1][:30]]
    labels = ITC(3, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(np.bincount(labels), [50, 30, 10])


@pytest.mark.parametrize("n_landmarks", [None, 60])
def test_a_seed_decides(rng, n_landmarks):
    X = rng.normal(size=(120, 3))
    fit = lambda seed: ITC(4, n_init=1, n_landmarks=n_landmarks, random_state=seed).fit(X)  # noqa: E731
    np.testing.assert_array_equal(fit(3).labels_, fit(3).labels_)
    assert any((fit(seed).labels_ != fit(3).labels_).any() for seed in range(2))


@pytest.mark.parametrize("density", ["parzen", "knn"])
def test_units_do_not_matter(points, density):
    X, _ = points
    model = ITC(3, density=density, random_state=0)
    np.testing.assert_array_equal(model.fit(X).labels_, model.fit(X * 1024 + 512).labels_)


def test_the_largest_divergence_is_kept(rng):
    model = ITC(3, n_init=4, random_state=0).fit(rng.normal(size=(60, 2)))
    assert len(set(model.divergences_)) > 1
    assert model.divergence_ == model.divergences_.max() == model.hierarchy_[-1]["divergence"]


def test_votes(blobs):
    X, y = blobs
    model = ITC(3, n_init=3, n_vote=3, random_state=0).fit(X)
    assert clustering_accuracy(y, model.labels_) == 1


def test_sparse_is_dense(rng):
    # No two distances are equal, whose order would be a matter of rounding: only dense data is centred.
    X = rng.poisson(0.5, size=(60, 20)) * rng.uniform(1, 2, size=(60, 20))
    model = ITC(3, random_state=0, n_landmarks=40)
    dense = model.fit(X).labels_
    np.testing.assert_array_equal(model.fit(scipy.sparse.csr_array(X)).labels_, dense)
    np.testing.assert_array_equal(model.fit(scipy.sparse.csr_matrix(X)).labels_, dense)


def test_images_are_flattened(images):
    model = ITC(2, random_state=0).fit(images)
    assert clustering_accuracy(np.repeat([0, 1], 30), model.labels_) == 1
    assert model.n_features_in_ == 64


@pytest.mark.parametrize("density", ["parzen", "knn"])
def test_duplicates(rng, density):
    X = np.repeat(rng.normal(size=(12, 2)), 10, axis=0)
    model = ITC(3, density=density, random_state=0).fit(X)
    assert np.isfinite(model.divergences_).all()
    assert len(np.unique(model.labels_)) == 3


def test_rounding_is_no_distance(rng):
    assert least_distance(np.zeros((3, 3))) == 1.0
    X = np.repeat(rng.normal(size=(5, 4)), 2, axis=0)
    squared = squared_distances(X)
    assert least_distance(squared + 1e-14 * squared.max()) == pytest.approx(np.unique(squared)[1] / 4)


@pytest.mark.parametrize("n", [2, 3, 5, 7])
@pytest.mark.parametrize("density", ["parzen", "knn"])
def test_few_items(rng, n, density):
    labels = ITC(2, density=density, random_state=0).fit_predict(rng.normal(size=(n, 2)))
    assert len(np.unique(labels)) == 2


def test_one_cluster(points):
    X, _ = points
    model = ITC(1, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    assert model.divergence_ == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_init": 2, "n_vote": 3}, "n_vote=3 should be <= n_init=2"),
        ({"n_seeds": 2}, "n_seeds=2 should be >= n_clusters=3"),
        ({"n_neighbors": 3}, "n_neighbors=3 should be < seed_size=3"),
        ({"n_landmarks": 2}, "n_landmarks=2 should be >= n_clusters=3"),
        ({"density": "histogram"}, "density"),
        ({"n_clusters": 99}, r"n_clusters=99 is more than there are items \(n_samples=40\)"),
    ],
)
def test_errors_name_the_parameter(points, params, message):
    X, _ = points
    with pytest.raises(ValueError, match=message):
        ITC(**{"n_clusters": 3, **params}).fit(X)


def test_identical_items_are_refused():
    with pytest.raises(ValueError, match="identical"):
        ITC(2).fit(np.ones((10, 2)))


@pytest.mark.parametrize("density", ["knn", "parzen"])
def test_data_far_from_the_origin(blobs, density):
    X, y = blobs
    model = ITC(3, density=density, n_init=2, random_state=0)
    assert clustering_accuracy(y, model.fit(X + 1e9).labels_) == 1


def test_two_values_are_two_clusters():
    """Where all distinct points are equally far apart, copies are still closer."""
    X = np.repeat([[0.0], [1.0]], [27, 23], axis=0)
    labels = ITC(2, random_state=0).fit(X).labels_
    assert clustering_accuracy(X[:, 0].astype(int), labels) == 1
