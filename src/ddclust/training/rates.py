"""Learning rates: a first rate, and how it changes in the course of training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Rate(Protocol):
    """A learning rate over the course of training."""

    @property
    def rate(self) -> float: ...

    def schedule(self, n_iterations: int) -> Callable[[int], float]:
        """The rate of each iteration, counted from zero."""


@dataclass(frozen=True)
class ConstantRate:
    """The same learning rate throughout.

    Examples
    --------
    >>> ConstantRate(1e-3).schedule(100)(50)
    0.001
    """

    rate: float

    def __post_init__(self) -> None:
        _check(self)

    def schedule(self, n_iterations: int) -> Callable[[int], float]:
        """The rate of each iteration."""
        return lambda iteration: self.rate


@dataclass(frozen=True)
class CosineRate:
    """A learning rate that falls along half a cosine to zero at the last iteration.

    Examples
    --------
    >>> [round(CosineRate(0.1).schedule(100)(iteration), 3) for iteration in (0, 50, 100)]
    [0.1, 0.05, 0.0]
    """

    rate: float

    def __post_init__(self) -> None:
        _check(self)

    def schedule(self, n_iterations: int) -> Callable[[int], float]:
        """The rate of each iteration."""
        return lambda iteration: self.rate * (1 + math.cos(math.pi * iteration / n_iterations)) / 2


def _check(rate: ConstantRate | CosineRate) -> None:
    if not 0 < rate.rate < float("inf"):
        raise ValueError(f"A learning rate must be a positive number, got {rate.rate!r}.")
    object.__setattr__(rate, "rate", float(rate.rate))
