"""What a trained network says of data: outputs for every item, and a loss over the whole data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from ddclust.training import Objective, Source, split_batches

# Matrix products round differently for different batch sizes. Every forward pass for users has this
# size, the last one padded, so that an item's outputs are the same to the bit whatever its company.
CHUNK = 256


class NonFiniteOutputError(ArithmeticError):
    """The network's output for an item is NaN or infinite."""


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[torch.device]:
    """Evaluation mode without gradients, and the module's own mode again afterwards."""
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield next(module.parameters()).device
    finally:
        module.train(was_training)


def outputs(module: nn.Module, source: Source) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """(rows, hidden, logits) for consecutive rows of the source, on the CPU."""
    with evaluation_mode(module) as device:
        for start in range(0, len(source), CHUNK):
            rows = slice(start, min(start + CHUNK, len(source)))
            x = source.batch(rows)
            n = len(x)
            if n < CHUNK:
                x = torch.cat([x, x.new_zeros((CHUNK - n, *x.shape[1:]))])
            hidden, logits = (output[:n].cpu() for output in module(x.to(device)))
            finite = torch.isfinite(logits).all(dim=1)
            if not finite.all():
                row = start + int((~finite).nonzero()[0])
                raise NonFiniteOutputError(
                    f"The network's output for item {row} is not finite: its values lie far outside the"
                    " range of the data that the model was fitted on."
                )
            yield rows, hidden, logits


def evaluate(module: nn.Module, source: Source, objective: Objective, batch_size: int) -> dict[str, float]:
    """Each term of the objective in evaluation mode, averaged over the whole data in fixed batches.

    The batches are the same for every module, so that values of different runs can be compared.
    """
    order = np.random.default_rng(0).permutation(len(source))  # data files are often sorted by class
    totals: dict[str, float] = {}
    with evaluation_mode(module) as device:
        for indices in split_batches(order, batch_size):
            terms = objective(module, source.batch(indices).to(device), indices)
            for name, value in zip(terms._fields, terms, strict=True):
                totals[name] = totals.get(name, 0.0) + value.item() * len(indices) / len(source)
    return totals
