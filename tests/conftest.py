"""Data that many tests use."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs


@pytest.fixture(autouse=True)
def no_encoder_by_default(monkeypatch):
    """What is installed beside the tests changes nothing in them."""
    monkeypatch.setattr("ddclust.encoders.choice.installed_encoder", lambda kind: None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs():
    """150 points in three well separated groups, and their groups."""
    return make_blobs(150, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.5, random_state=0)


@pytest.fixture
def images(rng):
    """60 uint8 images of 8x8: a bright left half or a bright upper half."""
    X = rng.integers(0, 60, size=(60, 8, 8), dtype=np.uint8)
    X[:30, :, :4] += 150
    X[30:, :4, :] += 150
    return X
