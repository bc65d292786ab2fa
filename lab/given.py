"""What fits are given beyond the data as they are: links between items, or several views of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.text import StemVectorizer


@dataclass(frozen=True)
class RandomLinks:
    """Links between items drawn at random: must-links within a class, cannot-links between classes."""

    n_pairs: int

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        drawn = np.random.default_rng(seed).choice(len(bunch.target), size=(self.n_pairs, 2))
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        alike = bunch.target[drawn[:, 0]] == bunch.target[drawn[:, 1]]
        return bunch.data, {"must_link": drawn[alike], "cannot_link": drawn[~alike]}


@dataclass(frozen=True)
class TitlesAndBodies:
    """The titles of news stories, their bodies, or both as two views."""

    views: tuple[str, ...] = ("titles", "bodies")

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        parts = [text.partition("\n") for text in bunch.texts]
        texts = {"titles": [part[0] for part in parts], "bodies": [part[2] for part in parts]}
        views = [StemVectorizer().fit_transform(texts[name]) for name in self.views]
        return (views if len(views) > 1 else views[0]), {}


@dataclass(frozen=True)
class Halves:
    """The upper halves of images, the lower ones, or both as two views."""

    views: tuple[str, ...] = ("upper", "lower")

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        middle = bunch.data.shape[1] // 2
        halves = {"upper": bunch.data[:, :middle], "lower": bunch.data[:, middle:]}
        views = [halves[name] for name in self.views]
        return (views if len(views) > 1 else views[0]), {}


@dataclass(frozen=True)
class WithEncoder:
    """The features of an encoder as such, so that the fit knows what they are."""

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        return bunch.encoded, {}
