"""What a network looks at: the pixels, features or words that speak for the cluster of an item."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

from ddclust.base import NetworkClusterer
from ddclust.choosing.consensus import combine
from ddclust.data.batches import BatchSource, channel_axis, in_items_layout
from ddclust.encoders import IMAGES, TEXTS
from ddclust.naming import feature_names
from ddclust.show.images import as_fractions
from ddclust.show.style import ATTRIBUTION
from ddclust.training.inference import padded_batches, refuse_non_finite

# As in prediction, every batch has the same size, so that the map of an item does not depend on the other items.
CHUNK = 64
# The share of an image's pixels below the reddest. If only the largest one were red, a few extreme pixels would
# outshine all others.
BELOW_RED = 0.98
REDDEST = 0.8  # the share of red in the reddest pixels, so that the image is seen through it
BLUR = 1 / 20  # of the longer side
FOCUS = 2.0  # how much stronger the strongest quarter of a map must be than its mean


class Explanation(NamedTuple):
    """How much each input value speaks for the cluster of its item. Images have no ``feature_names``."""

    attributions: NDArray[np.float32]  # (n, *shape of an item)
    clusters: NDArray[np.int64]  # (n,): the cluster whose score is explained
    feature_names: NDArray[np.object_] | None = None  # (d,)

    def top_features(self, n_top: int = 10) -> list[list[tuple[str, float]]]:
        """The most influential features or words of each item, with their attributions, the largest first.

        A negative attribution speaks against the cluster. Features without any influence, such as words that do
        not occur in a text, are left out.

        Examples
        --------
        >>> names = np.array(["oil", "goal", "rain"], dtype=object)
        >>> found = Explanation(np.array([[0.5, -2.0, 0.0]], dtype=np.float32), np.array([1]), names)
        >>> found.top_features(2)
        [[('goal', -2.0), ('oil', 0.5)]]
        """
        if self.feature_names is None:
            raise ValueError("Pixels of images have no names; use attributions, or paint them with overlay.")
        tops = []
        for row in self.attributions:
            order = np.argsort(-np.abs(row), kind="stable")[:n_top]
            tops.append([(str(self.feature_names[i]), float(row[i])) for i in order if row[i] != 0])
        return tops


def explain(model: NetworkClusterer, X: Any, clusters: ArrayLike | None = None) -> Explanation:
    """What speaks for the cluster of each item, by the gradient of the cluster's unnormalised score.

    The attribution of a pixel is found by guided backpropagation (Section 5.6 of the paper). For vectors and
    texts, the attribution of a feature is its value times the gradient of the score, because a gradient alone
    does not say whether an item has the feature. The values are those that the network sees, that is, after scaling: a
    feature of a vector counts from its mean.

    If several networks vote, the best one is explained, while the cluster of an item is still the one that the
    vote decides on. If clusters were merged, the score of the part that the item most belongs to is explained.
    The map of an image is zero everywhere if the network recognises the cluster by what the image lacks, because
    then no active unit raises its score.

    The model is not changed, and the attributions of an item do not depend on the other items.

    Parameters
    ----------
    model : fitted DDC or DEC
        The activations of a custom network should be ``nn.ReLU`` modules, see :func:`guided_backprop`.
    X : images, vectors or texts
        Anything that ``model.predict`` takes.
    clusters : int or array-like of int of shape (n,), optional
        The cluster to explain, one for all items or one for each. By default the cluster of the item.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ddclust import DDC
    >>> images = load_digits().images[:100]
    >>> model = DDC(3, n_init=1, max_iter=20, random_state=0).fit(images)
    >>> explain(model, images[:4]).attributions.shape
    (4, 8, 8)
    """
    if not isinstance(model, NetworkClusterer):
        raise TypeError(f"Only fitted DDC and DEC models can be explained, not a {type(model).__name__}.")
    refuse_encoded(model)
    source = model._source(X)
    if clusters is None:
        clusters = combine(model._member_probabilities(source))[0].labels
    wanted = _checked_clusters(clusters, len(source), model.n_clusters_)
    attributions = np.empty((len(source), *model.item_shape_), dtype=np.float32)
    for rows, values in _attributed(model, source, model._outputs_of(source, wanted)):
        attributions[rows] = in_items_layout(values, model.item_shape_).numpy()
    return Explanation(attributions, wanted, _names(model, X))


def refuse_encoded(model: NetworkClusterer) -> None:
    """Refuse a model that sees features of an encoder."""
    if hasattr(model, "encoder_"):
        raise ValueError(f"{not_explained(model)} Fit with encoder=None to see what decides.")


def not_explained(model: NetworkClusterer) -> str:
    """Why a model that sees features of an encoder cannot be explained, as a sentence.

    Examples
    --------
    >>> from ddclust.encoders import FittedEncoder
    >>> model = NetworkClusterer()
    >>> model.encoder_ = FittedEncoder("minilm", "texts")
    >>> not_explained(model)
    "The network sees the features of the encoder 'minilm', which have no meaning of their own, and no words."
    """
    parts = {TEXTS: "words", IMAGES: "pixels"}.get(model.encoder_.kind, "columns")
    return (
        f"The network sees the features of the encoder {model.encoder_.name!r}, which have no meaning of their own, and no"
        f" {parts}."
    )


def guided_backprop(module: nn.Module, x: Tensor, target: int | Tensor) -> Tensor:
    """Guided backpropagation (Springenberg et al. 2015) of a cluster's score to the input, by captum.

    At every ``nn.ReLU`` module, negative gradients are set to zero, in addition to those that the ReLU itself
    blocks. Other activations, including ``torch.nn.functional.relu``, are not seen and pass the plain gradient.
    The module computes in evaluation mode and is left as it was.

    Parameters
    ----------
    module : nn.Module
        Returns (hidden, logits).
    x : Tensor of shape (n, ...)
    target : int or Tensor of int of shape (n,)
        The output to explain, one for all items or one for each.

    Returns
    -------
    Tensor of the shape of x

    Examples
    --------
    >>> from ddclust.networks import ConvNet
    >>> guided_backprop(ConvNet((1, 28, 28), 10), torch.rand(2, 1, 28, 28), 3).shape
    torch.Size([2, 1, 28, 28])
    """
    from captum.attr import GuidedBackprop

    with _gradients_of(module) as scores, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting backward hooks")
        return GuidedBackprop(scores).attribute(_leaf(x), target=target).detach()


def input_x_gradient(module: nn.Module, x: Tensor, target: int | Tensor) -> Tensor:
    """Each input value times the gradient of a cluster's score, by captum.

    Parameters
    ----------
    module, x, target
        As for :func:`guided_backprop`.

    Returns
    -------
    Tensor of the shape of x

    Examples
    --------
    >>> class Scores(nn.Module):
    ...     def forward(self, x):
    ...         return x, x * torch.tensor([3.0, -1.0])
    >>> input_x_gradient(Scores(), torch.tensor([[2.0, 5.0]]), 1)
    tensor([[ 0., -5.]])
    """
    from captum.attr import InputXGradient

    with _gradients_of(module) as scores:
        return InputXGradient(scores).attribute(_leaf(x), target=target).detach()


def overlay(images: ArrayLike, attributions: ArrayLike, *, blur: float = BLUR) -> NDArray[np.uint8]:
    """The images in grey, with red where they speak for the cluster: darkening them there lowers the score.

    Single pixels of a photograph say little, so the maps are blurred. The 2 % of each image's pixels with the largest
    attributions are the reddest. Pixels with zero or negative attributions stay grey.

    Parameters
    ----------
    images : array-like of shape (n, h, w), (n, h, w, c) or (n, c, h, w)
        White is 255 for uint8. For other types, black and white are the least and the largest value of all images.
    attributions : array-like of the same shape
    blur : float, default=0.05
        The standard deviation of the Gaussian filter, as a share of the longer side of an image; 0 for the maps as
        they are.

    Returns
    -------
    ndarray of uint8 of shape (n, h, w, 3)

    Examples
    --------
    >>> overlay(np.full((1, 1, 3), 255, dtype=np.uint8), [[[0.0, -4.0, 2.0]]])[0, 0].tolist()
    [[255, 255, 255], [255, 255, 255], [235, 67, 75]]
    """
    images, attributions = np.asarray(images), np.asarray(attributions, dtype=np.float64)
    if images.shape != attributions.shape or images.ndim not in (3, 4):
        raise ValueError(
            "overlay takes images of shape (n, h, w), (n, h, w, c) or (n, c, h, w) and attributions of the same shape,"
            f" got {images.shape} and {attributions.shape}."
        )
    grey, strength = as_fractions(images), blurred(attributions, blur)
    axis = channel_axis(images.shape[1:])
    if axis is not None:
        grey = grey.mean(axis=axis + 1)
    most = strength.max(axis=(1, 2), keepdims=True, initial=0.0)
    much = (
        np.quantile(strength, BELOW_RED, axis=(1, 2), keepdims=True, method="higher") if most.size else most
    )
    full = np.where(much > 0, much, np.where(most > 0, most, 1.0))
    share = REDDEST * np.minimum(strength / full, 1.0)[..., None]  # (n, h, w, 1)
    return np.rint((1 - share) * 255 * grey[..., None] + share * np.array(ATTRIBUTION)).astype(np.uint8)


def blurred(attributions: NDArray[np.floating], blur: float = BLUR) -> NDArray[np.float64]:
    """What speaks for the cluster at each place of images, over all channels: maps of shape (n, h, w)."""
    strength = np.maximum(attributions.astype(np.float64), 0.0)
    axis = channel_axis(strength.shape[1:])
    if axis is not None:
        strength = strength.sum(axis=axis + 1)
    return gaussian_filter(strength, blur * max(strength.shape[1:]), axes=(1, 2))


def says_something(attributions: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether the map of each image is of some places more than of others.

    A map says nothing if it is zero, because the network recognises the cluster by what the image lacks, or if it is
    nearly the same everywhere.

    Examples
    --------
    >>> spot = np.zeros((8, 8))
    >>> spot[2:4, 2:4] = 1
    >>> says_something(np.stack([spot, 0 * spot, 0 * spot + 1])).tolist()
    [True, False, False]
    """
    maps = blurred(attributions).reshape(len(attributions), -1)
    largest = np.sort(maps, axis=1)[:, -max(maps.shape[1] // 4, 1) :]
    return largest.mean(axis=1) > FOCUS * maps.mean(axis=1)


def _names(model: NetworkClusterer, X: Any) -> NDArray[np.object_] | None:
    """Names of the features; stems by the most frequent of their words in the texts that are explained."""
    if len(model.item_shape_) > 1:
        return None
    if hasattr(model, "vectorizer_"):
        return np.array(model.vectorizer_.whole_words(X), dtype=object)
    return feature_names(model)


def _checked_clusters(clusters: ArrayLike, n: int, n_clusters: int) -> NDArray[np.int64]:
    """The cluster to explain for each of n items."""
    found = np.asarray(clusters)
    if found.dtype.kind not in "iu" or found.shape not in ((), (n,)):
        raise ValueError(
            f"clusters must be one integer, or one for each of the {n} items, got {found.dtype} of shape {found.shape}."
        )
    strange = found[(found < 0) | (found >= n_clusters)]
    if strange.size:
        raise ValueError(
            f"There is no cluster {strange.flat[0]}; they are numbered from 0 to {n_clusters - 1}."
        )
    return np.broadcast_to(found, n).astype(np.int64)


def _attributed(
    model: NetworkClusterer, source: BatchSource, targets: NDArray[np.int64]
) -> Iterator[tuple[slice, Tensor]]:
    """(rows, attributions in the layout of the network) for consecutive rows of the source, on the CPU."""
    method = guided_backprop if len(model.item_shape_) > 1 else input_x_gradient
    module = model.modules_[0]
    device = next(module.parameters()).device
    for rows, x in padded_batches(source, CHUNK):
        n = rows.stop - rows.start
        target = torch.zeros(CHUNK, dtype=torch.int64)
        target[:n] = torch.from_numpy(targets[rows])
        values = method(module, x.to(device), target.to(device))[:n].cpu()
        refuse_non_finite(values.flatten(1), rows.start)
        yield rows, values


class _Scores(nn.Module):
    """The logits of a module that returns (hidden, logits)."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)[1]


@contextmanager
def _gradients_of(module: nn.Module) -> Iterator[nn.Module]:
    """The scores of a module in evaluation mode, with gradients. Afterwards each part has its own mode again."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield _Scores(module)
    finally:
        for part in training:
            part.training = True


def _leaf(x: Tensor) -> Tensor:
    """A copy to take gradients of, so that the tensor of the caller is not changed."""
    return x.detach().clone().requires_grad_()
