"""The paper's two networks. Each maps a batch to its hidden representation and its cluster scores.

Activations are ``nn.ReLU`` modules, never ``F.relu``, since guided backpropagation hooks modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ddclust.data.batches import in_network_layout, input_shape

Init = Literal["soft", "he"]
INITS: tuple[str, ...] = ("auto", *get_args(Init))
KINDS = ("auto", "conv", "mlp")
NetworkFactory = Callable[[tuple[int, ...], int], nn.Module]

SMALLEST_IMAGE = 8
# Below this side two 5x5 convolutions and two poolings leave nothing, unless the borders are padded.
SMALLEST_UNPADDED = 16
SOFT_START = 0.1


@dataclass(frozen=True)
class Network:
    """One of the built-in networks; call it with ``(input_shape, n_clusters)`` to build the module.

    Parameters
    ----------
    kind : {"auto", "conv", "mlp"}, default="auto"
        ``"conv"`` is the paper's network for images, ``"mlp"`` the one for vectors. ``"auto"`` takes
        ``"conv"`` for images of at least 8x8 pixels and ``"mlp"`` for everything else.
    init : {"auto", "soft", "he"}, default="soft"
        How the output layer is initialised: near zero, so that all items start undecided, or as in the paper. See
        :func:`initialise`. ``"auto"`` takes ``"he"`` for ``"conv"`` and ``"soft"`` for ``"mlp"``, which is best without pairs.
    norm_first : bool, default=False
        Whether batch normalisation comes before the ReLU of the hidden layer instead of after it.

    Examples
    --------
    >>> Network().kind_for((1, 28, 28)), Network().kind_for((20,))
    ('conv', 'mlp')
    >>> type(Network(init="he")((20,), 3)).__name__
    'MLP'
    """

    kind: str = "auto"
    init: str = "soft"
    norm_first: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {self.kind!r}.")
        if self.init not in INITS:
            raise ValueError(f"init must be one of {INITS}, got {self.init!r}.")

    def kind_for(self, input_shape: tuple[int, ...]) -> str:
        """Which network items of a shape get, "conv" or "mlp"."""
        is_image = len(input_shape) == 3
        if self.kind == "conv" and not is_image:
            raise ValueError(
                f"network='conv' needs images of shape (n, h, w), (n, h, w, c) or (n, c, h, w), got vectors of"
                f" {input_shape[0]} features; reshape X, or use network='mlp'."
            )
        if self.kind != "auto":
            return self.kind
        return "conv" if is_image and min(input_shape[1:]) >= SMALLEST_IMAGE else "mlp"

    def init_for(self, kinds: Sequence[str]) -> Init:
        """How the output layer above one network, or one of each view, is initialised."""
        if self.init == "auto":
            return "he" if "conv" in kinds else "soft"
        return "he" if self.init == "he" else "soft"

    def __call__(self, input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
        kind = self.kind_for(input_shape)
        build = {"conv": ConvNet, "mlp": MLP}[kind]
        return build(input_shape, n_clusters, init=self.init_for([kind]), norm_first=self.norm_first)


@dataclass(frozen=True)
class NetworkOfViews:
    """A built-in network for each view of the items, fused; it takes the views in a row."""

    network: Network
    view_shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "view_shapes", tuple(tuple(shape) for shape in self.view_shapes))

    def kinds(self) -> list[str]:
        """Which network each view gets."""
        return [self.network.kind_for(input_shape(shape)) for shape in self.view_shapes]

    def __call__(self, input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
        return ViewsNetwork(
            self.view_shapes,
            n_clusters,
            self.kinds(),
            init=self.network.init_for(self.kinds()),
            norm_first=self.network.norm_first,
        )


class ClusteringHead(nn.Module):
    """ReLU, batch normalisation, then the output layer; returns (hidden, logits).

    The kernel of the loss is computed on ``hidden``, the normalised representation. With ``norm_first`` the
    normalisation comes before the ReLU, another reading of the paper. Where the network is trained in bfloat16, the head
    stays in float32.
    """

    def __init__(self, n_hidden: int, n_clusters: int, *, norm_first: bool = False) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.relu = nn.ReLU()
        self.norm = nn.BatchNorm1d(n_hidden)
        self.output = nn.Linear(n_hidden, n_clusters)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.output.weight.dtype)
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
        self.features = conv_features(input_shape, 100)
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
        self.features = mlp_features(input_shape, 500)
        self.head = ClusteringHead(500, n_clusters, norm_first=norm_first)
        initialise(self, init)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden, logits = self.head(self.features(x))
        return hidden, logits


def conv_features(input_shape: tuple[int, ...], n_hidden: int) -> nn.Sequential:
    """The convolutional part of :class:`ConvNet`, up to the layer whose output the head takes."""
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
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=padding),
        nn.MaxPool2d(2),  # before the ReLU: the same values, a quarter of the work
        nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=padding),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(n_flat, n_hidden),
    )


def mlp_features(input_shape: tuple[int, ...], n_hidden: int) -> nn.Sequential:
    """The part of :class:`MLP` below the head."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 200),
        nn.ReLU(),
        nn.Linear(200, 200),
        nn.ReLU(),
        nn.Linear(200, n_hidden),
    )


class MultiViewNet(nn.Module):
    """A network for each view of an item; their outputs, weighted, are one hidden representation.

    The fusion is that of SiMVC (Trosten et al., "Reconsidering Representation Alignment for Multi-view Clustering",
    CVPR 2021): sum_v w_v f_v(x_v), where the weights, one for each view, are positive, sum to 1 and are learnt.

    Parameters
    ----------
    view_shapes : sequence of tuples
        The input shape of each view: (d,) for vectors, (channels, height, width) for images.
    n_clusters : int
    networks : sequence of {"conv", "mlp"}
        For each view.
    init : {"soft", "he"}, default="soft"
        See :func:`initialise`.
    norm_first : bool, default=False
        See :class:`ClusteringHead`.

    Examples
    --------
    >>> network = MultiViewNet([(1, 28, 28), (20,)], 10, ["conv", "mlp"])
    >>> hidden, logits = network([torch.zeros(4, 1, 28, 28), torch.zeros(4, 20)])
    >>> hidden.shape, logits.shape, network.weights().tolist()
    (torch.Size([4, 100]), torch.Size([4, 10]), [0.5, 0.5])
    """

    def __init__(
        self,
        view_shapes: Sequence[tuple[int, ...]],
        n_clusters: int,
        networks: Sequence[str],
        *,
        init: Init = "soft",
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        n_hidden = 100 if "conv" in networks else 500
        parts = {"conv": conv_features, "mlp": mlp_features}
        self.views = nn.ModuleList(
            [parts[kind](shape, n_hidden) for kind, shape in zip(networks, view_shapes, strict=True)]
        )
        self.fusion = nn.Parameter(torch.zeros(len(self.views)))
        self.head = ClusteringHead(n_hidden, n_clusters, norm_first=norm_first)
        initialise(self, init)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def weights(self) -> Tensor:
        """How much each view counts, of shape (views,)."""
        return self.fusion.softmax(dim=0)

    def forward(self, views: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        encoded = torch.stack([encode(x) for encode, x in zip(self.views, views, strict=True)])
        hidden, logits = self.head(torch.einsum("v,vnh->nh", self.weights(), encoded))
        return hidden, logits


class ViewsNetwork(nn.Module):
    """A :class:`MultiViewNet` that takes its views in a row, as :class:`ddclust.data.views.ViewItems` gives them."""

    def __init__(
        self,
        view_shapes: Sequence[tuple[int, ...]],
        n_clusters: int,
        networks: Sequence[str],
        *,
        init: Init = "soft",
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.view_shapes = [tuple(shape) for shape in view_shapes]
        self.network = MultiViewNet(
            [input_shape(s) for s in self.view_shapes], n_clusters, networks, init=init, norm_first=norm_first
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        parts = x.split([math.prod(shape) for shape in self.view_shapes], dim=1)
        views = [_as_images(part, shape) for part, shape in zip(parts, self.view_shapes, strict=True)]
        hidden, logits = self.network(views)
        return hidden, logits


def head_of(module: nn.Module) -> ClusteringHead | None:
    """The head of one of the networks above; None of any other network.

    Examples
    --------
    >>> head_of(MLP((20,), 3)).output.out_features, head_of(nn.Linear(2, 3))
    (3, None)
    """
    inner = module.network if isinstance(module, ViewsNetwork) else module
    return inner.head if isinstance(inner, (ConvNet, MLP, MultiViewNet)) else None


def _as_images(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Flattened items in the layout of the network: vectors, or images as (n, channels, height, width)."""
    if len(shape) == 1:
        return x
    return in_network_layout(x.reshape(-1, *shape), shape).contiguous(memory_format=torch.channels_last)


def initialise(network: ConvNet | MLP | MultiViewNet, init: Init) -> None:
    """He initialisation of every layer, in place; with ``"soft"`` the output layer starts near zero.

    ``"he"`` is the paper's. On a batch-normalised hidden layer it makes the first, random assignments
    confident, and a run then tends to keep that random partition. ``"soft"`` multiplies the output
    weights by 0.1, so that every item starts undecided.
    """
    if init not in get_args(Init):
        raise ValueError(f"init must be one of {get_args(Init)}, got {init!r}.")
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
    if init == "soft":
        with torch.no_grad():
            # Departs from the paper: He initialisation here freezes random partitions.
            network.head.output.weight.mul_(SOFT_START)
