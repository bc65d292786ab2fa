"""What the spectral methods share: eigenvectors without an n x n array, spectral rotation, warnings."""

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
from tqdm import tqdm

from ddclust.choosing.metrics import order_by_size
from ddclust.data.neighbors import Neighbors, nearest_neighbors

DENSE_UP_TO = 1000  # items; up to here the eigenvectors are computed from a dense n x n matrix
DENSE_AT_WORST = 5000  # items; up to here they are when the iteration fails
MAX_RESTARTS = 1000  # of the Lanczos iteration, of 2 * n_vectors + 10 products or more each
MAX_ROTATIONS = 100
ROTATION_TOL = 1e-8


class Eigenpairs(NamedTuple):
    """``values`` (m,), ascending, and ``vectors`` (n, m), orthonormal."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


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

    Up to ``DENSE_UP_TO`` items from a dense matrix; beyond by the Lanczos iteration for the largest ones of
    ceiling * I - M. On the graphs of 70,000 digits that took a fifth of the time of LOBPCG or less, to more digits.
    Shift-and-invert is out of the question there: the factors of a neighbour graph of high-dimensional data are
    all but dense. Where the iteration fails, up to ``DENSE_AT_WORST`` items the dense matrix helps out.

    ``ceiling`` is an upper bound of the eigenvalues, ``tol`` the residual in its units, ``rng`` gives the start.
    ``may_repeat`` says that eigenvalues may coincide, as those of a graph of several components do: Lanczos may
    find one vector of each and has to be asked for more.

    Examples
    --------
    >>> M = np.diag([3.0, 1.0, 2.0])
    >>> smallest_eigenvectors(M, 2, ceiling=3, rng=np.random.RandomState(0)).values
    array([1., 2.])
    """
    n = M.shape[0]
    if n <= max(DENSE_UP_TO, 2 * n_vectors + 1):
        return _from_dense(aslinearoperator(M), 0, n_vectors)
    with tqdm(unit="product", desc="finding eigenvectors", delay=2, disable=not verbose) as bar:

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
    """The eigenpairs of these positions, ascending, from the operator as a dense matrix."""
    dense = operator @ np.eye(operator.shape[0])
    return Eigenpairs(*scipy.linalg.eigh((dense + dense.T) / 2, subset_by_index=[start, stop - 1]))


def _merged(found: Eigenpairs, more: Eigenpairs) -> Eigenpairs:
    """The largest ones of both, as many as there are of each; of equals those found first."""
    values = np.concatenate([found.values, more.values])
    best = np.argsort(-values, kind="stable")[: len(found.values)]
    return Eigenpairs(values[best], np.hstack([found.vectors, more.vectors])[:, best])


def _flipped(
    M: LinearOperator, ceiling: float, known: NDArray, report: Callable[[], object]
) -> LinearOperator:
    """The operator ceiling * I - M on what is orthogonal to the known vectors, zero on these."""

    def product(V: NDArray) -> NDArray:
        report()
        V = V.reshape(len(V), -1)
        V = V - known @ (known.T @ V)
        result = ceiling * V - M.matmat(V)
        return result - known @ (known.T @ result)

    return LinearOperator(M.shape, matvec=product, matmat=product, dtype=np.float64)


def _lanczos(operator: LinearOperator, n_vectors: int, rng: np.random.RandomState, tol: float) -> Eigenpairs:
    """The largest eigenvalues, descending, and their vectors; a warning if they did not converge."""
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
    """The largest eigenpairs as well as a block method gets from what Lanczos has found, with a warning."""
    n = operator.shape[0]
    start = np.hstack([found, rng.standard_normal((n, n_vectors - found.shape[1]))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own report of the residuals; ours follows
        values, vectors = lobpcg(operator, start, largest=True, maxiter=200, tol=1e-6 * n**0.5)[:2]
    warn(
        f"Only {found.shape[1]} of {n_vectors} eigenvectors converged; the clustering rests on approximations. The"
        " graph may be almost disconnected, or its weights of very different size: more neighbours or another"
        " regularisation may help.",
        stacklevel=9,
    )
    return values, vectors


class Rotation(NamedTuple):
    """``labels`` (n,), the orthogonal ``rotation`` (c, c), and the ``objective`` that was maximised."""

    labels: NDArray[np.int64]
    rotation: NDArray[np.float64]
    objective: float


def spectral_rotation(vectors: NDArray, rng: np.random.RandomState, n_init: int = 1) -> Rotation:
    """Labels from eigenvectors by rotating them towards an indicator matrix (Yu and Shi, ICCV 2003).

    Rows are scaled to length one. Then the labels (largest entry of each rotated row) and the orthogonal rotation
    that fits them best (by a singular value decomposition) take turns. Each of ``n_init`` attempts starts from a
    random row and rows as orthogonal as possible to the ones before; the best fit is kept. Clusters are numbered
    by size, and the columns of the rotation with them.

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
    """A first rotation: a row, and again and again the one least aligned with those chosen already."""
    n_clusters = rows.shape[1]
    chosen = np.empty((n_clusters, n_clusters))
    chosen[:, 0] = rows[first]
    alignment = np.zeros(len(rows))
    for cluster in range(1, n_clusters):
        alignment += np.abs(rows @ chosen[:, cluster - 1])
        chosen[:, cluster] = rows[np.argmin(alignment)]
    return chosen


def _rotated(rows: NDArray, rotation: NDArray) -> Rotation:
    """Alternate between labels and rotation until the fit, the sum of singular values, stands still."""
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
    """The first ``n_neighbors`` of the neighbours that the caller has given, or else those found now."""
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


def checked_components(graph: Any, n_clusters: int) -> int:
    """The number of pieces of the graph, with a warning if there are more than clusters: then chance decides."""
    n_components, _ = connected_components(graph, directed=False)
    if n_components > n_clusters:
        warn(
            f"The neighbour graph falls apart into {n_components} components, more than the n_clusters={n_clusters}"
            " asked for; which ones are put together is a matter of chance. Ask for more neighbours, or remove copies"
            " and outliers from X."
        )
    return n_components


def warn_of_empty_clusters(labels: NDArray[np.int64], n_clusters: int) -> None:
    """Warn if the clustering uses fewer clusters than were asked for."""
    used = len(np.unique(labels))
    if used < n_clusters:
        warn(
            f"The clustering uses {used} of the {n_clusters} clusters asked for; a smaller n_clusters may help."
        )


def warn(message: str, stacklevel: int = 5) -> None:
    """A ConvergenceWarning, by default for the caller of fit from a function that fit has called."""
    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
