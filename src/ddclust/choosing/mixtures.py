"""Gaussian mixtures, and when to believe them.

Of small tables a network can learn anything by heart, and its clusters are then worse than those of simple methods. So a
mixture of k Gaussians is asked first. All is decided by the Bayesian information criterion (BIC) per item, lower is better:

1. Of four shapes of covariances (full, tied, diagonal, spherical) the one with the lowest BIC is taken; beyond 50 features
   only of the last two. k-means is nearly the spherical one.
2. The *gain* is how much lower the BIC is than that of a single Gaussian, and the *rest* how much lower it would get with
   more components: k + 1, k + 2, the number of fine clusters that are merged otherwise, or half-way to it.
3. The mixture is believed if the rest is at most a tenth of the gain, and if no component is *flat*: a feature that is the
   same in a whole component is a level, such as a category of a table, and the likelihood of Gaussians on it has no bound.

Rings, moons and handwriting have a large rest: no k Gaussians describe them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

# The shapes of covariances, and how to say them.
COVARIANCES = {
    "full": "ellipsoids of any shape",
    "tied": "ellipsoids of one shape",
    "diag": "ellipsoids along the axes",
    "spherical": "balls, as for k-means",
}
# Chosen on iris, wine, blobs, moons and digits as vectors, and after a look at breast cancer and the biopsies of R's MASS. Of
# these, wine has the largest rest among those that are believed, .04 of its gain, and digits the smallest of the others, .16.
LARGEST_REST = 0.1
MATRIX_FEATURES = 50  # beyond, covariance matrices take too long
STARTS, STARTS_OF_MORE = 10, 2
LEAST_VARIANCE = 1e-4  # of a component, in units of the scaled features
FLAT = 1e-3  # variance of a feature in a component, beyond the least one, as a share of its variance in all items


class FoundMixture(NamedTuple):
    """A mixture that was fitted, and its BIC per item."""

    model: GaussianMixture
    bic: float

    @property
    def name(self) -> str:
        """Which covariances its components have."""
        return str(self.model.covariance_type)

    def probabilities(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of each component for each row, (n, k)."""
        return np.asarray(self.model.predict_proba(X))

    def is_flat(self, X: NDArray[np.float64]) -> bool:
        """Whether a feature that varies among the rows is the same in all of a component.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [9.0]], 100, axis=0)
        >>> levels = np.column_stack([X, np.repeat([0.0, 1.0], 100)])
        >>> best_mixture(X, 2, 1).is_flat(X), best_mixture(levels, 2, 1).is_flat(levels)
        (False, True)
        """
        covariances = self.model.covariances_
        match self.name:
            case "full" | "tied":
                variances = np.atleast_2d(np.diagonal(covariances, axis1=-2, axis2=-1))
            case "spherical":
                variances = covariances[:, None]
            case _:
                variances = covariances
        overall = X.var(axis=0)
        varying = overall > 0
        beyond = np.broadcast_to(variances, (len(variances), len(overall)))[:, varying] - LEAST_VARIANCE
        return bool((beyond < FLAT * overall[varying]).any())


def believed_mixture(X: NDArray[np.float64], n_clusters: int, n_fine: int) -> FoundMixture | None:
    """The mixture of ``n_clusters`` Gaussians if it explains the rows, else None.

    ``n_fine`` is the largest number of components that it is compared with.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs, make_circles
    >>> for X in (make_blobs(300, random_state=0)[0], make_circles(300, factor=0.3, random_state=0)[0]):
    ...     print(believed_mixture(X, 3, 9) is not None)
    True
    False
    """
    if len(X) <= n_fine:
        return None
    found = best_mixture(X, n_clusters, STARTS)
    more = {n_clusters + 1, n_clusters + 2, (n_clusters + n_fine) // 2, n_fine} - {n_clusters}
    gain = best_mixture(X, 1, 1).bic - found.bic
    rest = found.bic - min(best_mixture(X, m, STARTS_OF_MORE).bic for m in more)
    return found if rest <= LARGEST_REST * max(gain, 0.0) and not found.is_flat(X) else None


def best_mixture(X: NDArray[np.float64], n_components: int, n_init: int) -> FoundMixture:
    """The mixture of the covariances with the lowest BIC.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [9.0]], 100, axis=0)
    >>> best_mixture(X, 2, 1).name
    'spherical'
    """
    shapes = COVARIANCES if X.shape[1] <= MATRIX_FEATURES else ("diag", "spherical")
    return min(
        (mixture_of(X, n_components, shape, n_init) for shape in shapes), key=lambda mixture: mixture.bic
    )


def mixture_of(X: NDArray[np.float64], n_components: int, shape: str, n_init: int) -> FoundMixture:
    """The mixture whose covariances have a shape.

    Examples
    --------
    >>> mixture_of(np.random.default_rng(0).normal(size=(200, 2)), 1, "diag", 1).name
    'diag'
    """
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        n_components, covariance_type=shape, n_init=n_init, reg_covar=LEAST_VARIANCE, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return FoundMixture(model, float(model.bic(X)) / len(X))
