"""What several test files use: small fits and batches, a network and a loss of a user's own, fits that are cut off."""

import hashlib
import json
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from ddclust import DDC, ConstantRate, DDCLoss, Network
from ddclust.data.batches import Scaling
from ddclust.storage.json_files import seal_of
from ddclust.training.setup import Plan, Setup

DTYPES = [torch.float32, torch.float64]
RULES = ["squared_median", "median"]
REDUCTIONS = ["mean", "sum"]


def batch(n=9, d=4, k=3, dtype=torch.float64, seed=0):
    """A hidden representation and soft assignments."""
    generator = torch.Generator().manual_seed(seed)
    H = torch.randn(n, d, dtype=dtype, generator=generator)
    A = torch.randn(n, k, dtype=dtype, generator=generator).softmax(dim=1)
    return H, A


def quick(n_clusters=3, **options):
    """A short fit; no mixture is asked first, since well separated groups would leave nothing to the network."""
    usual = {
        "anchor": None,
        "n_init": 1,
        "n_jobs": 1,
        "max_iter": 150,
        "learning_rate": 1e-3,
        "random_state": 0,
    }
    return DDC(n_clusters, **usual | options)


def setup_of(**changes):
    """A setup of short runs without pairs."""
    usual = {
        "n_clusters": 3,
        "network": Network("mlp"),
        "loss": DDCLoss(),
        "augment": None,
        "neighbors": None,
        "max_iter": 30,
        "batch_size": 50,
        "learning_rate": ConstantRate(1e-3),
        "early_stopping": None,
        "n_init": 1,
        "halving": False,
        "threads": 1,
        "n_vote": 1,
        "n_final": None,
        "criterion": "loss",
        "device": torch.device("cpu"),
    }
    return Setup(**usual | changes)


def plan_of(X, callbacks=(), **changes):
    """A plan of short runs on X without pairs."""
    return Plan(setup_of(**changes), Scaling.of(X), callbacks=callbacks)


class Small(nn.Module):
    """A network of a user's own."""

    def __init__(self, input_shape, n_clusters):
        super().__init__()
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), 16), nn.Dropout(0.1))
        self.output = nn.Linear(16, n_clusters)

    def forward(self, x):
        hidden = self.hidden(x)
        return hidden, self.output(hidden)


class OneTerm(NamedTuple):
    value: torch.Tensor


def own_loss(hidden, assignments):
    return OneTerm((assignments.mean(dim=0) ** 2).sum() + hidden.square().mean() * 1e-3)


def timeless(model):
    return [{k: v for k, v in run.items() if k != "seconds"} for run in model.runs_]


def assert_same(first, second):
    assert np.array_equal(first.labels_, second.labels_)
    assert np.array_equal(first.probabilities_, second.probabilities_)
    assert np.array_equal(first.agreement_, second.agreement_, equal_nan=True)
    assert timeless(first) == timeless(second)


class Stop(BaseException):
    """Stands for the end of the process."""


def interrupted_fit(model, X, monkeypatch, moment):
    """Fit until the given number of checkpoints has begun to be written; then everything stops."""
    from ddclust.training import checkpoints as _checkpoints
    from ddclust.training import run as _runs

    monkeypatch.setattr(_runs, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(_runs, "CHECKPOINT_SHARE", 1e9)
    written = {"n": 0}
    real = _checkpoints.write_file

    def write(path, content):
        written["n"] += 1
        if written["n"] == moment:
            path.with_name(f".{path.name}.torn.partial").write_bytes(content[: len(content) // 2])
            raise Stop
        real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(_checkpoints, "write_file", write)
        with pytest.raises(Stop):
            model.fit(X)


def edit(path, **changes):
    """Change entries of a saved model's description, digests included; gives what it was before."""
    description = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps(description | changes))
    seal(path)
    return description


def edit_json(file, **changes):
    """Change entries of a JSON file of ours, and take its seal away; a change to None removes the entry."""
    content = json.loads(file.read_text()) | changes | {"sha256": None}
    file.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def tensors_file(path):
    """The file of a saved model's tensors."""
    return next(path.glob("tensors*.safetensors"))


def seal(path):
    """Make the digests of a model fit its files again, as somebody would who tampers with it."""
    file = path / "model.json"
    description = json.loads(file.read_text())
    if "sha256" in description:
        del description["sha256"]
        description["tensors"]["sha256"] = hashlib.sha256(tensors_file(path).read_bytes()).hexdigest()
        description["sha256"] = seal_of(description)
        file.write_text(json.dumps(description))
