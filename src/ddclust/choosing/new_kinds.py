"""Whether new items hold kinds that a fitted model does not know, found without labels.

An item is *unlike* those of the fit if :meth:`ddclust.DDC.predict` would refuse it at 0.05. The rule:

1. Of items like those of the fit one in twenty is unlike by chance. Only if there are so many more that chance explains them
   with a probability below .001, and at least 20 more, are they looked at.
2. Distances are those of the whitened hidden representation, in which known clusters have unit variance. The unlike items are
   parted into g groups by k-means. An item is its group's *own* if it is nearer to the mean of the group without it than to
   the mean of any known cluster. A group is a new kind if at least half of its items, and at least 20, are its own. So items
   that are only odd ones of known kinds make no group.
3. The number of groups is the largest one, up to ten, whose *prediction strength* (Tibshirani and Walther, 2005) is at least
   .8: if half of the groups' own items are grouped, and the other half separately, at least 80 % of the pairs of every group
   of one half stay together if the means of the other half decide. Also, there must be a valley between any two groups:
   along the line through their means, two Gaussians describe their items better than one (BIC), and Ashman's D of these
   two is above 2. One group is always possible.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import random_items

REJECTED = 0.05  # the share of items like those of the fit that are unlike
CHANCE = 0.001
LEAST_ITEMS = 20
STRONG = 0.8
APART = 2.0  # Ashman's D, from which on two Gaussians have two peaks
OWN_SHARE = 0.5
MOST_GROUPS = 10
HALVINGS = 5
SAMPLED = 3_000  # unlike items whose groups are counted, at most
NO_GROUP = -1


@dataclass(frozen=True)
class NewKinds:
    """What is new among new items.

    Parameters
    ----------
    n_items : int
    n_unlike : int
        Items that are unlike those of the fit.
    groups : ndarray of shape (n_items,)
        The new kind of each item, the largest is 0; -1 for all items that are of none.

    Examples
    --------
    >>> print(NewKinds(200, 9, np.full(200, -1)))
    9 of 200 items are unlike those of the fit, no more than chance may explain or without groups of their own: no new kinds.
    >>> print(NewKinds(200, 90, np.repeat([0, 1, -1], [50, 30, 120])))
    90 of 200 items are unlike those of the fit, and form 2 groups of their own, of 50 and 30 items.
    """

    n_items: int
    n_unlike: int
    groups: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        """How many kinds are new."""
        return int(self.groups.max(initial=NO_GROUP)) + 1

    @property
    def sizes(self) -> list[int]:
        """How many unlike items each new kind has."""
        return np.bincount(self.groups[self.groups >= 0], minlength=self.n_groups).tolist()

    def __str__(self) -> str:
        found = f"{self.n_unlike:,} of {self.n_items:,} items are unlike those of the fit"
        if not self.n_groups:
            return f"{found}, no more than chance may explain or without groups of their own: no new kinds."
        *first, last = [f"{size:,}" for size in self.sizes]
        sizes = f"{', '.join(first)} and {last}" if first else last
        what = "a group of its own" if not first else f"{self.n_groups} groups of their own"
        return f"{found}, and form {what}, of {sizes} items."


def new_kinds(
    white: NDArray[np.floating],
    unlike: NDArray[np.bool_],
    known_means: NDArray[np.floating],
    n_wanted: int | None = None,
) -> NewKinds:
    """The kinds among new items that are not known; see the rule of this module.

    Parameters
    ----------
    white : ndarray of shape (n_items, d)
        Whitened hidden representation.
    unlike : ndarray of shape (n_items,)
        Which items :meth:`ddclust.choosing.rejection.KnownItems.refused` names at ``REJECTED``.
    known_means : ndarray of shape (n_outputs, d)
        Whitened means of what is known.
    n_wanted : int, optional
        The number of groups, if it is known. Then the unlike items are parted into so many without any further question.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> known, new = rng.normal(0, 1, (300, 5)), rng.normal(9, 1, (60, 5))
    >>> found = new_kinds(np.r_[known, new], np.arange(360) >= 300, np.zeros((1, 5)))
    >>> found.n_groups, found.sizes
    (1, [60])
    """
    n, places = len(white), np.flatnonzero(unlike)
    nothing = NewKinds(n, len(places), np.full(n, NO_GROUP))
    if n_wanted is None and not are_too_many(len(places), n):
        return nothing
    rows = white[places].astype(np.float64)
    if n_wanted is not None and len(rows) < n_wanted:
        raise ValueError(
            f"Only {len(rows)} of {n} items are unlike those of the fit, too few for new_clusters={n_wanted}."
        )
    means: NDArray[np.float64] = known_means.astype(np.float64)
    if n_wanted is None:
        some = random_items(len(rows), SAMPLED, seed=0)
        parts = parted(rows, number_of_groups(rows[some], means))
        own = are_own(rows, parts, means)
    else:
        parts, own = parted(rows, n_wanted), np.ones(len(rows), dtype=bool)
    sizes, own_sizes = np.bincount(parts), np.bincount(parts[own], minlength=parts.max() + 1)
    kinds = [
        group
        for group in np.argsort(-own_sizes, kind="stable")
        if n_wanted is not None or own_sizes[group] >= max(LEAST_ITEMS, OWN_SHARE * sizes[group])
    ]
    groups = nothing.groups
    for number, group in enumerate(kinds):
        groups[places[own & (parts == group)]] = number
    return NewKinds(n, len(places), groups)


def are_too_many(n_unlike: int, n_items: int) -> bool:
    """Whether there are more unlike items than chance explains.

    Examples
    --------
    >>> are_too_many(60, 1000), are_too_many(100, 1000), are_too_many(10, 20)
    (False, True, False)
    """
    from scipy.stats import binom

    enough = n_unlike - REJECTED * n_items >= LEAST_ITEMS
    return bool(enough and binom.sf(n_unlike - 1, n_items, REJECTED) < CHANCE)


def parted(rows: NDArray[np.float64], n_groups: int) -> NDArray[np.int64]:
    """The group of each row by k-means."""
    from sklearn.cluster import KMeans

    if n_groups == 1:
        return np.zeros(len(rows), dtype=np.int64)
    return KMeans(n_groups, n_init=10, random_state=0).fit_predict(rows).astype(np.int64)


def are_own(
    rows: NDArray[np.float64], parts: NDArray[np.int64], known_means: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether each row is nearer to the mean of its group without it than to any known mean."""
    sizes = np.bincount(parts)
    means = np.stack([rows[parts == group].mean(axis=0) for group in range(len(sizes))])
    to_group = np.linalg.norm(rows - means[parts], axis=1) * (sizes / np.maximum(sizes - 1, 1))[parts]
    to_known = np.min([np.linalg.norm(rows - mean, axis=1) for mean in known_means], axis=0)
    return (to_group < to_known) & (sizes[parts] > 1)


def number_of_groups(rows: NDArray[np.float64], known_means: NDArray[np.float64]) -> int:
    """The largest number of groups that half of their own items predict for the other half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.concatenate([rng.normal(centre, 1, (50, 3)) for centre in (5, 14, 23)])
    >>> number_of_groups(rows, np.zeros((1, 3))), number_of_groups(rows[:50], np.zeros((1, 3)))
    (3, 1)
    """
    best = 1
    for n_groups in range(2, min(MOST_GROUPS, len(rows) // LEAST_ITEMS) + 1):
        parts = parted(rows, n_groups)
        own = are_own(rows, parts, known_means)
        groups = [rows[own & (parts == group)] for group in range(n_groups)]
        if min(map(len, groups)) < LEAST_ITEMS or not all(
            has_valley(first, second) for first, second in itertools.combinations(groups, 2)
        ):
            continue
        if prediction_strength(rows[own], n_groups) >= STRONG:
            best = n_groups
    return best


def has_valley(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Whether there are fewer items between two groups than within them, along the line through their means.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> has_valley(rows[rows[:, 0] < 0], rows[rows[:, 0] > 0]), has_valley(rows, rows + 5)
    (False, True)
    """
    from sklearn.mixture import GaussianMixture

    along = np.concatenate([first, second]) @ (second.mean(axis=0) - first.mean(axis=0))
    line = ((along - along.mean()) / max(along.std(), np.finfo(float).tiny))[:, None]
    one, two = (GaussianMixture(n, n_init=3 * n - 2, random_state=0).fit(line) for n in (1, 2))
    distance = float(np.abs(np.diff(two.means_[:, 0]))[0])
    ashman = distance / np.sqrt(two.covariances_.mean())
    return bool(two.bic(line) < one.bic(line) and ashman > APART)


def prediction_strength(rows: NDArray[np.float64], n_groups: int) -> float:
    """The least share, over groups of one half, of pairs that the means of the other half keep together; a mean of halvings."""
    from sklearn.cluster import KMeans

    rng, strengths = np.random.default_rng(0), []
    for _ in range(HALVINGS):
        halves = np.array_split(rng.permutation(len(rows)), 2)
        first, second = (
            KMeans(n_groups, n_init=5, random_state=0).fit(rows[half].astype(np.float64)) for half in halves
        )
        predicted = first.predict(rows[halves[1]])
        counts = np.zeros((n_groups, n_groups))
        np.add.at(counts, (second.labels_, predicted), 1)
        sizes = counts.sum(axis=1)
        together = (counts * (counts - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1)
        strengths.append(float(together.min()))
    return float(np.mean(strengths))
