"""Spectral clustering, shared by SEC and LDMGI: eigenvectors without an n x n array, and spectral rotation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, aslinearoperator, eigsh, lobpcg
from sklearn.exceptions import ConvergenceWarning

from ddclust.choosing.metrics import order_by_size
from ddclust.data.neighbors import Neighbors, nearest_neighbors
from ddclust.progress import Bar

DENSE_UP_TO = 1000  # items up to which the eigenvectors are computed from a dense n x n matrix
DENSE_AT_WORST = 5000  # items up to which they are if the iteration fails
MAX_RESTARTS = 1000  # of the Lanczos iteration; each takes at least 2 * n_vectors + 10 products
MAX_ROTATIONS = 100
ROTATION_TOL = 1e-8


class Eigenpairs(NamedTuple):
    """``values`` (m,), ascending, and ``vectors`` (n, m), orthonormal."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


class Rotation(NamedTuple):
    """``labels`` (n,), the orthogonal ``rotation`` (c, c), and the ``objective`` that was maximised."""

    labels: NDArray[np.int64]
    rotation: NDArray[np.float64]
    objective: float


def spectral_clusters(
    M: Any,
    graph: Any,
    n_clusters: int,
    *,
    ceiling: float,
    tol: float = 1e-9,
    n_init: int,
    rng: np.random.RandomState,
    verbose: bool | int,
) -> tuple[Eigenpairs, Rotation]:
    """Clusters by the rotated eigenvectors of M's smallest eigenvalues; warns if they are not to be trusted.

    ``graph`` is the neighbour graph behind M. Its components tell whether eigenvalues repeat. The other parameters are
    those of :func:`smallest_eigenvectors` and :func:`spectral_rotation`.
    """
    n_components, _ = connected_components(graph, directed=False)
    if n_components > n_clusters:
        warn(
            f"The neighbour graph falls apart into {n_components} components, more than the n_clusters={n_clusters}"
            " asked for; which of them share a cluster is arbitrary. Ask for more neighbours, or remove copies and"
            " outliers from X."
        )
    eigen = smallest_eigenvectors(
        M, n_clusters, ceiling=ceiling, rng=rng, tol=tol, may_repeat=n_components > 1, verbose=verbose
    )
    rotation = spectral_rotation(eigen.vectors, rng, n_init)
    used = len(np.unique(rotation.labels))
    if used < n_clusters:
        warn(
            f"The clustering uses {used} of the {n_clusters} clusters asked for; a smaller n_clusters may help."
        )
    return eigen, rotation


def smallest_eigenvectors(
    M: Any,
    n_vectors: int,
    *,
    ceiling: float,
    rng: np.random.RandomState,
    tol: float = 1e-9,
    may_repeat: bool = False,
    verbose: bool | int = False,
) -> Eigenpairs:
    """The eigenvectors of the smallest eigenvalues of a symmetric matrix or LinearOperator M.

    Up to ``DENSE_UP_TO`` items they are computed from a dense matrix. Beyond that, the Lanczos iteration finds the
    largest eigenvalues of ceiling * I - M. On the graphs of 70,000 digits it took at most a fifth of the time of LOBPCG
    and was more precise. Shift-and-invert is not an option: the factors of a neighbour graph of high-dimensional data
    are almost dense. If the iteration fails, the dense matrix is used up to ``DENSE_AT_WORST`` items.

    ``ceiling`` is an upper bound of the eigenvalues, ``tol`` is the residual in its units, and ``rng`` gives the start.
    ``may_repeat`` says that eigenvalues may coincide, as they do for a graph with several components. Lanczos may then
    find only one vector of each and has to be asked for more.

    Examples
    --------
    >>> M = np.diag([3.0, 1.0, 2.0])
    >>> smallest_eigenvectors(M, 2, ceiling=3, rng=np.random.RandomState(0)).values
    array([1., 2.])
    """
    n = M.shape[0]
    if n <= max(DENSE_UP_TO, 2 * n_vectors + 1):
        return _from_dense(aslinearoperator(M), 0, n_vectors)
    with Bar(unit="product", desc="finding eigenvectors", delay=2, disable=not verbose) as bar:

        def largest(known: NDArray) -> Eigenpairs:
            return _lanczos(_flipped(aslinearoperator(M), ceiling, known, bar.update), n_vectors, rng, tol)

        found = largest(np.empty((n, 0)))
        n_new = n_vectors if may_repeat else 0
        while n_new > 0:
            more = largest(found.vectors)
            n_new = int((more.values > found.values[-1] + ceiling * max(tol, 1e-12)).sum())
            if n_new > 0:
                found = _merged(found, more)
    return Eigenpairs(ceiling - found.values, found.vectors)


def _from_dense(operator: LinearOperator, start: int, stop: int) -> Eigenpairs:
    """The eigenpairs at these positions, in ascending order, from the operator as a dense matrix."""
    dense = operator @ np.eye(operator.shape[0])
    return Eigenpairs(*scipy.linalg.eigh((dense + dense.T) / 2, subset_by_index=[start, stop - 1]))


def _merged(found: Eigenpairs, more: Eigenpairs) -> Eigenpairs:
    """The largest pairs of both, as many as there are of each; among equal ones, those found first."""
    values = np.concatenate([found.values, more.values])
    best = np.argsort(-values, kind="stable")[: len(found.values)]
    return Eigenpairs(values[best], np.hstack([found.vectors, more.vectors])[:, best])


def _flipped(
    M: LinearOperator, ceiling: float, known: NDArray, report: Callable[[], object]
) -> LinearOperator:
    """The operator ceiling * I - M on the complement of the known vectors, and zero on these."""

    def product(V: NDArray) -> NDArray:
        report()
        V = V.reshape(len(V), -1)
        V = V - known @ (known.T @ V)
        result = ceiling * V - M.matmat(V)
        return result - known @ (known.T @ result)

    return LinearOperator(M.shape, matvec=product, matmat=product, dtype=np.float64)


def _lanczos(operator: LinearOperator, n_vectors: int, rng: np.random.RandomState, tol: float) -> Eigenpairs:
    """The largest eigenvalues, in descending order, and their vectors; warns if they did not converge."""
    n = operator.shape[0]
    start = operator.matvec(rng.standard_normal(n))
    n_basis = min(n, max(2 * n_vectors + 10, 30))
    try:
        values, vectors = eigsh(
            operator, n_vectors, which="LA", v0=start, ncv=n_basis, tol=tol, maxiter=MAX_RESTARTS
        )
    except ArpackNoConvergence as error:
        if n <= DENSE_AT_WORST:
            values, vectors = _from_dense(operator, n - n_vectors, n)
        else:
            values, vectors = _improved(operator, error.eigenvectors, n_vectors, rng)
    order = np.argsort(-values, kind="stable")
    return Eigenpairs(values[order], vectors[:, order])


def _improved(
    operator: LinearOperator, found: NDArray, n_vectors: int, rng: np.random.RandomState
) -> tuple[NDArray, NDArray]:
    """Approximate largest eigenpairs by a block method that starts from what Lanczos found; warns."""
    n = operator.shape[0]
    start = np.hstack([found, rng.standard_normal((n, n_vectors - found.shape[1]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it reports its residuals; our own warning follows
        values, vectors = lobpcg(operator, start, largest=True, maxiter=200, tol=1e-6 * n**0.5)[:2]
    warn(
        f"Only {found.shape[1]} of {n_vectors} eigenvectors converged; the others are approximations. The graph may"
        " be almost disconnected, or its weights of very different size: more neighbours or another regularisation"
        " may help.",
        stacklevel=9,
    )
    return values, vectors


def spectral_rotation(vectors: NDArray, rng: np.random.RandomState, n_init: int = 1) -> Rotation:
    """Labels from eigenvectors by rotating them towards an indicator matrix (Yu and Shi, ICCV 2003).

    Rows are scaled to length one. Then two steps alternate: the label of a row becomes its largest entry after the
    rotation, and the rotation becomes the orthogonal one that fits the labels best (by a singular value decomposition).
    Each of ``n_init`` attempts starts from a random row and from rows as orthogonal as possible to those before. The
    best fit is kept. Clusters, and the columns of the rotation, are ordered by size.

    Examples
    --------
    >>> indicator = np.eye(2)[[0, 1, 0]]
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> spectral_rotation(indicator @ turn, np.random.RandomState(0)).labels
    array([0, 1, 0])
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.where(lengths > 0, lengths, 1)  # (n, c)
    attempts = [_rotated(rows, _orthogonal_rows(rows, rng.randint(len(rows)))) for _ in range(n_init)]
    labels, rotation, objective = max(attempts, key=lambda attempt: attempt.objective)
    order = order_by_size(labels, rows.shape[1])
    return Rotation(np.argsort(order)[labels], rotation[:, order], objective)


def _orthogonal_rows(rows: NDArray, first: int) -> NDArray:
    """A first rotation: a given row, then repeatedly the row least aligned with those already chosen."""
    n_clusters = rows.shape[1]
    chosen = np.empty((n_clusters, n_clusters))
    chosen[:, 0] = rows[first]
    alignment = np.zeros(len(rows))
    for cluster in range(1, n_clusters):
        alignment += np.abs(rows @ chosen[:, cluster - 1])
        chosen[:, cluster] = rows[np.argmin(alignment)]
    return chosen


def _rotated(rows: NDArray, rotation: NDArray) -> Rotation:
    """Alternate between labels and rotation until the fit, the sum of singular values, stops improving."""
    n_clusters = rows.shape[1]
    objective = 0.0
    for _ in range(MAX_ROTATIONS):
        labels = np.argmax(rows @ rotation, axis=1)
        sums = np.zeros((n_clusters, n_clusters))  # indicator' @ rows
        np.add.at(sums, labels, rows)
        U, singular, Vt = np.linalg.svd(sums)
        before, objective = objective, float(singular.sum())
        rotation = (U @ Vt).T
        if objective - before <= ROTATION_TOL * objective:
            break
    return Rotation(labels, rotation, objective)


def given_or_found_neighbors(
    X: Any, n_neighbors: int, given: Neighbors | None, verbose: bool | int
) -> Neighbors:
    """The first ``n_neighbors`` of the given neighbours, or the result of a search if there are none."""
    if given is None:
        return nearest_neighbors(X, n_neighbors, verbose=verbose)
    indices, distances = given
    n, k = indices.shape
    if n != X.shape[0] or k < n_neighbors:
        raise ValueError(
            f"neighbors holds {k} neighbours of {n} items, but {n_neighbors} of {X.shape[0]} are needed; compute them by"
            f" nearest_neighbors(X, {n_neighbors})."
        )
    return Neighbors(indices[:, :n_neighbors], distances[:, :n_neighbors])


def warn(message: str, stacklevel: int = 5) -> None:
    """Issue a ConvergenceWarning that points to the caller of ``fit``."""
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
