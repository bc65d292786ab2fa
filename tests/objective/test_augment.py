"""Augmentations: what they do to pictures that can be worked out, and that chance comes from torch alone."""

import math
from dataclasses import FrozenInstanceError, asdict, fields

import pytest
import torch

from ddclust.objective.augment import BUILT_IN, Affine, Dropout, Noise, Photo

STILL = {"rotation": 0, "shift": 0, "scale": 0, "shear": 0}
DARK = {"flip": 0, "brightness": 0, "contrast": 0, "saturation": 0, "tint": 0}
ALL = [pytest.param(augmentation, id=name) for name, augmentation in BUILT_IN.items()]


@pytest.fixture
def extremes(monkeypatch):
    """Every number that is drawn from [0, 1) is as large as can be, so that the strength itself is applied."""
    monkeypatch.setattr(torch, "rand", lambda *shape: torch.ones(*shape))


def spot(row, column, height=9, width=9):
    x = torch.zeros(1, 1, height, width)
    x[0, 0, row, column] = 1
    return x


def centre_of_mass(x):
    """(row, column) of the mean of an image's light."""
    picture = x[0, 0] / x.sum()
    rows, columns = torch.arange(x.shape[2]).float(), torch.arange(x.shape[3]).float()
    return (picture.sum(1) @ rows).item(), (picture.sum(0) @ columns).item()


def naive_affine(x, angle, across, down, slant, right, lower):
    """Bilinear resampling of one image, pixel by pixel, with darkness outside."""
    height, width = x.shape
    out = torch.zeros_like(x)
    for row in range(height):
        for column in range(width):
            u, v = (column - (width - 1) / 2) / across, (row - (height - 1) / 2) / down
            u += slant * v
            source_u = math.cos(angle) * u - math.sin(angle) * v + right * width + (width - 1) / 2
            source_v = math.sin(angle) * u + math.cos(angle) * v + lower * height + (height - 1) / 2
            for r in (math.floor(source_v), math.floor(source_v) + 1):
                for c in (math.floor(source_u), math.floor(source_u) + 1):
                    if 0 <= r < height and 0 <= c < width:
                        out[row, column] += (1 - abs(source_v - r)) * (1 - abs(source_u - c)) * x[r, c]
    return out


@pytest.mark.parametrize(("height", "width"), [(7, 7), (6, 11), (12, 5)])
def test_affine_equals_a_loop_over_pixels(extremes, height, width):
    x = torch.randn(1, 2, height, width, generator=torch.Generator().manual_seed(0))
    found = Affine(rotation=25, shift=0.15, scale=0.2, shear=0.3)(x)
    for channel in (0, 1):
        expected = naive_affine(x[0, channel], math.radians(25), 1.2, 1.2, 0.3, 0.15, 0.15)
        torch.testing.assert_close(found[0, channel], expected, rtol=0, atol=1e-5)


def test_a_right_angle_and_whole_pixels(extremes):
    assert torch.equal(Affine(**STILL)(spot(2, 3)), spot(2, 3))
    turned = Affine(**STILL | {"rotation": 90})(spot(4, 7))  # right of the centre: now above or below it
    row, column = centre_of_mass(turned)
    assert (abs(row - 4), column) == pytest.approx((3, 4), abs=1e-4)
    moved = Affine(**STILL | {"shift": 2 / 9})(spot(4, 4))
    assert centre_of_mass(moved) == pytest.approx((2, 2), abs=1e-4)


def test_a_turn_keeps_distances_of_wide_images(extremes):
    turned = Affine(**STILL | {"rotation": 90})(
        spot(5, 13, height=11, width=21)
    )  # three pixels off the centre
    row, column = centre_of_mass(turned)
    assert (abs(row - 5), column) == pytest.approx((3, 10), abs=1e-4)


def test_every_image_is_changed_in_its_own_way():
    x = spot(4, 4).repeat(20, 1, 1, 1)
    x[:, :, 3:6, 3:6] = 1
    copies = Affine()(x)
    assert len(torch.unique(copies.flatten(1), dim=0)) == 20


def test_a_cut_darkens_the_top_or_the_bottom_of_what_is_bright():
    x = torch.zeros(1, 1, 10, 6)
    x[:, :, 2:8] = 0.5  # six rows of light
    copies = Affine(**STILL, cut=0.2)(x.repeat(400, 1, 1, 1))
    assert set(copies.unique().tolist()) == {0.0, 0.5}
    lit = copies.amax(dim=(1, 3)) > 0  # (copies, rows)
    found = {tuple(row.nonzero().flatten().tolist()) for row in lit}
    assert found == {
        tuple(range(2 + top, 8 - bottom)) for top, bottom in [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2)]
    }
    whole = (lit.sum(dim=1) == 6).float().mean()
    assert 0.5 < whole < 0.8  # half are not cut, and a third of the others by no row


def test_a_cut_leaves_a_black_image_black():
    assert not Affine(cut=0.3)(torch.zeros(20, 1, 8, 8)).any()


def test_photographs_are_cut_too():
    copies = Photo(**STILL | DARK, cut=0.5)(torch.ones(50, 3, 8, 8))
    assert (copies == 0).any()
    assert (copies == 1).any()


def test_affine_stays_within_its_strengths():
    copies = Affine(**STILL | {"shift": 1 / 9})(spot(4, 4).repeat(300, 1, 1, 1))
    places = torch.tensor([centre_of_mass(copy[None]) for copy in copies])
    assert (places - 4).abs().max() <= 1 + 1e-4
    assert (places.amin(0) < 3.2).all()
    assert (places.amax(0) > 4.8).all()
    assert places.mean(0) == pytest.approx(torch.tensor([4.0, 4.0]), abs=0.15)


@pytest.mark.parametrize(("padding", "outside"), [("zeros", 0.0), ("border", 0.7), ("reflection", 0.7)])
def test_what_comes_in_from_outside(extremes, padding, outside):
    x = torch.full((1, 1, 8, 8), 0.7)
    copy = Affine(**STILL | {"shift": 0.25}, padding=padding)(x)
    assert copy[0, 0, -1, -1].item() == pytest.approx(outside)
    assert copy[0, 0, 0, 0].item() == pytest.approx(0.7)


def test_photos_are_mirrored():
    x = torch.rand(200, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    copies = Photo(**STILL, **DARK | {"flip": 0.25})(x)
    is_mirrored = (copies - x.flip(3)).abs().amax((1, 2, 3)) < 1e-5
    is_same = (copies - x).abs().amax((1, 2, 3)) < 1e-5
    assert (is_mirrored | is_same).all()
    assert 25 <= is_mirrored.sum() <= 75


def test_light_and_colour_by_hand(extremes):
    grey = torch.tensor([0.2, 0.4]).view(1, 1, 1, 2)
    brighter = Photo(**STILL, **DARK | {"brightness": 0.1})(grey)
    torch.testing.assert_close(brighter, grey + 0.1)
    sharper = Photo(**STILL, **DARK | {"contrast": 0.5})(grey)
    torch.testing.assert_close(sharper.flatten(), torch.tensor([0.15, 0.45]))
    colour = torch.tensor([0.3, 0.4, 0.5]).view(1, 3, 1, 1)
    stronger = Photo(**STILL, **DARK | {"saturation": 0.5})(colour)
    torch.testing.assert_close(stronger.flatten(), torch.tensor([0.25, 0.4, 0.55]))
    tinted = Photo(**STILL, **DARK | {"tint": 0.1})(colour)
    torch.testing.assert_close(tinted, colour * 1.1)
    assert Photo(**STILL, **DARK | {"brightness": 0.9})(colour).max() == 1  # no lighter than light


def test_tints_are_not_of_grey_images():
    grey = torch.rand(10, 1, 8, 8)
    torch.testing.assert_close(Photo(**STILL, **DARK | {"tint": 0.5, "saturation": 0.9})(grey), grey)


def test_noise_has_its_size():
    noise = Noise(0.3)(torch.zeros(200, 300))
    assert noise.std().item() == pytest.approx(0.3, rel=0.02)
    assert noise.mean().item() == pytest.approx(0, abs=0.01)


def test_dropout_leaves_out_words_and_keeps_the_sum_on_average():
    x = torch.zeros(400, 50)
    x[:, ::5] = 3.0
    changed = Dropout(0.25)(x)
    assert set(changed.unique().tolist()) == {0.0, 4.0}
    assert (changed[x == 0] == 0).all()
    assert (changed[x > 0] == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert x.max() == 3  # the batch itself is as it was


@pytest.mark.parametrize("augmentation", ALL)
def test_chance_is_torch_s_own(augmentation):
    x = torch.rand(5, 3, 12, 12)
    before = x.clone()
    torch.manual_seed(3)
    first = augmentation(x)
    torch.manual_seed(3)
    assert torch.equal(augmentation(x), first)
    assert not torch.equal(augmentation(x), first)
    assert torch.equal(x, before)
    assert first.shape == x.shape
    assert first.dtype == x.dtype


@pytest.mark.parametrize("augmentation", ALL)
def test_choices_are_plain_frozen_and_comparable(augmentation):
    kind = type(augmentation)
    assert kind(**asdict(augmentation)) == augmentation == kind()
    assert all(isinstance(getattr(augmentation, f.name), (float, str)) for f in fields(kind))
    with pytest.raises(FrozenInstanceError):
        augmentation.scale = 3


@pytest.mark.parametrize(
    ("kind", "strengths", "message"),
    [
        (Affine, {"rotation": -1}, "rotation=-1"),
        (Affine, {"shift": float("nan")}, "shift=nan"),
        (Affine, {"scale": 1}, "scale=1 must be less than 1"),
        (Affine, {"cut": 1}, "cut=1 must be less than 1"),
        (Affine, {"padding": "white"}, "padding must be one of"),
        (Photo, {"flip": 1.5}, "flip=1.5 is a probability"),
        (Photo, {"tint": float("inf")}, "tint=inf"),
        (Noise, {"scale": -0.1}, "scale=-0.1"),
        (Dropout, {"rate": 1}, "rate=1 must be less than 1"),
    ],
)
def test_wrong_strengths_are_named(kind, strengths, message):
    with pytest.raises(ValueError, match=message):
        kind(**strengths)


@pytest.mark.parametrize("augmentation", [Affine(), Photo()])
def test_images_only(augmentation):
    with pytest.raises(ValueError, match=r"images of shape .* got a batch of shape \(4, 7\).*'noise'"):
        augmentation(torch.zeros(4, 7))
