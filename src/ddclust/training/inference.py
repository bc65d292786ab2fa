"""Outputs of a trained network for all items of a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.data.batches import random_items
from ddclust.training.memory import freed_memory_kept
from ddclust.training.trainer import Source

# Matrix products round differently for different batch sizes. Every forward pass for users has this
# size, the last one padded, so that the outputs for an item do not depend on the other items.
CHUNK = 256
KNOWN_ITEMS = 20_000  # whose hidden representation says what a model knows


class NonFiniteOutputError(ArithmeticError):
    """The network's output for an item is NaN or infinite."""


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[torch.device]:
    """Evaluation mode without gradients, and the module's own mode again afterwards."""
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode(), freed_memory_kept():
            yield next(module.parameters()).device
    finally:
        module.train(was_training)


def outputs(module: nn.Module, source: Source) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """(rows, hidden, logits) for consecutive rows of the source, on the CPU."""
    with evaluation_mode(module) as device:
        for rows, x in padded_batches(source, CHUNK):
            n = rows.stop - rows.start
            hidden, logits = (output[:n].cpu() for output in module(x.to(device)))
            refuse_non_finite(logits, rows.start)
            yield rows, hidden, logits


class Outputs(NamedTuple):
    """What a network makes of all items of a source."""

    assignments: NDArray[np.float32]  # (n, n_outputs)
    hidden: NDArray[np.float32]  # (m, d), of the items that `known_items` gives


def known_items(n: int) -> NDArray[np.intp]:
    """The items whose hidden representation is kept."""
    return random_items(n, KNOWN_ITEMS, seed=0)


class Gathered:
    """The outputs of a network, gathered part by part in any order of the items.

    Examples
    --------
    >>> gathered = Gathered(3)
    >>> for item in (2, 0, 1):
    ...     gathered.add(np.array([item]), torch.full((1, 2), float(item)), torch.zeros(1, 4))
    >>> gathered.outputs().hidden[:, 0], gathered.outputs().assignments[0]
    (array([0., 1., 2.], dtype=float32), array([0.25, 0.25, 0.25, 0.25], dtype=float32))
    """

    def __init__(self, n: int) -> None:
        kept = known_items(n)
        self.n, self.n_kept = n, len(kept)
        self.row = np.full(n, -1)  # of each item among those whose hidden representation is kept
        self.row[kept] = np.arange(len(kept))
        self._outputs: Outputs | None = None

    def add(self, items: NDArray[np.intp] | slice, hidden: Tensor, logits: Tensor) -> None:
        """Note the outputs for some of the items."""
        if self._outputs is None:
            self._outputs = Outputs(
                np.empty((self.n, logits.shape[1]), dtype=np.float32),
                np.empty((self.n_kept, hidden.shape[1]), dtype=np.float32),
            )
        self._outputs.assignments[items] = logits.softmax(dim=1).cpu().numpy()
        rows = self.row[items]
        self._outputs.hidden[rows[rows >= 0]] = hidden.cpu().numpy()[rows >= 0]

    def outputs(self) -> Outputs:
        """All of them, once every item has been added."""
        assert self._outputs is not None
        return self._outputs


def padded_batches(source: Source, size: int) -> Iterator[tuple[slice, Tensor]]:
    """Consecutive rows of the source, and them as a batch of exactly ``size``, the last one with zeros at its end."""
    for start in range(0, len(source), size):
        rows = slice(start, min(start + size, len(source)))
        yield rows, padded(source.batch(rows), size)


def padded(x: Tensor, size: int) -> Tensor:
    """A batch with zeros at its end, so that it has exactly ``size`` rows."""
    return x if len(x) == size else torch.cat([x, x.new_zeros((size - len(x), *x.shape[1:]))])


def outputs_in_order(
    module: nn.Module, source: Source, order: NDArray[np.intp], sizes: Iterable[int], device: torch.device
) -> Iterator[tuple[NDArray[np.intp], Tensor, Tensor, Tensor]]:
    """(indices, items, hidden, logits) of batches of these sizes, the items in this order.

    The network gets batches of the size of all others for users, so that an item has the same outputs as there.
    """
    waiting: list[tuple[Tensor, ...]] = []  # (items, hidden, logits) each
    begin = taken = 0  # items that were given away, and that went through the network
    for size in sizes:
        while taken < begin + size:
            indices = order[taken : taken + CHUNK]
            x = source.batch(indices).to(device)
            hidden, logits = (output[: len(x)] for output in module(padded(x, CHUNK)))
            waiting.append((x, hidden, logits))
            taken += len(x)
        together = waiting[0] if len(waiting) == 1 else tuple(map(torch.cat, zip(*waiting, strict=True)))
        x, hidden, logits = (part[:size] for part in together)
        yield order[begin : begin + size], x, hidden, logits
        waiting = [tuple(part[size:] for part in together)]
        begin += size


def refuse_non_finite(values: Tensor, first_row: int) -> None:
    """An error that names the first item whose values, of shape (n, d), are not all finite."""
    finite = torch.isfinite(values).all(dim=1)
    if not finite.all():
        row = first_row + int((~finite).nonzero()[0])
        raise NonFiniteOutputError(
            f"The network's output for item {row} is not finite: its values lie far outside the"
            " range of the data that the model was fitted on."
        )
