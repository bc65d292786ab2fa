"""Augmentations: random changes to a batch that should not change the clusters of its items.

Each augmentation is a frozen dataclass of strengths. Calling it with a batch, images (n, c, h, w) with values from 0 to 1 or
scaled vectors (n, d), returns a changed copy. Every item is changed independently. The random numbers come from
torch's random state on the CPU, which checkpoints hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

Augmentation = Callable[[Tensor], Tensor]

BLACK = 0.1  # values up to this count as background
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class Affine:
    """Rotate, shift, scale and shear images, in a single bilinear resampling.

    Parameters
    ----------
    rotation : float, default=20
        Largest rotation in degrees, in either direction.
    shift : float, default=0.1
        Largest shift along each axis, as a fraction of the side.
    scale : float, default=0.2
        Largest relative change of width and of height, drawn independently.
    shear : float, default=0.3
        Largest shift of a row against the one below, in pixels.
    padding : {"zeros", "border", "reflection"}, default="zeros"
        How pixels from outside the image are filled: with zeros, the nearest pixel, or a reflection.
    cut : float, default=0
        Largest fraction of the height that is blackened at the top or the bottom of every second image on average. Rows
        are counted from the first one that is not background; at most half of what an image shows is removed.

    Examples
    --------
    >>> Affine(rotation=15)(torch.rand(4, 1, 28, 28)).shape
    torch.Size([4, 1, 28, 28])
    """

    rotation: float = 20.0
    shift: float = 0.1
    scale: float = 0.2
    shear: float = 0.3
    padding: str = "zeros"
    cut: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        _make_numbers(self)
        if self.scale >= 1:
            raise ValueError(f"scale={self.scale:g} must be less than 1: images cannot shrink to nothing.")
        if self.cut >= 1:
            raise ValueError(f"cut={self.cut:g} must be less than 1: something must be left.")
        if self.padding not in PADDINGS:
            raise ValueError(f"padding must be one of {PADDINGS}, got {self.padding!r}.")

    def __call__(self, x: Tensor) -> Tensor:
        _check_images(self, x)
        return self._moved(x, self._matrices(len(x)))

    def _moved(self, x: Tensor, matrices: Tensor) -> Tensor:
        x = _resampled(x, matrices, self.padding)
        return _without_ends(x, self.cut) if self.cut else x

    def _matrices(self, n: int) -> Tensor:
        """(n, 2, 3): where in the image, in pixels from its centre, each pixel of the copy comes from.

        The last column is the shift, in half sides.
        """
        drawn = 2 * torch.rand(n, 6) - 1  # from -1 to 1
        angle = torch.deg2rad(self.rotation * drawn[:, 0])
        cos, sin = angle.cos(), angle.sin()
        across, down = 1 / (1 + self.scale * drawn[:, 1]), 1 / (1 + self.scale * drawn[:, 2])
        slant = self.shear * drawn[:, 3]
        # The product of rotation, shear and scaling: [[cos, -sin], [sin, cos]] [[1, slant], [0, 1]] diag(across, down).
        rows = (
            torch.stack((across * cos, down * (slant * cos - sin), 2 * self.shift * drawn[:, 4]), dim=1),
            torch.stack((across * sin, down * (slant * sin + cos), 2 * self.shift * drawn[:, 5]), dim=1),
        )
        return torch.stack(rows, dim=1)


@dataclass(frozen=True)
class Photo(Affine):
    """For photographs: :class:`Affine`, plus horizontal flips and changes of brightness, contrast and colour.

    Parameters
    ----------
    rotation, shift, scale, shear, cut : float
        See :class:`Affine`.
    padding : {"zeros", "border", "reflection"}, default="reflection"
    flip : float, default=0.5
        Probability of a horizontal flip.
    brightness : float, default=0.2
        Largest value that is added to or subtracted from all pixels.
    contrast : float, default=0.2
        Largest relative change of differences from the mean of the image.
    saturation : float, default=0.3
        Largest relative change of differences from grey.
    tint : float, default=0.1
        Largest relative change of each channel, drawn independently. Images of one channel are left alone.

    Examples
    --------
    >>> Photo()(torch.rand(4, 3, 32, 32)).shape
    torch.Size([4, 3, 32, 32])
    """

    padding: str = "reflection"
    flip: float = 0.5
    brightness: float = 0.2
    contrast: float = 0.2
    saturation: float = 0.3
    tint: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.flip > 1:
            raise ValueError(f"flip={self.flip:g} is a probability and must be at most 1.")

    def __call__(self, x: Tensor) -> Tensor:
        _check_images(self, x)
        n, channels = x.shape[:2]
        matrices = self._matrices(n)
        mirrored = torch.rand(n) < self.flip
        matrices[mirrored, :, 0] *= -1  # what comes from the left comes from the right
        x = self._moved(x, matrices)
        drawn = 2 * torch.rand(n, 3 + channels, 1, 1) - 1
        drawn = drawn.to(x.device)
        if channels > 1:
            grey = x.mean(dim=1, keepdim=True)
            x = grey + (x - grey) * (1 + self.saturation * drawn[:, :1])
            x = x * (1 + self.tint * drawn[:, 3:])
        middle = x.mean(dim=(1, 2, 3), keepdim=True)
        x = (x - middle) * (1 + self.contrast * drawn[:, 1:2]) + middle + self.brightness * drawn[:, 2:3]
        return x.clamp(0, 1)


@dataclass(frozen=True)
class Noise:
    """Add Gaussian noise to every feature of dense vectors.

    Parameters
    ----------
    scale : float, default=0.2
        Standard deviation of the noise. The scaled features have a standard deviation of 1.

    Examples
    --------
    >>> Noise()(torch.zeros(4, 20)).shape
    torch.Size([4, 20])
    """

    scale: float = 0.2

    def __post_init__(self) -> None:
        _make_numbers(self)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.scale * torch.randn(x.shape).to(x.device)


@dataclass(frozen=True)
class Dropout:
    """Leave out some of the words of texts, or entries of other sparse vectors, and scale up the rest.

    Parameters
    ----------
    rate : float, default=0.2
        Probability that a word is left out.

    Examples
    --------
    >>> Dropout(0.5)(torch.ones(2, 1000)).unique()
    tensor([0., 2.])
    """

    rate: float = 0.2

    def __post_init__(self) -> None:
        _make_numbers(self)
        if self.rate >= 1:
            raise ValueError(f"rate={self.rate:g} must be less than 1: something must be left.")

    def __call__(self, x: Tensor) -> Tensor:
        # Zeros stay zeros, so numbers are drawn for the others only: a few in a hundred of a text's.
        changed = x.clone()
        place = x.nonzero(as_tuple=True)
        kept = torch.rand(len(place[0])).to(x.device) >= self.rate
        changed[place] = x[place] * kept / (1 - self.rate)
        return changed


def _resampled(x: Tensor, matrices: Tensor, padding: str) -> Tensor:
    """The images at the places that ``matrices`` (n, 2, 3) give, of pixels and half sides."""
    height, width = x.shape[2:]
    # affine_grid counts in half sides along both axes, so what mixes them depends on the image's proportions.
    matrices = matrices * torch.tensor([[1, height / width, 1], [width / height, 1, 1]])
    grid = affine_grid(matrices.to(x), list(x.shape), align_corners=False)
    return grid_sample(x, grid, mode="bilinear", padding_mode=padding, align_corners=False)


def _without_ends(x: Tensor, cut: float) -> Tensor:
    """Half of the images, each without its topmost or lowest rows: ``cut`` of the height at most, from what is not black."""
    n, _, height, _ = x.shape
    drawn = torch.rand(n, 3).to(x.device)
    share, is_cut, is_top = drawn[:, 0], drawn[:, 1] < 0.5, drawn[:, 2] < 0.5
    n_rows = (share * is_cut * (cut * height + 1)).floor()
    bright = (x.amax(dim=(1, 3)) > BLACK).float()  # (n, height)
    first, last = bright.argmax(dim=1), height - 1 - bright.flip(1).argmax(dim=1)
    n_rows = n_rows.minimum((last - first + 1) // 2)
    row = torch.arange(height, device=x.device)
    top = row < (first + n_rows)[:, None]
    bottom = row > (last - n_rows)[:, None]
    gone = torch.where(is_top[:, None], top, bottom)
    return x.masked_fill(gone[:, None, :, None], 0)


def _make_numbers(strengths: Any) -> None:
    """Strengths of a frozen dataclass as plain floats, none of them negative."""
    for strength in fields(strengths):
        value = getattr(strengths, strength.name)
        if isinstance(strength.default, str):
            continue
        if not 0 <= value < float("inf"):
            raise ValueError(f"{strength.name}={value!r} must be a non-negative number.")
        object.__setattr__(strengths, strength.name, float(value))


def _check_images(augmentation: Any, x: Tensor) -> None:
    if x.ndim != 4:
        raise ValueError(
            f"{type(augmentation).__name__} changes images of shape (n, c, h, w), got a batch of shape"
            f" {tuple(x.shape)}; for vectors there are 'noise' and 'dropout'."
        )


# Augmentations by name. Parameters, the command line and saved models take their lists from here.
BUILT_IN: dict[str, Augmentation] = {
    "affine": Affine(),
    "photo": Photo(),
    "noise": Noise(),
    "dropout": Dropout(),
}
