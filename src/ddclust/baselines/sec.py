"""SEC: spectral embedded clustering."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ddclust.baselines.spectral import given_or_found_neighbors, spectral_clusters
from ddclust.baselines.vectors import VectorClusterer
from ddclust.data.items import SparseItems, blocks
from ddclust.data.neighbors import Neighbors
from ddclust.data.validation import Interval, check_vectors, fit_context

MAX_SQUARE = 20_000  # rows of the largest dense square matrix: 3.2 GB
LEAST_WEIGHT = 1e-6


class SEC(VectorClusterer):
    """Spectral embedded clustering (Nie, Zeng, Tsang, Xu and Zhang, IEEE Trans. Neural Networks 2011).

    Spectral clustering whose embedding F is pulled towards a linear function of the data. It minimises, over
    F'F = I, W and b,

        tr(F' L F) + mu (||X W + 1 b' - F||^2 + gamma ||W||^2),

    where L is the normalised Laplacian of the graph of nearest neighbours. With X centred, the best W is
    (X'X + gamma I)^-1 X'F and the best b is the mean of F. So F consists of the eigenvectors of the n_clusters
    smallest eigenvalues of L + mu (H - X (X'X + gamma I)^-1 X') with H = I - 11'/n. Spectral rotation turns F into
    labels. W and b predict the labels of new items.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=5
        Number of neighbours of each item in the graph. Two items are joined if one is a neighbour of the other.
    mu : float, default=1.0
        Weight of the linear function relative to the graph. 0 is spectral clustering on the graph alone; for large
        values, F approaches the leading principal components. Tune it over powers of ten.
    gamma : float, default=1.0
        Ridge penalty, in units of the squared data summed over all items.
    n_init : int, default=10
        Number of random starts of the spectral rotation; the best one is kept.
    random_state : int, RandomState instance or None, default=None
        Determines the start of the eigenvector iteration and of the rotations.
    verbose : bool or int, default=False
        Show a progress bar for steps that take more than two seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, before the rotation.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Their sum is the minimum of the objective.
    coef_ : ndarray of shape (n_features, n_clusters)
        W, rotated: one column per cluster.
    intercept_ : ndarray of shape (n_clusters,)
        b, rotated, for data that are not centred.
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Number of values per item.
    feature_names_in_ : ndarray of str
        Only if ``X`` has string column names.

    Notes
    -----
    Departs from the paper: the rotation with the best objective of several is kept. The weight of an edge is
    exp(-d_ij^2 / (s_i s_j)), where s_i is the distance to the item's last neighbour (the self-tuning of Zelnik-Manor
    and Perona, 2004, who take the seventh neighbour). Weights are at least 1e-6, so that rounding cuts off no item.
    If an item has so many copies that s_i would be 0, it takes the median of the others.

    ``predict`` uses the linear function alone, so on the training data it may differ from ``labels_``.

    Memory grows with n * n_neighbors, in addition to the data in float64 and a square matrix whose side is the
    smaller of n_samples and n_features. A large ``mu`` (1e3 or more) makes the eigenvectors slow to find.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    >>> model = SEC(3, random_state=0).fit(X)
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "mu": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 5,
        mu: float = 1.0,
        gamma: float = 1.0,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.gamma = gamma
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None, *, neighbors: Neighbors | None = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : data of shape (n, d), or images, which are flattened
            An array, a sparse matrix, or anything else that :class:`ddclust.DDC` takes except texts.
        y : Ignored
        neighbors : Neighbors, optional
            Result of :func:`ddclust.data.neighbors.nearest_neighbors` with at least ``n_neighbors`` neighbours per item.
            Pass it to try several parameters without repeating the search.

        Returns
        -------
        self
        """
        X = self._vectors_to_cluster(X)
        rng = check_random_state(self.random_state)
        found = given_or_found_neighbors(X, self.n_neighbors, neighbors, self.verbose)
        S = normalised_affinity(found)
        centred = CentredData(X)
        ridge = ridge_regression(centred, self.gamma)
        eigen, (self.labels_, rotation, _) = spectral_clusters(
            embedding_operator(S, ridge, self.mu),
            S,
            self.n_clusters,
            ceiling=2 + self.mu,
            tol=1e-9 / (1 + self.mu),  # so that the graph counts even beside a large mu
            n_init=self.n_init,
            rng=rng,
            verbose=self.verbose,
        )
        F = eigen.vectors
        self.coef_ = ridge.weights(F) @ rotation
        self.intercept_ = F.mean(axis=0) @ rotation - centred.mean @ self.coef_
        self.eigenvalues_, self.embedding_ = eigen
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each item by the linear function: the largest entry of ``X @ coef_ + intercept_``."""
        check_is_fitted(self, "coef_")
        X = check_vectors(self, X, reset=False)
        items = SparseItems(X) if scipy.sparse.issparse(X) else X
        labels = [np.argmax(block @ self.coef_ + self.intercept_, axis=1) for block in blocks(items)]
        return np.concatenate(labels)


def normalised_affinity(neighbors: Neighbors) -> scipy.sparse.csr_array:
    """The symmetric graph with self-tuned Gaussian weights, each divided by the roots of both degrees."""
    indices, distances = neighbors
    n, k = indices.shape
    scales = distances[:, -1].copy()
    is_zero = scales == 0
    scales[is_zero] = np.median(scales[~is_zero]) if not is_zero.all() else 1.0
    weights = np.exp(-(distances / scales[:, None]) * (distances / scales[indices]))
    edges = (np.maximum(weights, LEAST_WEIGHT).ravel(), (np.repeat(np.arange(n), k), indices.ravel()))
    A = scipy.sparse.coo_array(edges, shape=(n, n)).tocsr()
    A = A.maximum(A.T)
    roots = scipy.sparse.diags_array(1 / np.sqrt(A.sum(axis=1)))
    return (roots @ A @ roots).tocsr()


class CentredData:
    """X minus its mean, known by its products in float64; sparse data stay sparse."""

    def __init__(self, X: Any) -> None:
        self.shape = X.shape
        self.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        self._is_sparse: bool = scipy.sparse.issparse(X)
        if self._is_sparse:
            self._data, self._offset = X.astype(np.float64), self.mean
        else:
            self._data, self._offset = X - self.mean, np.zeros_like(self.mean)

    def times(self, V: NDArray) -> NDArray:
        """X @ V."""
        return self._data @ V - self._offset @ V

    def transposed_times(self, V: NDArray) -> NDArray:
        """X.T @ V."""
        return self._data.T @ V - np.multiply.outer(self._offset, V.sum(axis=0))

    def gram(self) -> NDArray[np.float64]:
        """X.T @ X or X @ X.T, whichever is smaller."""
        data, offset = self._data, self._offset
        n, d = self.shape
        product = data.T @ data if d <= n else data @ data.T
        gram = product.toarray() if self._is_sparse else product
        if d <= n:
            return gram - n * np.multiply.outer(offset, offset)
        cross = data @ offset
        return gram - cross[:, None] - cross[None, :] + offset @ offset


class Ridge(NamedTuple):
    """Ridge regression on X: ``weights(F)`` = (X'X + gamma I)^-1 X'F, ``residual(F)`` = H F - X weights(F)."""

    weights: Callable[[NDArray], NDArray]
    residual: Callable[[NDArray], NDArray]


def ridge_regression(X: CentredData, gamma: float) -> Ridge:
    """Ridge regression by one Cholesky factor of the smaller Gram matrix."""
    n, d = X.shape
    if min(n, d) > MAX_SQUARE:
        raise ValueError(
            f"SEC needs a dense matrix of n_features x n_features or n_samples x n_samples, but X has {d:,} features and"
            f" {n:,} samples, both more than {MAX_SQUARE:,}; reduce the features first, such as by TruncatedSVD."
        )
    gram = X.gram()
    gram[np.diag_indices_from(gram)] += gamma
    try:
        factor = scipy.linalg.cho_factor(gram, overwrite_a=True)
    except scipy.linalg.LinAlgError as error:
        raise ValueError(
            f"gamma={gamma} vanishes beside the values of X in floating-point arithmetic; use a larger one."
        ) from error

    def solved(F: NDArray) -> NDArray:
        return scipy.linalg.cho_solve(factor, F)

    if d <= n:
        return Ridge(
            weights=lambda F: solved(X.transposed_times(F)),
            residual=lambda F: F - F.mean(axis=0) - X.times(solved(X.transposed_times(F))),
        )
    return Ridge(
        weights=lambda F: X.transposed_times(solved(F)),
        # The same as above without two products by X: I - XX' (XX' + gamma I)^-1 = gamma (XX' + gamma I)^-1.
        residual=lambda F: gamma * solved(F) - F.mean(axis=0),
    )


def embedding_operator(S: scipy.sparse.csr_array, ridge: Ridge, mu: float) -> LinearOperator:
    """L + mu (H - X (X'X + gamma I)^-1 X') for L = I - S, as a linear operator."""

    def product(V: NDArray) -> NDArray:
        graph = V - S @ V
        return graph + mu * ridge.residual(V) if mu > 0 else graph

    return LinearOperator(S.shape, matvec=product, matmat=product, dtype=np.float64)
