"""Supervised training whose only purpose is a figure."""

import pytest
import torch

from ddclust.datasets import load
from ddclust.networks import ConvNet
from lab import drawing


def test_supervised_training_watches_the_loss_without_minimising_it():
    digits = load("digits")
    history, (epochs, accuracy) = drawing.train_supervised(digits.data, digits.target, 6)
    assert accuracy[-1] > 0.8
    assert history[-1]["cross_entropy"] < history[0]["cross_entropy"] / 2
    assert epochs[-1] == history[-1]["epoch"] == 6
    terms = ("divergence", "orthogonality", "corners")
    assert all(record["loss"] == pytest.approx(sum(record[t] for t in terms)) for record in history)


def test_only_cross_entropy_has_a_gradient():
    digits = load("digits")
    source = drawing.BatchSource(digits.data, drawing.Scaling.of(digits.data))
    torch.manual_seed(0)
    module = ConvNet((1, 8, 8), 10)
    x, classes = source.batch(slice(0, 50)), torch.from_numpy(digits.target[:50])
    terms = drawing.monitored(module, x, classes)
    total = torch.autograd.grad(torch.stack(list(terms)).sum(), module.head.output.weight)[0]
    torch.manual_seed(0)
    module = ConvNet((1, 8, 8), 10)
    alone = torch.nn.functional.cross_entropy(module(x)[1], classes)
    expected = torch.autograd.grad(alone, module.head.output.weight)[0]
    torch.testing.assert_close(total, expected)
