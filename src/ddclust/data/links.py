"""Links: pairs of items that must, or must not, share a cluster. Contradictions are found before training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components

SHOWN_IN_CHAIN = 12


class LinkError(ValueError):
    """Links that are not pairs of items, or that contradict each other."""


class Links(NamedTuple):
    """Positions of the pairs that must share a cluster, and of those that must not, both (m, 2)."""

    must: NDArray[np.intp]
    cannot: NDArray[np.intp]


def checked_links(
    must_link: Any,
    cannot_link: Any,
    *,
    n_items: int,
    n_clusters: int,
    item_names: Sequence[str] | None = None,
) -> Links:
    """The links as arrays, checked for contradictions.

    Items joined by a chain of must-links must share a cluster too, so a cannot-link between such items is refused.
    Whether ``n_clusters`` clusters can satisfy the other cannot-links is a graph colouring problem, for which no fast
    algorithm is known; it is left to the training.

    Parameters
    ----------
    must_link, cannot_link : array-like of int of shape (m, 2), or None
        Positions of items; or, as ``must_link`` alone, links that were checked before.
    n_items : int
    n_clusters : int
    item_names : sequence of str, optional
        Names for the items in error messages, instead of their positions.

    Returns
    -------
    Links

    Examples
    --------
    >>> checked_links([[0, 1], [1, 2]], [[0, 3]], n_items=5, n_clusters=2).cannot
    array([[0, 3]])
    >>> checked_links([[0, 1], [1, 2]], [[2, 0]], n_items=5, n_clusters=2)
    Traceback (most recent call last):
    ddclust.data.links.LinkError: cannot_link separates items 2 and 0, but must_link joins them: 2 - 1 - 0.
    """

    def name(item: int) -> str:
        return str(item) if item_names is None else repr(item_names[item])

    if isinstance(must_link, Links) and cannot_link is None:
        return must_link  # they were checked when they were read
    must = _pairs(must_link, "must_link", n_items)
    cannot = _pairs(cannot_link, "cannot_link", n_items)
    must = must[must[:, 0] != must[:, 1]]  # always satisfied
    alone = cannot[cannot[:, 0] == cannot[:, 1]]
    if len(alone):
        raise LinkError(f"cannot_link separates item {name(int(alone[0, 0]))} from itself.")
    if len(cannot) and n_clusters == 1:
        raise LinkError("cannot_link separates items, but n_clusters=1 puts all of them into one cluster.")
    graph = scipy.sparse.coo_array((np.ones(len(must)), must.T), shape=(n_items, n_items)).tocsr()
    n_groups, group = connected_components(graph, directed=False)
    if len(must) and n_groups < n_clusters:
        raise LinkError(
            f"must_link joins the {n_items} items to {n_groups} groups, fewer than n_clusters={n_clusters}; ask for"
            " fewer clusters, or remove links."
        )
    contradictory = cannot[group[cannot[:, 0]] == group[cannot[:, 1]]]
    if len(contradictory):
        first, last = contradictory[0].tolist()
        chain = [name(item) for item in _chain(graph, first, last)]
        if len(chain) > SHOWN_IN_CHAIN:
            half = SHOWN_IN_CHAIN // 2
            chain = [*chain[:half], f"({len(chain) - 2 * half} more)", *chain[-half:]]
        raise LinkError(
            f"cannot_link separates items {name(first)} and {name(last)}, but must_link joins them:"
            f" {' - '.join(chain)}."
        )
    return Links(must, cannot)


def _pairs(given: Any, name: str, n_items: int) -> NDArray[np.intp]:
    """The pairs as an array of positions, (m, 2)."""
    if given is None:
        return np.empty((0, 2), dtype=np.intp)
    try:
        pairs = np.asarray(given)
    except ValueError as error:
        raise LinkError(f"{name} must hold pairs of items, an array of shape (m, 2).") from error
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise LinkError(
            f"{name} must hold pairs of items, an array of shape (m, 2), got shape {pairs.shape}."
        )
    if pairs.dtype.kind not in "iu":
        raise LinkError(
            f"{name} must hold positions of items, whole numbers, got values of type {pairs.dtype}."
        )
    outside = (pairs < 0) | (pairs >= n_items)
    if outside.any():
        row = int(outside.any(axis=1).argmax())
        raise LinkError(
            f"{name} names item {pairs[row][outside[row]][0]} in row {row}, but X has the items 0 to {n_items - 1}."
        )
    return pairs.astype(np.intp)


def _chain(graph: Any, first: int, last: int) -> list[int]:
    """The shortest path between two items of a graph."""
    _, before = breadth_first_order(graph, first, directed=False)
    way = [last]
    while way[-1] != first:
        way.append(int(before[way[-1]]))
    return way[::-1]
