"""How open clusters are: whether their borders follow gaps in the data, or cross dense data.

The *openness* of a cluster compares two counts of pairs of nearest neighbours: those that its border parts, and those that
the best cut through its middle would part. A cluster of its own has a border that parts few pairs, and no such cut: its
openness is small. A part of a larger cluster has a border like any other cut, and two clusters taken as one can be cut where
few pairs are parted: both are open. (A good cluster has a large inner and a small outer conductance; Kannan, Vempala and
Vetta, J. ACM 2004.)

What counts as small depends on the shape of the data, since in many dimensions every cut parts many pairs. So the most open
cluster is compared with clusters that k-means finds in noise: one Gaussian with the covariances of the data, in as many
dimensions as the data fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from ddclust.choosing.k_means import k_means_labels
from ddclust.data.batches import BatchSource, random_items
from ddclust.data.items import SparseItems
from ddclust.data.neighbors import Neighbors, nearest_neighbors, topic_vectors

COMPARED_ITEMS = 5000  # at most
NEIGHBORS = 10  # of an item
DOUBT = NEIGHBORS / 2  # pairs that are added to those of a border, so that little follows from small numbers
FEWEST = NEIGHBORS + 1  # items that a cut leaves on each side
EIGENVECTORS = 3  # along which cuts are tried
# What links all items of a cluster, as a share of their own links: strays, linked to few, are then no part of their own.
LINKED = 0.1
DENSE_ITEMS = 500  # up to which eigenvectors are found at once


@dataclass(frozen=True)
class Landscape:
    """The neighbours of some items, and noise of the same shape."""

    items: NDArray[np.intp]  # positions in the data
    links: scipy.sparse.csr_array
    noise: NDArray[np.float64]
    noise_links: scipy.sparse.csr_array

    def openness(self, labels: NDArray[np.integer]) -> float:
        """The openness of the most open cluster, in units of that of clusters in noise. ``labels`` are of all items."""
        own = labels[self.items]
        return float(openness(own, self.links).max()) / self._in_noise(len(np.unique(own)))

    def _in_noise(self, n_clusters: int) -> float:
        labels = k_means_labels(self.noise, n_clusters)
        border, middle = _parted(labels, self.noise_links).sum(axis=0)
        return float(border + DOUBT) / float(middle + 1)


def landscape_of(source: BatchSource) -> Landscape:
    """The landscape of at most 5,000 items of a source.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ddclust.data.batches import Scaling
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> landscape = landscape_of(BatchSource(X, Scaling.of(X)))
    >>> landscape.openness(y) < 0.2, landscape.openness(np.minimum(y, 1)) > 0.2, landscape.openness(X[:, 0] > 0) > 1
    (True, True, True)
    """
    items = random_items(len(source), COMPARED_ITEMS, seed=0)
    if isinstance(source.items, SparseItems):
        vectors = normalize(topic_vectors(source.vectors()[items]))
    else:
        vectors = source.batch(items).flatten(1).numpy()
    vectors = np.asarray(vectors, dtype=np.float64)
    n_neighbors = min(NEIGHBORS, len(vectors) - 1)
    near = nearest_neighbors(vectors, n_neighbors)
    noise = _noise_like(vectors, dimension(near))
    return Landscape(
        items, links_of(near.indices), noise, links_of(nearest_neighbors(noise, n_neighbors).indices)
    )


def links_of(neighbors: NDArray[np.integer]) -> scipy.sparse.csr_array:
    """The symmetric matrix of who is a neighbour of whom: 1 if both are of each other, 1/2 if one is of the other."""
    n, m = neighbors.shape
    links = scipy.sparse.csr_array((np.ones(n * m), neighbors.ravel(), np.arange(0, n * m + 1, m)), (n, n))
    return (links + links.T).tocsr() / 2


def openness(labels: NDArray[np.integer], links: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """The openness of each cluster: pairs that its border parts by pairs that the best cut through its middle parts.

    A cluster that can be cut without parting any is open, even if its border parts none either.

    Examples
    --------
    >>> ring = links_of(np.stack([np.roll(np.arange(40), 1), np.roll(np.arange(40), -1)], axis=1))
    >>> openness(np.arange(40) // 20, ring)  # each half of a ring has two ends, and is cut once
    array([3.5, 3.5])
    """
    border, middle = _parted(labels, links).T
    return (border + DOUBT) / (middle + 1)


def _parted(labels: NDArray[np.integer], links: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """The links that the border of each cluster parts, and those that the best cut through its middle parts, (k, 2)."""
    found = []
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        of_members = links[members]
        within = of_members[:, members]
        outside = np.asarray(of_members.sum(axis=1) - within.sum(axis=1)).ravel()
        found.append((outside.sum(), _best_cut(within, outside)))
    return np.array(found)


def _best_cut(links: scipy.sparse.csr_array, outside: NDArray[np.float64]) -> float:
    """The fewest links that a cut along an eigenvector parts; ``outside`` are the links of each item to other clusters.

    A cut into unequal parts counts more, by the inverse of twice the smaller part's share: a cut near the rim is no cut
    through the middle, but a group of its own may be small. Strays, which have more than their share of the links to other
    clusters, are no such group: what they have beyond it counts as parted.
    """
    n = links.shape[0]
    least = min(FEWEST, n // 2)
    if least < 1:
        return 0.0
    pairs = links.tocoo()
    before = np.arange(1, n + 1)  # items before a cut after each place
    smaller = np.minimum(before, n - before)
    unequal = n / (2 * np.maximum(smaller, 1))
    border, found = outside.sum(), []
    for vector in _eigenvectors(links):
        order = np.argsort(vector, kind="stable")
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        first, last = np.sort(place[np.stack([pairs.row, pairs.col])], axis=0)
        begins, ends = (np.bincount(at, weights=pairs.data / 2, minlength=n) for at in (first, last))
        outer = np.cumsum(outside[order])
        outer = np.where(before <= n - before, outer, border - outer)  # of the smaller part
        parted = np.cumsum(begins - ends) + np.maximum(outer - border * smaller / n, 0)
        found.append((parted * unequal)[least - 1 : n - least].min())
    return float(max(min(found), 0.0))


def _eigenvectors(links: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """The second to fourth eigenvector of the normalised links, along which cuts part few of them; as rows."""
    n = links.shape[0]
    degrees = np.asarray(links.sum(axis=1)).ravel()
    more = max(LINKED * degrees.mean(), 1e-9)
    scale = 1 / np.sqrt(degrees + more)

    def times(x: NDArray[np.float64]) -> NDArray[np.float64]:
        y = scale * x.ravel()
        product: NDArray[np.float64] = scale * (links @ y + more / n * y.sum())
        return product

    if n > DENSE_ITEMS:
        start = np.random.default_rng(0).normal(size=n)
        try:
            operator = LinearOperator((n, n), matvec=times)
            values, vectors = eigsh(operator, 1 + EIGENVECTORS, which="LA", v0=start, tol=1e-3)
            return (scale[:, None] * vectors[:, values.argsort()[:-1]]).T
        except ArpackNoConvergence:
            pass
    matrix = (links.toarray() + more / n) * np.outer(scale, scale)
    which = [max(n - 1 - EIGENVECTORS, 0), max(n - 2, 0)]
    return (scale[:, None] * scipy.linalg.eigh(matrix, subset_by_index=which)[1]).T


def dimension(near: Neighbors) -> float:
    """How many dimensions data fill, from how fast the distances to the nearest neighbours grow (Levina and Bickel 2004).

    Examples
    --------
    >>> flat = np.random.default_rng(0).random((500, 2)) @ np.ones((2, 2)) + [[0, 5]]
    >>> round(dimension(nearest_neighbors(flat, 10)))
    1
    """
    distances = np.maximum(near.distances, 1e-12)
    if distances.shape[1] < 3:
        return 1.0
    growth = np.log(distances[:, -1:] / distances[:, :-1]).sum(axis=1) / (distances.shape[1] - 2)
    return float(1 / max(growth.mean(), 1e-3))


def _noise_like(vectors: NDArray[np.float64], n_dimensions: float) -> NDArray[np.float64]:
    """One Gaussian with the covariances of some vectors along their first principal components."""
    n_components = int(np.clip(round(n_dimensions), 1, min(vectors.shape)))
    with np.errstate(divide="ignore", invalid="ignore"):  # equal items have no variance to explain
        spread = np.sqrt(PCA(n_components, random_state=0).fit(vectors).explained_variance_)
    return np.random.default_rng(0).normal(size=(len(vectors), n_components)) * np.maximum(spread, 1e-9)
