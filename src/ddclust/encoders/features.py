"""The features of items: computed once, a few hundred items at a time, and kept by the content of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddclust.data.items import as_array, fingerprint, refuse_shrunken, release_pages
from ddclust.encoders.cache import Cache, cache_of, key_of
from ddclust.encoders.encoder import Encoder, EncoderError
from ddclust.progress import Bar
from ddclust.storage.scratch import scratch_array

CHUNK = 512


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


def _rows(chunk: Any, encoder: Encoder, cache: Cache, first: int) -> NDArray[np.float32]:
    """The features of some items, from the cache or by the encoder."""
    key = key_of(encoder, fingerprint(chunk))
    known = cache.read(key)
    if known is not None and len(known) == len(chunk):
        return known
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
    cache.write(key, rows)
    return rows


def _of_unit_length(rows: NDArray) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
