"""The training loop. It knows modules, batches and scalars to minimise, and nothing about clustering."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.training.memory import freed_memory_kept

# A history record closes at the end of the epoch that brings it to this many iterations, so that on
# small data records, and the decision that a run has converged, rest on more than a few batches.
MIN_RECORD_ITERATIONS = 50
# Weights of this size mean that training has diverged, though they are still finite numbers.
EXPLODED = 1e6

Record = dict[str, Any]
# (module, batch, indices of the batch's items, iteration) -> a NamedTuple of scalars, whose sum is minimised. An objective that
# changes as it is called has `state()`, tensors by name, and `restore(tensors)`.
Objective = Callable[[nn.Module, Tensor, NDArray[np.intp], int], Any]
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "sgd": partial(torch.optim.SGD, momentum=0.9, fused=True),
}


class Source(Protocol):
    """Anything with a length that gives a float32 batch for an array of indices, and a random order of them."""

    def __len__(self) -> int: ...

    def batch(self, indices: Any) -> Tensor: ...

    def order(self, rng: np.random.Generator) -> NDArray[np.intp]: ...


@dataclass(frozen=True)
class EarlyStopping:
    """When a run has converged: after ``patience`` records of the history without an improvement.

    Parameters
    ----------
    patience : int, default=10
        Records (epochs, or 50 iterations and up on small data) without an improvement.
    tol : float, default=1e-3
        Relative improvement of the loss over the best record so far that counts as one.

    Examples
    --------
    >>> EarlyStopping(patience=2).has_converged([3.0, 2.0, 1.0, 0.9999, 1.1])
    True
    >>> EarlyStopping(patience=2).has_converged([3.0, 2.0, 1.0, 0.9])
    False
    """

    patience: int = 10
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if int(self.patience) != self.patience or self.patience < 1:
            raise ValueError(f"patience must be a whole number of at least 1, got {self.patience!r}.")
        if not 0 <= self.tol < float("inf"):
            raise ValueError(f"tol must be a non-negative number, got {self.tol!r}.")
        object.__setattr__(self, "patience", int(self.patience))
        object.__setattr__(self, "tol", float(self.tol))

    def has_converged(self, losses: list[float]) -> bool:
        """Whether the losses of the records so far have stopped falling."""
        if len(losses) <= self.patience:
            return False
        best = min(losses[: -self.patience])
        return min(losses[-self.patience :]) >= best - self.tol * abs(best)


class NonFiniteLossError(ArithmeticError):
    """The loss became NaN or infinite."""


def split_batches(order: NDArray[np.intp], batch_size: int) -> list[NDArray[np.intp]]:
    """The indices in batches of nearly equal size, at most ``batch_size`` and at least two items.

    Examples
    --------
    >>> [len(batch) for batch in split_batches(np.arange(201), 100)]
    [67, 67, 67]
    """
    n = len(order)
    return np.array_split(order, max(min(math.ceil(n / batch_size), n // 2), 1))


class Trainer:
    """Gradient descent on reshuffled batches, resumable at any iteration.

    Everything that happens is a function of the seed, the iteration and the state, so a trainer that
    is given another's :meth:`state` goes on exactly as that one would have.

    Parameters
    ----------
    module : nn.Module
        Trained in place, on the device where its parameters are.
    source : Source
    objective : callable (module, batch, indices, iteration) -> NamedTuple of scalars
    batch_size : int, default=100
    learning_rate : float or callable (iteration) -> float, default=1e-3
        A callable gives the rate of each iteration, counted from zero.
    seed : int, default=0
        Of the order of batches: each epoch has a permutation of its own.
    optimizer : {"adam", "sgd"}, default="adam"
        ``"sgd"`` has a momentum of 0.9.

    Attributes
    ----------
    iteration : int
    history : list of dict
        One record for every epoch, or for as many epochs as make 50 iterations: ``epoch``,
        ``iteration``, ``loss`` and each term, averaged over the record's iterations.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Source(list):
    ...     def batch(self, indices):
    ...         return torch.tensor([self[i] for i in indices])
    ...     def order(self, rng):
    ...         return rng.permutation(len(self))
    >>> class Error(NamedTuple):
    ...     square: Tensor
    >>> module = nn.Linear(1, 1)
    >>> trainer = Trainer(module, Source([[1.0], [2.0], [3.0]]),
    ...     lambda module, x, indices, iteration: Error((module(x) - 2 * x).square().mean()), learning_rate=0.1)
    >>> trainer.advance(400)
    'budget'
    >>> trainer.history[-1]["loss"] < 1e-3
    True
    """

    def __init__(
        self,
        module: nn.Module,
        source: Source,
        objective: Objective,
        *,
        batch_size: int = 100,
        learning_rate: float | Callable[[int], float] = 1e-3,
        seed: int = 0,
        optimizer: str = "adam",
    ) -> None:
        self.module = module
        self.source = source
        self.objective = objective
        self.batch_size = batch_size
        self.seed = seed
        self.schedule = learning_rate if callable(learning_rate) else None
        rate = learning_rate(0) if callable(learning_rate) else learning_rate
        self.optimizer = OPTIMIZERS[optimizer](module.parameters(), lr=rate)
        self.batches_per_epoch = len(split_batches(np.arange(len(source)), batch_size))
        self.iteration = 0
        self.history: list[Record] = []
        self._open: Record = {}  # sums of the terms since the last record, and "steps"

    @freed_memory_kept()
    def advance(
        self,
        until: int,
        *,
        early_stopping: EarlyStopping | None = None,
        settled: int = 0,
        on_step: Callable[[Trainer, float], bool | None] | None = None,
    ) -> str:
        """Train up to iteration ``until``, or until the loss has stopped falling.

        Parameters
        ----------
        until : int
        early_stopping : EarlyStopping, optional
            When the run has converged; by default it never has.
        settled : int, default=0
            Iteration from which on the objective stays the same. Earlier losses do not count for ``early_stopping``.
        on_step : callable (trainer, loss), optional
            Called after every iteration; if it returns True, the training stops there.

        Returns
        -------
        str
            "converged", "budget", or "stopped" by ``on_step``.
        """
        self.module.train()
        device = next(self.module.parameters()).device
        # on_step may save the state. So everything that follows from the step must be in it by then, and what is
        # decided afterwards must be decided again when training goes on from that state.
        if self._has_converged(early_stopping, settled):
            return "converged"
        for indices in self._batches(until):
            loss = self._step(self.source.batch(indices).to(device), indices)
            at_epoch_end = self.iteration % self.batches_per_epoch == 0
            closed = at_epoch_end and self._open["steps"] >= MIN_RECORD_ITERATIONS
            if closed:
                self.close_record()
            if on_step is not None and on_step(self, loss):
                return "stopped"
            if closed and self._has_converged(early_stopping, settled):
                return "converged"
        return "budget"

    def close_record(self) -> None:
        """Add what has been summed since the last record to the history, if there is anything."""
        steps = self._open.pop("steps", 0)
        if steps:
            means = {term: total / steps for term, total in self._open.items()}
            epoch = self.iteration / self.batches_per_epoch
            record = {"epoch": round(epoch, 4), "iteration": self.iteration}
            self.history.append({**record, "loss": sum(means.values()), **means})
            self._open = {}

    def state(self) -> tuple[dict[str, Tensor], Record]:
        """All that :meth:`restore` needs, as tensors by name and plain JSON-able values."""
        tensors = {f"module.{name}": value for name, value in self.module.state_dict().items()}
        for i, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{name}": value for name, value in values.items()}
        if hasattr(self.objective, "state"):
            tensors |= {f"objective.{name}": value for name, value in self.objective.state().items()}
        tensors["rng"] = torch.get_rng_state()
        plain = {"iteration": self.iteration, "history": self.history, "open": self._open}
        return tensors, plain

    def restore(self, tensors: dict[str, Tensor], plain: Record) -> None:
        """Go on from another trainer's :meth:`state`."""
        own = self.optimizer.state_dict()
        moments: dict[int, dict[str, Tensor]] = {}
        weights, learned = {}, {}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "module":
                weights[rest] = value
            elif kind == "optimizer":
                i, _, moment = rest.partition(".")
                moments.setdefault(int(i), {})[moment] = value
            elif kind == "objective":
                learned[rest] = value
        self.module.load_state_dict(weights)
        # The fused optimiser walks through memory: its moments must lie there as the weights do.
        for number, parameter in enumerate(self.module.parameters()):
            for moment, value in moments.get(number, {}).items():
                if value.shape == parameter.shape:
                    moments[number][moment] = torch.empty_like(parameter).copy_(value)
        self.optimizer.load_state_dict({**own, "state": moments})
        if hasattr(self.objective, "restore"):
            self.objective.restore(learned)
        torch.set_rng_state(tensors["rng"])
        self.iteration = plain["iteration"]
        self.history = [dict(record) for record in plain["history"]]
        self._open = dict(plain["open"])

    def _has_converged(self, early_stopping: EarlyStopping | None, settled: int) -> bool:
        """Whether the record that was closed at this very iteration, if any, ends the run."""
        if early_stopping is None or not self.history or self.history[-1]["iteration"] != self.iteration:
            return False
        # A record that was open when the objective settled is of both forms.
        ends = [0] + [record["iteration"] for record in self.history]
        losses = [r["loss"] for begin, r in zip(ends, self.history, strict=False) if begin >= settled]
        return early_stopping.has_converged(losses)

    def _step(self, x: Tensor, indices: NDArray[np.intp]) -> float:
        """One update of the weights; returns the loss before it."""
        terms = self.objective(self.module, x, indices, self.iteration)
        stacked = torch.stack(list(terms))
        values: list[float] = stacked.tolist()  # the one moment of a step at which a device is waited for
        if not all(map(math.isfinite, values)):
            raise NonFiniteLossError(self._diagnosis(x, terms))
        self.optimizer.zero_grad(set_to_none=True)
        stacked.sum().backward()
        if self.schedule is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.schedule(self.iteration)
        self.optimizer.step()
        self.iteration += 1
        self._open["steps"] = self._open.get("steps", 0) + 1
        for name, value in zip(terms._fields, values, strict=True):
            self._open[name] = self._open.get(name, 0.0) + value
        return sum(values)

    def _diagnosis(self, x: Tensor, terms: Any) -> str:
        """Where a non-finite loss comes from, and what to do about it."""
        where = f"The loss is not finite at iteration {self.iteration + 1}"
        if not torch.isfinite(x).all():
            return f"{where}: the input batch holds NaN or infinite values; clean or rescale the data."
        if not all(bool((p.abs() < EXPLODED).all()) for p in self.module.parameters()):
            rate = self.optimizer.param_groups[0]["lr"]
            return (
                f"{where}: the weights of the network have grown beyond all bounds, most likely because"
                f" learning_rate={rate:g} is too large; try a tenth of it."
            )
        names = [n for n, v in zip(terms._fields, terms, strict=True) if not math.isfinite(v.item())]
        return (
            f"{where}: the data and weights are finite, but the loss term {' and '.join(names)} is not;"
            " check the loss and the network's outputs for overflow."
        )

    def _batches(self, until: int) -> Iterator[NDArray[np.intp]]:
        """Batches from the current iteration on, each epoch in an order of its own."""
        while self.iteration < until:
            epoch, done = divmod(self.iteration, self.batches_per_epoch)
            order = self.source.order(np.random.default_rng((self.seed, epoch)))
            yield from split_batches(order, self.batch_size)[done : done + until - self.iteration]
