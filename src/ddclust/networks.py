"""The paper's two networks. Each maps a batch to its hidden representation and its cluster scores.

Activations are ``nn.ReLU`` modules, never ``F.relu``: guided backpropagation hooks modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

Init = Literal["soft", "he"]
INITS: tuple[str, ...] = get_args(Init)
NetworkFactory = Callable[[tuple[int, ...], int], nn.Module]

SMALLEST_IMAGE = 8
# Below this side two 5x5 convolutions and two poolings leave nothing, unless the borders are padded.
SMALLEST_UNPADDED = 16
SOFT_START = 0.1


class ClusteringHead(nn.Module):
    """ReLU, batch normalisation, then the output layer; returns (hidden, logits).

    The kernel of the loss is computed on ``hidden``, the normalised representation. With ``norm_first`` the
    normalisation comes before the ReLU, another reading of the paper.
    """

    def __init__(self, n_hidden: int, n_clusters: int, *, norm_first: bool = False) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.relu = nn.ReLU()
        self.norm = nn.BatchNorm1d(n_hidden)
        self.output = nn.Linear(n_hidden, n_clusters)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.relu(self.norm(x)) if self.norm_first else self.norm(self.relu(x))  # (n, n_hidden)
        return hidden, self.output(hidden)  # (n, n_hidden), (n, k)


class ConvNet(nn.Module):
    """The paper's convolutional network: 32 and 64 5x5 filters, 2x2 max pooling, a layer of 100.

    Parameters
    ----------
    input_shape : tuple (channels, height, width)
        Height and width of at least 8. Images under 16 pixels are padded by two pixels before each
        convolution, larger ones are not.
    n_clusters : int
    init : {"soft", "he"}, default="soft"
        See :func:`initialise`.
    norm_first : bool, default=False
        See :class:`ClusteringHead`.

    Examples
    --------
    >>> hidden, logits = ConvNet((1, 28, 28), 10)(torch.zeros(4, 1, 28, 28))
    >>> hidden.shape, logits.shape
    (torch.Size([4, 100]), torch.Size([4, 10]))
    """

    def __init__(
        self, input_shape: tuple[int, ...], n_clusters: int, *, init: Init = "soft", norm_first: bool = False
    ) -> None:
        super().__init__()
        channels, height, width = input_shape
        if min(height, width) < SMALLEST_IMAGE:
            raise ValueError(
                f"The convolutional network needs images of at least {SMALLEST_IMAGE}x{SMALLEST_IMAGE}"
                f" pixels, got {height}x{width}; enlarge them, or use network='mlp'."
            )
        padding = 2 if min(height, width) < SMALLEST_UNPADDED else 0

        def after_block(side: int) -> int:
            return (side + 2 * padding - 4) // 2

        n_flat = 64 * after_block(after_block(height)) * after_block(after_block(width))
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 5, padding=padding),
            nn.MaxPool2d(2),  # before the ReLU: the same values, a quarter of the work
            nn.ReLU(),
            nn.Conv2d(32, 64, 5, padding=padding),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(n_flat, 100),
        )
        self.head = ClusteringHead(100, n_clusters, norm_first=norm_first)
        initialise(self, init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.contiguous(memory_format=torch.channels_last)
        hidden, logits = self.head(self.features(x))
        return hidden, logits


class MLP(nn.Module):
    """The paper's fully connected network: layers of 200, 200 and 500 (any input shape is flattened).

    Parameters
    ----------
    input_shape : tuple of int
    n_clusters : int
    init : {"soft", "he"}, default="soft"
        See :func:`initialise`.
    norm_first : bool, default=False
        See :class:`ClusteringHead`.

    Examples
    --------
    >>> hidden, logits = MLP((20,), 3)(torch.zeros(4, 20))
    >>> hidden.shape, logits.shape
    (torch.Size([4, 500]), torch.Size([4, 3]))
    """

    def __init__(
        self, input_shape: tuple[int, ...], n_clusters: int, *, init: Init = "soft", norm_first: bool = False
    ) -> None:
        super().__init__()
        n_features = 1
        for side in input_shape:
            n_features *= side
        self.features = nn.Sequential(
            nn.Flatten(),
            nn.Linear(n_features, 200),
            nn.ReLU(),
            nn.Linear(200, 200),
            nn.ReLU(),
            nn.Linear(200, 500),
        )
        self.head = ClusteringHead(500, n_clusters, norm_first=norm_first)
        initialise(self, init)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden, logits = self.head(self.features(x))
        return hidden, logits


def initialise(network: ConvNet | MLP, init: Init) -> None:
    """He initialisation of every layer, in place; with ``"soft"`` the output layer starts near zero.

    ``"he"`` is the paper's. On a batch-normalised hidden layer it makes the random first assignments
    confident, and a run then tends to freeze that random partition. ``"soft"`` multiplies the output
    weights by 0.1, so that every point starts undecided, and results improve a great deal.
    """
    if init not in INITS:
        raise ValueError(f"init must be one of {INITS}, got {init!r}.")
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
    if init == "soft":
        with torch.no_grad():
            # Departs from the paper: He initialisation here freezes random partitions.
            network.head.output.weight.mul_(SOFT_START)
