"""The estimator: clusterings of landmarks from several seeds, and labels of all items from the best ones."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state

from ddclust.baselines.itc.densities import UNLABELLED, Clusters, Density
from ddclust.baselines.itc.hierarchy import Level, clusters_to_join, reduce_clusters
from ddclust.baselines.itc.knn import NeighborDensity, least_distance
from ddclust.baselines.itc.log_sums import Floats, Ints
from ddclust.baselines.itc.parzen import ParzenDensity
from ddclust.baselines.itc.seeds import seeded_labels
from ddclust.baselines.vectors import VectorClusterer
from ddclust.choosing.consensus import majority_vote
from ddclust.choosing.metrics import order_by_size
from ddclust.data.neighbors import centred
from ddclust.data.validation import Interval, StrOptions, fit_context
from ddclust.objective.kernels import median_bandwidth
from ddclust.progress import Bar

BLOCK = 1024  # items whose distances to all landmarks are in memory at once


class _Run(NamedTuple):
    """One clustering of the landmarks."""

    clusters: Clusters
    levels: list[Level]

    @property
    def divergence(self) -> float:
        return self.levels[-1].divergence


class ITC(VectorClusterer):
    """Information theoretic clustering (Vikjord and Jenssen, Pattern Recognition 47(9):3070-3081, 2014).

    The method starts from many small clusters, each seeded among neighbours. The other points are placed one by
    one, the point nearest to any labelled point first. Each joins the cluster for which the clusters end up
    farthest apart. Then the worst cluster is dissolved, which is the one without which the others are farthest
    apart, and its points join other clusters by the same rule. This is repeated until ``n_clusters`` are left.
    How far clusters are apart is measured by the Cauchy-Schwarz divergence ::

        -log mean over pairs i < j of  M_ij / sqrt(M_ii M_jj),    M_ij = integral of p_i p_j,

    with the clusters' densities p estimated in one of two ways. With Parzen windows, M_ij is the mean of the
    Gaussian of variance 2 sigma^2 over all pairs of a point of i and one of j; -log M_ii is Renyi's quadratic
    entropy. With nearest neighbours, M_ij is the mean over the points of i of 1 / V^alpha, where V is the volume of
    the ball around the point that reaches its k-th neighbour in j, averaged over both directions. Between clusters
    k is small. Within a cluster the ball holds the whole cluster when points are placed.

    Up to ``n_landmarks`` items this takes O(n^2) memory and O(n^2 n_seeds) time. Beyond that, only a random sample
    of that size is clustered, and each other item joins a cluster by the same rule, on its own. Time and memory
    then grow linearly with the number of items, and no n x n array is built.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters at the end.
    density : {"knn", "parzen"}, default="knn"
        Estimate of the clusters' densities.
    n_neighbors : int, default=1
        For ``"knn"``: k between clusters, and within them when the worst one is determined. Must be less than
        ``seed_size``.
    alpha : float, default=1.0
        For ``"knn"``: power of the volume. The volume itself is the distance to the power of the number of
        features, so with hundreds of features the closest pair outweighs all others. A small alpha tempers that.
    bandwidth : float, default=0.15
        For ``"parzen"``: sigma as a fraction of the median pairwise distance of the landmarks.
    n_seeds : int or "auto", default="auto"
        Number of clusters at the start; ``"auto"`` is ten more than at the end. Smaller if there are too few items.
    seed_size : int, default=3
        Number of points per seed. Smaller if there are too few items.
    n_init : int, default=4
        Number of clusterings from different seeds. The one with the largest divergence is kept.
    n_vote : int, default=1
        Number of clusterings that vote on each item: those with the largest divergence. They are aligned to the
        best one, which also decides ties.
    n_landmarks : int or None, default=3000
        Number of items up to which the method is exact; see above. If None, it is always exact.
    random_state : int, RandomState instance or None, default=None
        Determines the seeds and the landmarks. Pass an int for reproducible labels.
    verbose : bool or int, default=False
        Show a progress bar for steps that take more than two seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    divergence_ : float
        Divergence of the clusters of the landmarks. Only comparable for the same data, density,
        ``n_neighbors``, ``alpha`` and ``bandwidth``.
    divergences_ : ndarray of shape (n_init,)
        Divergence of every clustering.
    hierarchy_ : list of dict
        The levels of the clustering that was kept, from ``n_seeds`` clusters down: ``n_clusters``,
        ``divergence``, ``labels`` of the landmarks (renumbered at every level) and ``dissolved``, the
        cluster that is dissolved for the next level (None at the last).
    landmarks_ : ndarray of shape (min(n_samples, n_landmarks),)
        Indices of the items from which the hierarchy was built.
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Number of values per item.
    feature_names_in_ : ndarray of str
        Only if ``X`` has string column names.

    Notes
    -----
    The full text of the article was not available. The seeds, the order, the rule, the worst cluster and the two
    values of k follow the authors' public MATLAB class ``ITCDataHandler`` and the abstracts of two earlier papers
    (Jenssen et al., "Clustering using Renyi's entropy", IJCNN 2003; Vikjord and Jenssen, MLSP 2013). The defaults
    ``n_neighbors=1``, ``alpha=1``, ``seed_size=3`` and 12 seeds for two clusters are those of its tutorial. None
    was chosen with labels.

    Departs from the paper, or from that class:

    - Parzen windows use the same rule as neighbours, because the class has no other one. Jenssen's own code of the
      Cauchy-Schwarz form (NORSIG 2003) does so too, but takes one ratio of all clusters instead of a sum over
      pairs. IJCNN 2003 places a point where it raises the within-cluster entropy the least.
    - The bandwidth is 15 % of the median distance, the rule of thumb of the DDC paper, because none is published.
    - Overlaps are stored as logs, because a volume in 784 dimensions overflows floating-point numbers. Factors that
      cancel (sizes, the volume of the unit ball) are left out.
    - Coinciding points count as half as far apart as the closest distinct points, because the class leaves them
      out or divides by zero.
    - ``divergence_`` is the quantity that determines the worst cluster, because decisions are based on it. The
      class reports another one with mean volumes.
    - The vote is over seeds, because details of the article's ensemble were not available.
    - Large data are clustered by landmarks, because the authors' code cannot cluster them at all.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> model = ITC(n_clusters=2, n_init=1, random_state=0).fit(X)
    >>> np.bincount(model.labels_)
    array([100, 100])
    >>> [level["n_clusters"] for level in model.hierarchy_]
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "density": [StrOptions({"knn", "parzen"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
        "n_seeds": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "seed_size": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_vote": [Interval(Integral, 1, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        density: str = "knn",
        n_neighbors: int = 1,
        alpha: float = 1.0,
        bandwidth: float = 0.15,
        n_seeds: int | str = "auto",
        seed_size: int = 3,
        n_init: int = 4,
        n_vote: int = 1,
        n_landmarks: int | None = 3000,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.density = density
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.n_seeds = n_seeds
        self.seed_size = seed_size
        self.n_init = n_init
        self.n_vote = n_vote
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or images
            Images are flattened. Multiplying all values by a constant does not change the labels.
        y : Ignored

        Returns
        -------
        self
        """
        X = centred(self._vectors_to_cluster(X))
        self._check_parameters_agree()
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self.n_init)
        n = X.shape[0]
        landmarks = np.arange(n)
        if self.n_landmarks is not None and n > self.n_landmarks:
            landmarks = np.sort(rng.choice(n, self.n_landmarks, replace=False))
        sample = X[landmarks]
        squared = _squared_distances(sample, sample)
        density = self._density(squared)
        logs = density.logs(squared)  # shared by all runs; none of them changes it
        runs = [self._run(squared, logs, density, seed) for seed in seeds.tolist()]
        best_first = sorted(runs, key=lambda run: -run.divergence)
        votes = self._labels_of_all(
            X, landmarks, density, [run.clusters for run in best_first[: self.n_vote]]
        )
        self.labels_ = _numbered_by_size(majority_vote(votes), self.n_clusters)
        self.landmarks_ = landmarks
        self.divergence_ = best_first[0].divergence
        self.divergences_ = np.array([run.divergence for run in runs])
        self.hierarchy_ = [
            {"n_clusters": int(level.labels.max()) + 1, **level._asdict()} for level in best_first[0].levels
        ]
        return self

    def _check_parameters_agree(self) -> None:
        if self.n_vote > self.n_init:
            raise ValueError(
                f"n_vote={self.n_vote} should be <= n_init={self.n_init}: there are only that many clusterings to vote."
            )
        if not isinstance(self.n_seeds, str) and self.n_seeds < self.n_clusters:
            raise ValueError(
                f"n_seeds={self.n_seeds} should be >= n_clusters={self.n_clusters}: clusters are only dissolved,"
                " never split; ask for more seeds."
            )
        if self.n_landmarks is not None and self.n_landmarks < self.n_clusters:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} should be >= n_clusters={self.n_clusters}: every cluster needs"
                " at least one landmark; ask for more."
            )
        if self.density == "knn" and self.n_neighbors >= self.seed_size:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} should be < seed_size={self.seed_size}, so that every point of a"
                " seed has that many neighbours in it; ask for larger seeds or fewer neighbours."
            )

    def _seed_shape(self, n: int) -> tuple[int, int]:
        """Number and size of the seeds: as requested, or as many as n points allow."""
        size = max(1, min(self.seed_size, n // self.n_clusters))
        wanted = self.n_clusters + 10 if self.n_seeds == "auto" else int(self.n_seeds)
        return min(wanted, n // size), size

    def _density(self, squared: Floats) -> Density:
        if self.density == "parzen":
            return ParzenDensity(float(median_bandwidth(torch.from_numpy(squared), self.bandwidth, "median")))
        _, seed_size = self._seed_shape(len(squared))
        n_neighbors = min(self.n_neighbors, max(1, seed_size - 1))
        return NeighborDensity(least_distance(squared), n_neighbors, self.alpha * self.n_features_in_)

    def _run(self, squared: Floats, logs: Floats, density: Density, seed: int) -> _Run:
        """One clustering of the landmarks, from random seeds."""
        labels = seeded_labels(squared, *self._seed_shape(len(squared)), np.random.RandomState(seed))
        clusters = density.clusters(logs, labels)
        with Bar(unit="item", desc="placing", delay=2, disable=not self.verbose) as bar:
            return _Run(clusters, reduce_clusters(clusters, squared, self.n_clusters, bar))

    def _labels_of_all(self, X: Any, landmarks: Ints, density: Density, voters: list[Clusters]) -> list[Ints]:
        """For each clustering the labels of all items: landmarks keep theirs, each other item joins a cluster."""
        votes = [np.full(X.shape[0], UNLABELLED) for _ in voters]
        for vote, clusters in zip(votes, voters, strict=True):
            vote[landmarks] = clusters.labels
        sample = X[landmarks]
        others = np.setdiff1d(np.arange(X.shape[0]), landmarks, assume_unique=True)
        with Bar(total=len(others), unit="item", desc="assigning", delay=2, disable=not self.verbose) as bar:
            for start in range(0, len(others), BLOCK):
                block = others[start : start + BLOCK]
                rows = density.logs(_squared_distances(X[block], sample))
                for vote, clusters in zip(votes, voters, strict=True):
                    vote[block] = clusters_to_join(clusters, rows)
                bar.update(len(block))
        return votes


def _squared_distances(X: Any, Y: Any) -> Floats:
    """Squared Euclidean distances between rows, sparse or dense. Centre dense rows first, to lose no digits."""
    squared = euclidean_distances(X, Y, squared=True).astype(np.float64, copy=False)
    return np.maximum(squared, 0.0, out=squared)


def _numbered_by_size(labels: Ints, n_clusters: int) -> Ints:
    """The labels, renumbered so that the largest cluster is 0."""
    return np.argsort(order_by_size(labels, n_clusters))[labels]
