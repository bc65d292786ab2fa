"""What an encoder is, what a fitted model remembers of it, and items together with their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TEXTS, IMAGES, VECTORS = "texts", "images", "vectors"
KINDS = (TEXTS, IMAGES, VECTORS)


class EncoderError(ValueError):
    """An encoder that is not here, is another one, or does not take these items."""


class Encoder(NamedTuple):
    """A function from items to vectors, and what it is known by.

    Parameters
    ----------
    name : str
    takes : tuple of str
        The kinds of items that it takes, of ``KINDS``.
    encode : callable
        From a list of texts, or from an array with a row for each item, to an array of shape (n, d).
    digest : str or None
        Tells its weights from others; None for a function of the user's own.
    """

    name: str
    takes: tuple[str, ...]
    encode: Callable[[Any], Any]
    digest: str | None = None


@dataclass(frozen=True)
class FittedEncoder:
    """What a fitted model remembers of its encoder; nothing of it can be run.

    Parameters
    ----------
    name : str
    kind : {"texts", "images", "vectors"}
        What it was given.
    digest : str or None
        That of the encoder.
    item_shape : tuple of int or None
        The shape of an item before it was encoded; None for texts.

    Examples
    --------
    >>> FittedEncoder("minilm", "texts", "9f86d081", None).kind
    'texts'
    """

    name: str
    kind: str
    digest: str | None = None
    item_shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS or (self.kind == TEXTS) != (self.item_shape is None):
            raise ValueError(f"An encoder of {self.kind!r} with items of shape {self.item_shape} is none.")
        if self.item_shape is not None and not 1 <= len(self.item_shape) <= 3:
            raise ValueError(f"Items of shape {self.item_shape} are neither images nor vectors.")

    def __str__(self) -> str:
        return self.name if self.digest is None else f"{self.name} ({self.digest[:12]})"

    def refuse_other(self, digest: str | None) -> None:
        """Raise an error if an encoder with this digest is not the one that the model was fitted with."""
        if digest != self.digest:
            raise EncoderError(
                f"The model was fitted on features of encoder={self.name!r}"
                f" {_known_by(self.digest)}, but the one that is here is {_known_by(digest)}; install or give the"
                " same one, or fit again."
            )


@dataclass(frozen=True)
class Encoded:
    """Items that are encoded already. Estimators take them like the items themselves, and encode nothing."""

    features: NDArray[np.float32]  # (n, d), rows of unit length
    encoder: FittedEncoder

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the features."""
        return self.features.shape

    def __len__(self) -> int:
        return len(self.features)

    def at(self, indices: Any) -> Encoded:
        """Some of the items."""
        return replace(self, features=self.features[indices])


def _known_by(digest: str | None) -> str:
    return "of the user's own" if digest is None else f"with the digest {digest[:12]}..."
