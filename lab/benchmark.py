"""Tables of numbers with known classes: Gagolewski's clustering-data-v1, and pendigits of UCI in the same format.

Set ``DDCLUST_BENCHMARK`` to a folder with its folders (``uci/wine.data.gz`` and ``uci/wine.labels0.gz``, ...).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
from sklearn.utils import Bunch

PREFIX = "benchmark-"  # "benchmark-uci-wine" is uci/wine
# Name, and number of classes. Noise is not one. Two large ones of birch, two of worms, MNIST and grids of Gaussians are left out.
SETS = {
    "fcps": "atom 2 chainlink 2 engytime 2 hepta 7 lsun 3 target 6 tetra 4 twodiamonds 2 wingnut 2",
    "graves": "dense 2 fuzzyx 5 line 2 parabolic 2 ring 2 ring_noisy 2 ring_outliers 5 zigzag 3 zigzag_noisy 3"
    " zigzag_outliers 3",
    "other": "chameleon_t4_8k 6 chameleon_t5_8k 6 chameleon_t7_10k 9 chameleon_t8_8k 8 hdbscan 6 iris 3 iris5 3 square 2",
    "sipu": "a1 20 a2 35 a3 50 aggregation 7 compound 6 d31 31 flame 2 jain 2 pathbased 3 r15 15 s1 15 s2 15 s3 15 s4 15"
    " spiral 3 unbalance 8",
    "uci": "ecoli 8 glass 6 ionosphere 2 pendigits 10 sonar 2 statlog 7 wdbc 2 wine 3 yeast 10",
    "wut": "circles 4 cross 4 graph 10 isolation 3 labirynth 6 mk1 3 mk2 2 mk3 3 mk4 3 olympic 5 smile 6 stripes 2"
    " trajectories 4 trapped_lovers 3 twosplashes 2 windows 5 x1 3 x2 3 x3 4 z1 3 z2 5 z3 4",
}

# Of less than 1,000 items, where UMAP has little to go by.
SMALL = [
    "fcps-atom",
    "fcps-hepta",
    "fcps-lsun",
    "fcps-target",
    "fcps-tetra",
    "fcps-twodiamonds",
    "graves-dense",
    "graves-line",
    "graves-zigzag",
    "graves-zigzag_noisy",
    "graves-zigzag_outliers",
    "other-iris",
    "other-iris5",
    "sipu-aggregation",
    "sipu-compound",
    "sipu-flame",
    "sipu-jain",
    "sipu-pathbased",
    "sipu-r15",
    "sipu-spiral",
    "uci-ecoli",
    "uci-glass",
    "uci-ionosphere",
    "uci-sonar",
    "uci-wdbc",
    "uci-wine",
    "wut-mk1",
    "wut-mk3",
    "wut-twosplashes",
    "wut-x1",
    "wut-x2",
    "wut-x3",
    "wut-z1",
    "wut-z2",
]


def is_small(name: str) -> bool:
    """Whether a set has less than 1,000 items."""
    return name.removeprefix(PREFIX) in SMALL


def sets() -> Iterator[tuple[str, int]]:
    """Names and numbers of classes.

    Examples
    --------
    >>> dict(sets())["benchmark-uci-wine"]
    3
    """
    for folder, listed in SETS.items():
        words = listed.split()
        for name, n_classes in zip(words[::2], words[1::2], strict=True):
            yield f"{PREFIX}{folder}-{name}", int(n_classes)


def is_development(name: str) -> bool:
    """Whether a set served to choose the rule of the graph of neighbours, see docs/defaults.md; the others judge it.

    Examples
    --------
    >>> is_development("benchmark-uci-wine"), is_development("benchmark-uci-yeast")
    (True, False)
    """
    path = "big/pendigits" if name == f"{PREFIX}uci-pendigits" else _path(name)
    return crc32(path.encode()) % 2 == 0


def benchmark_is_at_hand(name: str) -> bool:
    """Whether a set is in the folder."""
    folder = os.environ.get("DDCLUST_BENCHMARK")
    return bool(folder) and Path(str(folder), f"{_path(name)}.data.gz").exists()


def load_benchmark(name: str) -> Bunch:
    """A set; the class of noise is -1."""
    start = Path(os.environ["DDCLUST_BENCHMARK"], _path(name))
    labels = np.loadtxt(f"{start}.labels0.gz").astype(np.int64)
    return Bunch(data=np.loadtxt(f"{start}.data.gz", ndmin=2), target=labels - 1, name=name)


def _path(name: str) -> str:
    return name.removeprefix(PREFIX).replace("-", "/", 1)
