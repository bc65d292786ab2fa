"""Networks that readings of the paper try and the library does not have."""

from __future__ import annotations

from torch import Tensor, nn

from ddclust.networks import ConvNet


class RescaledInput(nn.Module):
    """A network behind ``2 x - 1`` or, with ``standardise``, behind a batch normalisation without parameters."""

    def __init__(self, network: nn.Module, n_channels: int, *, standardise: bool) -> None:
        super().__init__()
        self.network = network
        self.norm = nn.BatchNorm2d(n_channels, affine=False) if standardise else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden, logits = self.network(2 * x - 1 if self.norm is None else self.norm(x))
        return hidden, logits


def symmetric_input(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """The convolutional network on pixels in [-1, 1]."""
    return RescaledInput(ConvNet(input_shape, n_clusters), input_shape[0], standardise=False)


def standardised_input(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """The convolutional network on pixels of mean 0 and variance 1."""
    return RescaledInput(ConvNet(input_shape, n_clusters), input_shape[0], standardise=True)


FACTORIES = {function.__name__: function for function in (symmetric_input, standardised_input)}
