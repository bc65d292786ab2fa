"""Parameters as plain JSON values and back."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from ddclust import ConstantRate, CosineRate, DDCLoss, EarlyStopping, Network, Selection
from ddclust.networks import NetworkOfViews
from ddclust.objective.augment import BUILT_IN, Affine
from ddclust.saving import SAVED_TYPES
from ddclust.storage.plain import from_plain, to_plain
from ddclust.training.record import Outcome
from helpers import Small, own_loss


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1 + 0.2,
        "auto",
        [1, [2.5, None]],
        {"a": 1, "b": {"c": [2]}},
        {"one": {"two": 2}},  # looks like an object, but is of no type that is listed
        ConstantRate(0.1),
        CosineRate(0.1),
        EarlyStopping(3, 0.5),
        Selection("pairs", halving=True),
        Network("conv", init="he", norm_first=True),
        NetworkOfViews(Network("mlp"), ((4,), (9, 9, 3))),
        DDCLoss(),
        DDCLoss(
            0.3,
            "median",
            "sum",
            weights={"pairs": 2},
            start_weights={"orthogonality": 5},
            cluster_sizes=[1, 3],
        ),
        DDCLoss(cluster_sizes="k-means"),
        *BUILT_IN.values(),
        [Affine(rotation=5), EarlyStopping()],
    ],
    ids=lambda value: getattr(value, "__name__", None) or repr(value),
)
def test_round_trip(value):
    again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)), SAVED_TYPES)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.arange(3), [0, 1, 2]),
        ((1, 2), [1, 2]),
        (range(2), [0, 1]),
        (Path("a") / "b", str(Path("a") / "b")),
        (torch.device("cpu"), "cpu"),
        (Outcome.BUDGET, "budget"),
        ({1: np.float64(2.0)}, {"1": 2.0}),
        (own_loss, {"custom": "helpers.own_loss"}),
        (Small, {"custom": "helpers.Small"}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or repr(value),
)
def test_everything_becomes_plain(value, expected):
    plain = to_plain(value)
    assert plain == expected
    assert type(plain) is type(expected)
    json.dumps(plain)


class Own:
    """An object of a user's own that is no function."""


@dataclass
class OwnData:
    strength: float = 0.5


@pytest.mark.parametrize("kind", [Own, OwnData])
def test_objects_of_a_user_s_own_are_named_alike_in_every_process(kind):
    """Neither an address nor a description is part of the identity of a fit."""
    name = to_plain(kind())["custom"]
    assert name.endswith(f"test_plain.{kind.__name__}")
    assert to_plain(kind()) == to_plain(kind())


@pytest.mark.parametrize("name", ["Own", "OwnData", "Path", "object", "system", "Setup", "Snapshots"])
def test_types_that_are_not_listed_are_not_built(name):
    plain = {name: {"strength": 1.0}}
    assert from_plain(plain, SAVED_TYPES) == plain
    assert from_plain([plain], SAVED_TYPES) == [plain]
    nested = from_plain({"NetworkOfViews": {"network": plain, "view_shapes": []}}, SAVED_TYPES)
    assert nested.network == plain


def test_only_ours_are_listed():
    assert all(kind.__module__.startswith("ddclust.") for kind in SAVED_TYPES.values())
    assert all(name == kind.__name__ for name, kind in SAVED_TYPES.items())


@pytest.mark.parametrize(
    "plain", [{"DDCLoss": {"bandwidth": -1}}, {"Network": {"kind": "gpt"}}, {"Selection": {"x": 1}}]
)
def test_fields_are_checked_as_if_given(plain):
    with pytest.raises((TypeError, ValueError)):
        from_plain(plain, SAVED_TYPES)
