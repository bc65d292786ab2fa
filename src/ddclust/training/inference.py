"""Outputs of a trained network for all items of a source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ddclust.training.memory import freed_memory_kept
from ddclust.training.trainer import Source

# Matrix products round differently for different batch sizes. Every forward pass for users has this
# size, the last one padded, so that the outputs for an item do not depend on the other items.
CHUNK = 256


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


def padded_batches(source: Source, size: int) -> Iterator[tuple[slice, Tensor]]:
    """Consecutive rows of the source, and them as a batch of exactly ``size``, the last one with zeros at its end."""
    for start in range(0, len(source), size):
        rows = slice(start, min(start + size, len(source)))
        x = source.batch(rows)
        if len(x) < size:
            x = torch.cat([x, x.new_zeros((size - len(x), *x.shape[1:]))])
        yield rows, x


def refuse_non_finite(values: Tensor, first_row: int) -> None:
    """An error that names the first item whose values, of shape (n, d), are not all finite."""
    finite = torch.isfinite(values).all(dim=1)
    if not finite.all():
        row = first_row + int((~finite).nonzero()[0])
        raise NonFiniteOutputError(
            f"The network's output for item {row} is not finite: its values lie far outside the"
            " range of the data that the model was fitted on."
        )
