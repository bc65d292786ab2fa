"""LDMGI: clustering by local discriminant models and global integration."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ddclust.baselines.spectral import given_or_found_neighbors, spectral_clusters
from ddclust.baselines.vectors import VectorClusterer
from ddclust.data.neighbors import Neighbors
from ddclust.data.validation import Interval, fit_context
from ddclust.progress import Bar

CHUNK_BYTES = 64 * 2**20


class LDMGI(VectorClusterer):
    """Local discriminant models and global integration (Yang, Xu, Nie, Yan and Zhuang, IEEE TIP 2010).

    Each item and its nearest neighbours form a clique of k items with centred columns X_i. A local discriminant model
    measures how badly the scaled indicator matrix G_i of the clique fits, by tr(G_i' L_i G_i) with
    L_i = H (X_i' X_i + lambda I)^-1 H and H = I - 11'/k. The sum over all cliques is tr(G' L G) with a sparse L.
    Relaxed to G'G = I, its minimum is at the eigenvectors of the n_clusters smallest eigenvalues of L. Spectral
    rotation turns them into labels.

    There is no ``predict``: only the items of the fit get labels.

    Parameters
    ----------
    n_clusters : int, default=8
    clique_size : int, default=5
        Number k of items in a clique, including the item itself. The paper has 5.
    reg_lambda : float, default=1.0
        Ridge penalty lambda, in units of squared distance. The paper tries 1e-8, 1e-6, ..., 1e8 and reports the best
        result; the default is the middle value.
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
        The eigenvectors.
    eigenvalues_ : ndarray of shape (n_clusters,)
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Number of values per item.
    feature_names_in_ : ndarray of str
        Only if ``X`` has string column names.

    Notes
    -----
    Departs from the paper: the rotation with the best objective of several is kept. The paper makes only one.

    Memory grows with n * k^2, in addition to the data.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> labels = LDMGI(2, clique_size=8, random_state=0).fit_predict(X)
    >>> bool((labels == y).mean() in (0, 1))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "clique_size": [Interval(Integral, 2, None, closed="left")],
        "reg_lambda": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        clique_size: int = 5,
        reg_lambda: float = 1.0,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.clique_size = clique_size
        self.reg_lambda = reg_lambda
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
            Result of :func:`ddclust.data.neighbors.nearest_neighbors` with at least ``clique_size - 1`` neighbours per
            item. Pass it to try several parameters without repeating the search.

        Returns
        -------
        self
        """
        X = self._vectors_to_cluster(X)
        if self.clique_size > X.shape[0]:
            raise ValueError(
                f"clique_size={self.clique_size} should be <= n_samples={X.shape[0]}; ask for smaller cliques."
            )
        rng = check_random_state(self.random_state)
        found = given_or_found_neighbors(X, self.clique_size - 1, neighbors, self.verbose)
        cliques = np.hstack([np.arange(X.shape[0])[:, None], found.indices])  # (n, k)
        L = global_matrix(X, cliques, self.reg_lambda, verbose=self.verbose)
        eigen, (self.labels_, _, _) = spectral_clusters(
            L, L, self.n_clusters, ceiling=_row_bound(L), n_init=self.n_init, rng=rng, verbose=self.verbose
        )
        self.eigenvalues_, self.embedding_ = eigen
        return self


def global_matrix(
    X: Any, cliques: NDArray[np.int64], reg_lambda: float, *, verbose: bool | int = False
) -> scipy.sparse.csr_array:
    """The sparse (n, n) sum of all local matrices, each placed at the rows and columns of its clique."""
    n, k = cliques.shape
    local = np.empty((n, k, k))
    step = max(CHUNK_BYTES // (8 * k * X.shape[1]), 1)
    with Bar(total=n, unit="clique", desc="local models", delay=2, disable=not verbose) as bar:
        for start in range(0, n, step):
            block = cliques[start : start + step]
            local[start : start + step] = local_matrices(_gathered(X, block), reg_lambda)
            bar.update(len(block))
    rows = np.repeat(cliques, k, axis=1).ravel()
    columns = np.tile(cliques, (1, k)).ravel()
    return scipy.sparse.coo_array((local.ravel(), (rows, columns)), shape=(n, n)).tocsr()


def _gathered(X: Any, block: NDArray[np.int64]) -> NDArray[np.float64]:
    """The items of some cliques as a dense array (m, k, d)."""
    items = X[block.ravel()]
    is_sparse: bool = scipy.sparse.issparse(items)
    dense = items.toarray() if is_sparse else items
    return dense.astype(np.float64, copy=False).reshape(*block.shape, -1)


def local_matrices(items: NDArray[np.float64], reg_lambda: float) -> NDArray[np.float64]:
    """L_i = H (X_i' X_i + lambda I)^-1 H of each clique, (m, k, k), from its items, (m, k, d)."""
    k = items.shape[1]
    centred = items - items.mean(axis=1, keepdims=True)
    gram = centred @ centred.transpose(0, 2, 1)
    # The vector of ones is an eigenvector of the Gram matrix with eigenvalue 0, and H removes it from the inverse.
    # Its eigenvalue is moved to the mean of the others, because 1 / lambda would drown their digits first.
    mean = np.trace(gram, axis1=1, axis2=2)[:, None, None] / k
    inverse = np.linalg.inv(gram + reg_lambda * np.eye(k) + mean / k)
    H = np.eye(k) - 1 / k
    return H @ inverse @ H


def _row_bound(L: scipy.sparse.csr_array) -> float:
    """An upper bound of the eigenvalues (Gershgorin): the largest sum of absolute values in a row."""
    return float(abs(L).sum(axis=1).max())
