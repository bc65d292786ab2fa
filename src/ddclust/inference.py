"""What a trained network says of data, item by item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ddclust.training import Source

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
