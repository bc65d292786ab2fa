"""The network of DEC: an encoder with cluster centres, and the layers that pre-train it."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

CORRUPTION = 0.2


class DECNetwork(nn.Module):
    """An encoder and cluster centres in its code space; returns (code, logits).

    The softmax of the logits is the Student-t assignment, Eq. (1) of the DEC paper.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of an item. Items are flattened.
    n_clusters : int
    layers : sequence of int
        Sizes of the encoder's layers; the last one is the dimension of the code.

    Examples
    --------
    >>> code, logits = DECNetwork((20,), 3, (50, 10))(torch.zeros(4, 20))
    >>> code.shape, logits.shape
    (torch.Size([4, 10]), torch.Size([4, 3]))
    """

    def __init__(self, input_shape: tuple[int, ...], n_clusters: int, layers: tuple[int, ...]) -> None:
        super().__init__()
        sizes = (math.prod(input_shape), *layers)
        steps: list[nn.Module] = [nn.Flatten()]
        for n_in, n_out in itertools.pairwise(sizes):
            steps += [nn.Linear(n_in, n_out), nn.ReLU()]
        self.encoder = nn.Sequential(*steps[:-1])  # the code itself is linear
        self.centers = nn.Parameter(torch.zeros(n_clusters, sizes[-1]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(x)  # (n, d)
        return code, student_t_logits(code, self.centers)  # (n, d), (n, k)


def student_t_logits(code: Tensor, centers: Tensor) -> Tensor:
    """The log of the Student-t kernel with one degree of freedom, of shape (n, k).

    Examples
    --------
    >>> student_t_logits(torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [1.0, 0.0]])).softmax(dim=1)
    tensor([[0.6667, 0.3333]])
    """
    squared = (code[:, None] - centers).square().sum(dim=2)  # (n, k)
    return -squared.log1p()


def denoising_pair(
    encoding: nn.Linear, decoding: nn.Linear, *, is_first: bool, is_last: bool
) -> nn.Sequential:
    """One layer and its mirror image as a denoising autoencoder, Eqs. (6) to (9) of the DEC paper.

    The first decoder has no ReLU because data may be negative. The last encoder has none so that the code keeps all
    information.
    """
    return nn.Sequential(
        nn.Dropout(CORRUPTION),
        encoding,
        nn.Identity() if is_last else nn.ReLU(),
        nn.Dropout(CORRUPTION),
        decoding,
        nn.Identity() if is_first else nn.ReLU(),
    )


def initialise(module: nn.Module, pretraining: str) -> None:
    """Initialise every linear layer in place: small random weights as in the paper or, for Adam, He's."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            if pretraining == "sgd":
                nn.init.normal_(layer.weight, std=0.01)
            else:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
