"""Texts and images in two groups, encoders of a user's own, and a cache for each test."""

import numpy as np
import pytest


class Vowels:
    """Texts by how often they hold each vowel; counts its calls."""

    def __init__(self, digest=None):
        self.calls = []
        if digest is not None:
            self.digest = digest

    def __call__(self, texts):
        self.calls.append(len(texts))
        return np.array([[text.count(vowel) for vowel in "aeiou"] for text in texts], dtype=float)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("ddclust.encoders.cache.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "features"


@pytest.fixture
def vowels():
    return Vowels()


@pytest.fixture
def known_vowels():
    """An encoder with a digest, whose features are kept on disk."""
    return Vowels(digest="0123456789abcdef")


@pytest.fixture
def texts():
    """60 texts in two groups."""
    return [
        f"banana ananas papaya {number}" if number % 2 else f"little lions in hills {number}"
        for number in range(60)
    ]


@pytest.fixture
def photographs():
    """60 images in colour, 30 red and 30 blue ones."""
    X = np.random.default_rng(0).integers(0, 80, size=(60, 32, 32, 3), dtype=np.uint8)
    X[:30, ..., 0] += 170
    X[30:, ..., 2] += 170
    return X


def mean_colour(images):
    """Images by their mean colour."""
    return images.reshape(len(images), -1, 3).mean(axis=1)


@pytest.fixture
def colours():
    return mean_colour
