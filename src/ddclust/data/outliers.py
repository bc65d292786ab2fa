"""A few rows so far from the others that scaling leaves no difference between these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ddclust.data.batches import Scaling, random_items
from ddclust.data.items import BLOCK_BYTES, Items, SparseItems, blocks, described_column, refuse_shrunken
from ddclust.data.views import ViewItems

# The spread of a column without its most extreme values is judged by so many rows.
SAMPLED_ROWS = 2000
LEFT_OUT, LEAST_LEFT_OUT = 0.02, 5
# A column is spoilt if its standard deviation is so many times the spread of nearly all its values. Clusters of blobs
# were found up to a ratio of 5,000 and lost at 50,000; heavy tails, such as log-normal ones, stay below 100.
SPOILT = 1000
SHOWN = 5


class OutlierWarning(UserWarning):
    """A few rows lie so far from the others that these look alike after scaling.

    Parameters
    ----------
    rows, columns : sequence of int
        Where the extreme values are, counted from 0.
    n_rows : int
        Number of all rows.
    names : sequence of str, optional
        Names of all columns.
    """

    def __init__(
        self, rows: Sequence[int], columns: Sequence[int], n_rows: int, names: Sequence[str] | None = None
    ) -> None:
        self.rows, self.columns, self.n_rows = rows, columns, n_rows
        shown_columns = _first([described_column(column, names) for column in columns])
        super().__init__(
            f"{len(rows):,} of {n_rows:,} rows lie so far out that the others look alike after scaling: row"
            f" {_first(rows)}, in column {shown_columns} (counted from 0). Remove these rows, or clip or transform the"
            " columns, by scikit-learn's QuantileTransformer for example."
        )

    def with_names(self, names: Sequence[str] | None) -> Self:
        """The same with names of columns."""
        return type(self)(self.rows, self.columns, self.n_rows, names)


def outliers(X: Items, scaling: Scaling, column_names: Sequence[str] | None = None) -> OutlierWarning | None:
    """A warning if a few rows of dense vectors rule their scaling, else None.

    Columns of which half the values are equal are left out: a value other than zero is rare there by nature.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> outliers(X, Scaling.of(X)) is None
    True
    >>> X[:3, 1] = 1e9
    >>> print(outliers(X, Scaling.of(X), ["age", "pay"]))
    3 of 200 rows lie so far out that the others look alike after scaling: row 0, 1, 2, in column 1 ('pay') ...
    """
    if len(X.shape) != 2 or isinstance(X, (SparseItems, ViewItems)):
        return None
    most = max(min(SAMPLED_ROWS, BLOCK_BYTES // (8 * X.shape[1])), 100)
    refuse_shrunken(X)
    values = X[random_items(len(X), most, seed=0)].astype(np.float64)
    middle = np.median(values, axis=0)
    spread, deviation = _usual_spread(np.abs(values - middle)), 1 / scaling.scale
    columns = np.flatnonzero((spread > 0) & (deviation > SPOILT * spread))
    if not len(columns):
        return None
    far = [
        (np.abs(block[:, columns].astype(np.float64) - middle[columns]) > deviation[columns]).any(axis=1)
        for block in blocks(X)
    ]
    rows = np.flatnonzero(np.concatenate(far))
    return OutlierWarning(rows.tolist(), columns.tolist(), len(X), column_names)


def _usual_spread(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean square per column, without the largest; 0 if at least half of the distances are 0."""
    n = len(distances)
    kept = n - max(math.ceil(LEFT_OUT * n), min(LEAST_LEFT_OUT, n // 4))
    ordered = np.sort(distances, axis=0)
    return np.where(ordered[n // 2] > 0, np.sqrt(np.square(ordered[:kept]).mean(axis=0)), 0.0)


def _first(words: Sequence[object]) -> str:
    """The first few, separated by commas."""
    return ", ".join(map(str, words[:SHOWN])) + (", ..." if len(words) > SHOWN else "")
