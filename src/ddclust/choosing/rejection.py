"""Which new items a model does not know: those that it is not sure of, and those unlike anything it was trained on.

How unlike the training items an item is, is the Mahalanobis distance of its hidden representation to the nearest cluster:
each output of the network has a mean, and all share one covariance (Lee et al., NeurIPS 2018). Since networks may place an
image of a single colour anywhere, the contrast of an item counts, too: the standard deviation of its values. Confidence,
distance and contrast are made comparable by their ranks among the training items, and the lowest rank counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

REFUSED = -1  # the label of an item that is refused
LEVELS = 1001  # quantiles of the training items that are kept
# Added to every variance, as a share of the mean one. Any from 0.01 to 1 tells noise, plain images and letters from digits.
SHRINKAGE = 0.1
LEAST_VARIANCE = 1e-12
# Draws in place of items are so much further from their means than Gaussian ones: items have longer tails. Of eight
# digits, 99.3 % then kept their clusters in the worst of four cases instead of 99.0 %.
SPREAD = 1.5


@dataclass(frozen=True)
class KnownItems:
    """What is kept of the training items to tell whether a new one is like them.

    Parameters
    ----------
    means : ndarray of shape (n_outputs, d)
        Whitened means of the hidden representation, one for each output of the network.
    whitening : ndarray of shape (d, d)
        Turns the covariance around the means into the identity.
    confidence, distance, contrast, rank : ndarray of shape (1001,)
        Quantiles over the training items of their confidence, of their distance to the nearest mean, of their contrast, and
        of the lowest of the three ranks.
    """

    means: NDArray[np.float32]
    whitening: NDArray[np.float32]
    confidence: NDArray[np.float32]
    distance: NDArray[np.float32]
    contrast: NDArray[np.float32]
    rank: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        hidden: NDArray[np.float32],
        outputs: NDArray[np.int64],
        confidence: NDArray[np.float32],
        contrast: NDArray[np.float32],
        *,
        n_outputs: int,
    ) -> Self:
        """What to keep of training items.

        Each half of the items is measured by the means and the covariance of the other half, so that new items are not
        further away only because they are new.

        Parameters
        ----------
        hidden : ndarray of shape (n_samples, d)
        outputs : ndarray of shape (n_samples,)
            The network's largest output for each item.
        confidence, contrast : ndarray of shape (n_samples,)
        n_outputs : int

        Examples
        --------
        >>> hidden = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
        >>> confidence = np.linspace(0.5, 1, 500, dtype=np.float32)
        >>> known = KnownItems.of(
        ...     hidden, np.zeros(500, dtype=int), confidence, hidden.std(axis=1), n_outputs=1
        ... )
        >>> new = np.array([[0.5, -0.5], [9.0, 8.0], [0.5, -0.5]], dtype=np.float32)
        >>> known.refused(np.array([0.9, 0.9, 0.4]), new, new.std(axis=1), reject=0.05)
        array([False,  True,  True])
        """
        means, whitening = _gaussians(hidden, outputs, n_outputs)
        distance = np.empty(len(hidden), dtype=np.float32)
        halves = np.arange(len(hidden)) % 2
        for half in (0, 1):
            measured, measuring = halves == half, halves != half
            if measuring.any():
                other = _gaussians(hidden[measuring], outputs[measuring], n_outputs)
                distance[measured] = nearest_distance(hidden[measured], *other)
        levels = np.linspace(0, 1, LEVELS)

        def quantiles(values: NDArray[np.floating]) -> NDArray[np.float32]:
            return np.quantile(values, levels).astype(np.float32)

        unranked = cls(
            means,
            whitening,
            quantiles(confidence),
            quantiles(distance),
            quantiles(contrast),
            np.zeros(LEVELS, dtype=np.float32),
        )
        return replace(unranked, rank=quantiles(unranked._lowest_rank(confidence, distance, contrast)))

    def whitened(self, hidden: NDArray[np.float32]) -> NDArray[np.float64]:
        """Hidden representations in the space of the means, where the items of an output have unit variance."""
        return hidden.astype(np.float64) @ self.whitening.astype(np.float64)

    def drawn(self, n_each: int, seed: int) -> NDArray[np.float32]:
        """Hidden representations that items of the fit might have: for each output so many, from its Gaussian."""
        # The columns of the whitening matrix are orthogonal directions, divided by the root of their shrunken variance.
        W = self.whitening.astype(np.float64)
        shrunken = 1 / np.maximum(np.square(W).sum(axis=0), LEAST_VARIANCE)  # (d,)
        mean_variance = shrunken.mean() / (1 + SHRINKAGE)
        variances = np.maximum(shrunken - SHRINKAGE * mean_variance, 0)
        back = W.T * shrunken[:, None]  # the inverse of W
        rng = np.random.default_rng(seed)
        centres = np.repeat(self.means.astype(np.float64), n_each, axis=0)
        noise = SPREAD * rng.normal(size=centres.shape) * np.sqrt(variances / shrunken)
        return ((centres + noise) @ back).astype(np.float32)

    def with_clusters(
        self,
        hidden: NDArray[np.float32],
        clusters: NDArray[np.int64],
        confidence: NDArray[np.float32],
        contrast: NDArray[np.float32],
        *,
        n_before: int,
    ) -> Self:
        """The same with further outputs, whose items are known from now on.

        Parameters
        ----------
        hidden : ndarray of shape (n_samples, d)
            Of items of the further outputs.
        clusters : ndarray of shape (n_samples,)
            Which of these outputs each item has, from 0; each has at least one.
        confidence, contrast : ndarray of shape (n_samples,)
        n_before : int
            How many items the quantiles are of so far.
        """
        white, sizes = self.whitened(hidden), np.bincount(clusters)
        own = np.stack([white[clusters == cluster].mean(axis=0) for cluster in range(len(sizes))])
        # Of the mean without the item, as items of the fit are measured by means of others.
        distance = np.linalg.norm(white - own[clusters], axis=1)
        distance *= (sizes / np.maximum(sizes - 1, 1))[clusters]

        def joined(quantiles: NDArray[np.float32], values: NDArray[np.floating]) -> NDArray[np.float32]:
            return _joined_quantiles(quantiles, n_before, values)

        larger = replace(
            self,
            means=np.concatenate([self.means, own.astype(np.float32)]),
            confidence=joined(self.confidence, confidence),
            distance=joined(self.distance, distance),
            contrast=joined(self.contrast, contrast),
        )
        return replace(larger, rank=joined(self.rank, larger._lowest_rank(confidence, distance, contrast)))

    def refused(
        self,
        confidence: NDArray[np.floating],
        hidden: NDArray[np.float32],
        contrast: NDArray[np.floating],
        reject: float,
    ) -> NDArray[np.bool_]:
        """Whether each item is refused, if about the share ``reject`` of items like the training items may be.

        Parameters
        ----------
        confidence, contrast : ndarray of shape (n_samples,)
        hidden : ndarray of shape (n_samples, d)
        reject : float
            From 0 to 1.
        """
        distance = nearest_distance(hidden, self.means, self.whitening)
        return self._lowest_rank(confidence, distance, contrast) < np.quantile(self.rank, reject)

    def _lowest_rank(
        self,
        confidence: NDArray[np.floating],
        distance: NDArray[np.floating],
        contrast: NDArray[np.floating],
    ) -> NDArray[np.float64]:
        """The share of training items that are no more certain, no nearer, or at least as plain or as rich in contrast."""
        ranks = (
            _share_up_to(self.confidence, confidence),
            _share_from(self.distance, distance),
            2 * np.minimum(_share_up_to(self.contrast, contrast), _share_from(self.contrast, contrast)),
        )
        return np.min(ranks, axis=0)


def contrast_of(x: Tensor) -> NDArray[np.float32]:
    """The standard deviation of each item's values; of images within each channel, averaged over the channels.

    Examples
    --------
    >>> import torch
    >>> red = torch.zeros(1, 3, 4, 4)
    >>> red[:, 0] = 1
    >>> contrast_of(red), contrast_of(torch.tensor([[1.0, 3.0]]))
    (array([0.], dtype=float32), array([1.], dtype=float32))
    """
    values = x.cpu().numpy().astype(np.float64)
    values = values.reshape(len(values), 1 if values.ndim < 3 else values.shape[1], -1)  # (n, channels, ...)
    return values.std(axis=2).mean(axis=1).astype(np.float32)


def _joined_quantiles(
    quantiles: NDArray[np.float32], n_before: int, values: NDArray[np.floating]
) -> NDArray[np.float32]:
    """The quantiles of n items, of which there are only these quantiles, together with further values."""
    found = np.concatenate([quantiles, values])
    weights = np.concatenate([np.full(LEVELS, n_before / LEVELS), np.ones(len(values))])
    order = np.argsort(found, kind="stable")
    below = np.cumsum(weights[order]) - weights[order] / 2
    levels = np.linspace(below[0], below[-1], LEVELS)
    return np.interp(levels, below, found[order]).astype(np.float32)


def _share_up_to(quantiles: NDArray[np.float32], values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The share of quantiles that are not above each value."""
    return np.searchsorted(quantiles, values.astype(np.float32), side="right") / len(quantiles)


def _share_from(quantiles: NDArray[np.float32], values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The share of quantiles that are not below each value."""
    return 1 - np.searchsorted(quantiles, values.astype(np.float32), side="left") / len(quantiles)


def _gaussians(
    hidden: NDArray[np.float32], outputs: NDArray[np.int64], n_outputs: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Whitened means of the outputs' items, and the whitening matrix of their common covariance.

    An output without items gets the mean of the one with most items, so that nothing is near to it alone.
    """
    H = hidden.astype(np.float64)
    sizes = np.bincount(outputs, minlength=n_outputs)
    member = outputs == np.arange(n_outputs)[:, None]  # (k, n)
    means = member @ H / np.maximum(sizes, 1)[:, None]
    means[sizes == 0] = means[sizes.argmax()]
    rest = H - means[outputs]
    variances, directions = np.linalg.eigh(rest.T @ rest / len(H))
    variances = np.maximum(variances, 0)
    whitening = directions / np.sqrt(np.maximum(variances + SHRINKAGE * variances.mean(), LEAST_VARIANCE))
    return (means @ whitening).astype(np.float32), whitening.astype(np.float32)


def nearest_distance(
    hidden: NDArray[np.float32], means: NDArray[np.float32], whitening: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The distance of each item to the nearest mean, after whitening.

    Examples
    --------
    >>> nearest_distance(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [9.0, 9.0]]), np.eye(2))
    array([5.], dtype=float32)
    """
    # In float64, so that the rounding of a product of matrices, which depends on the other items, is not seen.
    white = hidden.astype(np.float64) @ whitening.astype(np.float64)  # (n, d)
    squares = [np.square(white - mean).sum(axis=1) for mean in means.astype(np.float64)]
    return np.sqrt(np.min(squares, axis=0)).astype(np.float32)
