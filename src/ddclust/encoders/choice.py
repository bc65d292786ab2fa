"""Which encoder a fit uses, and which one a fitted model."""

from __future__ import annotations

import os
from typing import Any

from ddclust.data.containers import as_items
from ddclust.data.text import is_text
from ddclust.encoders.encoder import IMAGES, KINDS, TEXTS, VECTORS, Encoder, EncoderError, FittedEncoder
from ddclust.encoders.local import local_digest, local_encoder
from ddclust.encoders.named import NAMED, installed_encoder, named_encoder
from ddclust.encoders.photographs import are_photographs
from ddclust.storage.plain import name_of

AUTO = "auto"
PHOTO_SIDE = 128  # to which files of photographs are resized for an encoder, in pixels


def kind_of(X: Any) -> str:
    """What kind of items X holds.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of(["a text", "another"]), kind_of(np.zeros((2, 8, 8))), kind_of(np.zeros((2, 3)))
    ('texts', 'images', 'vectors')
    """
    if is_text(X):
        return TEXTS
    return IMAGES if len(getattr(X, "shape", ())) > 2 else VECTORS


def default_encoder(X: Any) -> str | None:
    """The name of the encoder that X gets if none is named: one that is installed, for texts and photographs in colour."""
    if is_text(X):
        return installed_encoder(TEXTS)
    name = installed_encoder(IMAGES)
    if name is None or len(getattr(X, "shape", (0,) * 4)) != 4 or hasattr(X, "__dataframe__"):
        return None
    return name if are_photographs(as_items(X)) else None


def photo_side(given: Any) -> int | None:
    """To which side files of photographs are to be resized if an encoder sees them; None if none will."""
    is_auto = isinstance(given, str) and given == AUTO
    return None if given is None or (is_auto and installed_encoder(IMAGES) is None) else PHOTO_SIDE


def encoder_of(given: Any, kind: str) -> Encoder:
    """The encoder that a name, a path or a callable stands for, if it takes this kind of items."""
    if callable(given):
        return Encoder(_name(given), KINDS, given, getattr(given, "digest", None))
    name = os.fspath(given)
    if kind == VECTORS:
        raise EncoderError(f"encoder={name!r} takes texts or images, and X is vectors; set encoder=None.")
    found = named_encoder(name) if name in NAMED else local_encoder(name, kind)
    if kind not in found.takes:
        raise EncoderError(f"encoder={name!r} takes {' and '.join(found.takes)}, and X is {kind}.")
    return found


def encoder_again(fitted: FittedEncoder, given: Any) -> Encoder:
    """The encoder of a fitted model, the one that is given now or else the one by its name; it must be the same."""
    source = fitted.name if given is None or given == AUTO else given
    if fitted.digest is None and not callable(source):
        raise EncoderError(
            f"The model was fitted with an encoder of the user's own, {fitted.name!r}, which is not saved with it; give it:"
            " DDC.load(..., encoder=...)."
        )
    if not callable(source) and os.fspath(source) not in NAMED and fitted.kind != VECTORS:
        # A model that was received may name any folder, of which nothing is loaded unless it is the right one.
        fitted.refuse_other(local_digest(os.fspath(source)))
    found = encoder_of(source, fitted.kind)
    fitted.refuse_other(found.digest)
    return found


def _name(function: Any) -> str:
    own = getattr(function, "name", None)
    return own if isinstance(own, str) else name_of(function)
