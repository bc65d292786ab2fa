"""The features of items: computed once, a few hundred items at a time, and kept by the content of the items."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.data.items import as_array, fingerprint, refuse_shrunken, release_pages
from ddclust.encoders.cache import Cache, cache_of, key_of
from ddclust.encoders.encoder import Encoder, EncoderError
from ddclust.progress import Bar
from ddclust.storage.scratch import scratch_array

CHUNK = 512
TRIAL_ITEMS = 64  # that are encoded to know how long the others take


def features_of(items: Any, encoder: Encoder, *, verbose: bool = False) -> NDArray[np.float32]:
    """The features of a list of texts, or of items, as rows of unit length; empty texts and rows of zeros become zeros.

    Parameters
    ----------
    items : list of str, or items with a shape that can be sliced
    encoder : Encoder
    verbose : bool, default=False
        Show a progress bar if it takes more than two seconds.

    Returns
    -------
    ndarray of shape (n, d)
        In memory or, if it is large, memory-mapped.

    Examples
    --------
    >>> lengths = Encoder("lengths", ("texts",), lambda texts: [[3.0 * len(text), 4.0 * len(text)] for text in texts])
    >>> features_of(["a", "bb"], lengths)
    array([[0.6, 0.8],
           [0.6, 0.8]], dtype=float32)
    """
    n = len(items)
    cache = cache_of(encoder)
    features: NDArray[np.float32] | None = None
    with Bar(total=n, unit="item", desc=f"encoding by {encoder.name}", delay=2, disable=not verbose) as bar:
        for start in range(0, n, CHUNK):
            refuse_shrunken(items)
            chunk = items[start : start + CHUNK]
            rows = _rows(chunk, encoder, cache, start)
            if features is None:
                features = scratch_array((n, rows.shape[1]), np.float32, prefix="ddclust-features-")
            if rows.shape[1] != features.shape[1]:
                raise EncoderError(
                    f"The encoder {encoder.name!r} gives {rows.shape[1]} values for item {start}, and"
                    f" {features.shape[1]} for the first one."
                )
            features[start : start + len(rows)] = rows
            release_pages(items)
            bar.update(len(rows))
    cache.tidy()
    if features is None:
        raise EncoderError("X holds no items.")
    return features


def expected_features(items: Any, encoder: Encoder) -> tuple[NDArray[np.float32], float]:
    """Features like those that :func:`features_of` would give, and about how long it would take, in seconds.

    Features that are kept take no time, and are given if they all are. Otherwise a few of the items are encoded, and their
    features stand for those of the others.

    Examples
    --------
    >>> lengths = Encoder("lengths", ("texts",), lambda texts: [[3.0 * len(text), 4.0 * len(text)] for text in texts])
    >>> features, seconds = expected_features(["a", "bb"], lengths)
    >>> features.shape, seconds < 1
    ((2, 2), True)
    """
    cache = cache_of(encoder)
    chunks = [slice(start, min(start + CHUNK, len(items))) for start in range(0, len(items), CHUNK)]
    missing = [chunk for chunk in chunks if _known(items[chunk], encoder, cache) is None]
    if not missing:
        return features_of(items, encoder), 0.0
    positions = np.concatenate([np.arange(chunk.start, chunk.stop) for chunk in missing])
    tried = positions[np.linspace(0, len(positions) - 1, min(TRIAL_ITEMS, len(positions)), dtype=int)]
    some = [items[i] for i in tried] if isinstance(items, list) else items[tried]
    _encoded(some[:1], encoder, 0)  # the first call may load what the others use
    begun = time.perf_counter()
    rows = _encoded(some, encoder, 0)
    seconds = (time.perf_counter() - begun) * len(positions) / len(tried)
    features = scratch_array((len(items), rows.shape[1]), np.float32, prefix="ddclust-features-")
    for chunk in chunks:
        features[chunk] = rows[np.arange(chunk.start, chunk.stop) % len(rows)]
    return features, seconds


def _rows(chunk: Any, encoder: Encoder, cache: Cache, first: int) -> NDArray[np.float32]:
    """The features of some items, from the cache or by the encoder."""
    known = _known(chunk, encoder, cache)
    if known is not None:
        return known
    rows = _encoded(chunk, encoder, first)
    cache.write(key_of(encoder, fingerprint(chunk)), rows)
    return rows


def _known(chunk: Any, encoder: Encoder, cache: Cache) -> NDArray[np.float32] | None:
    """The features of some items, if they are kept."""
    known = cache.read(key_of(encoder, fingerprint(chunk)))
    return known if known is not None and len(known) == len(chunk) else None


def _encoded(chunk: Any, encoder: Encoder, first: int) -> NDArray[np.float32]:
    """The features of some items by the encoder; ``first`` is the position of the first."""
    found = as_array(encoder.encode(chunk))
    if found.ndim != 2 or len(found) != len(chunk) or found.shape[1] == 0 or found.dtype.kind not in "fiub":
        raise EncoderError(
            f"The encoder {encoder.name!r} must give an array of numbers of shape ({len(chunk)}, d) for {len(chunk)}"
            f" items, it gave {found.dtype} of shape {found.shape}."
        )
    is_finite = np.isfinite(found).all(axis=1)
    if not is_finite.all():
        raise EncoderError(
            f"The encoder {encoder.name!r} gives NaN or infinity for item {first + int((~is_finite).argmax())}."
        )
    rows = _of_unit_length(found)
    if isinstance(chunk, list):  # texts; what a model makes of an empty one means nothing
        rows[[not text.strip() for text in chunk]] = 0
    return rows


def _of_unit_length(rows: NDArray) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
