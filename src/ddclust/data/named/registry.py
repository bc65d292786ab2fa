"""The named data sets: one declaration each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sklearn.utils import Bunch

from ddclust.data.named import mnist, news, seals
from ddclust.data.named.circles import load_circles
from ddclust.data.named.digits import load_digits
from ddclust.data.named.store import find


@dataclass(frozen=True)
class NamedSet:
    """What is known of a data set without loading it. ``files``: each of them, or one that was fetched, is needed."""

    load: Callable[[], Bunch]
    size: str
    classes: int
    origin: str
    licence: str
    files: tuple[str, ...] = ()
    fetched_file: str | None = None

    def at_hand(self) -> str:
        """Whether it can be loaded: "yes", "can be fetched" or "no"."""
        fetched = self.fetched_file is not None and find(self.fetched_file) is not None
        needs_nothing = not self.files and self.fetched_file is None
        if fetched or needs_nothing or (self.files and all(find(file) is not None for file in self.files)):
            return "yes"
        return "no" if self.fetched_file is None else "can be fetched"


def _mnist_set(classes: range, size: str, per_class: tuple[int, ...] | None = None) -> NamedSet:
    return NamedSet(
        partial(mnist.load_mnist, classes, per_class=per_class),
        size,
        len(classes),
        "LeCun, Cortes; OpenML mnist_784",
        "CC BY-SA 3.0 (as commonly given)",
        tuple(file.path for file in mnist.FILES),
        mnist.FETCHED_FILE,
    )


def _seals_set(classes: tuple[str, ...] | None, n_classes: int, side: int, size: str) -> NamedSet:
    return NamedSet(
        partial(seals.load_seals, classes, size=side),
        size,
        n_classes,
        "github.com/pancakereport/seal-computer-vision",
        "MIT",
        (seals.FILES[side].path,),
    )


NAMED: dict[str, NamedSet] = {
    "circles": NamedSet(load_circles, "1,000 x 2", 2, "synthetic, as in the paper", "none needed"),
    "digits": NamedSet(load_digits, "1,797 x 8 x 8", 10, "UCI, comes with scikit-learn", "CC BY 4.0"),
    "mnist": _mnist_set(range(10), "70,000 x 28 x 28"),
    "mnist-3": _mnist_set(range(3), "21,770 x 28 x 28"),
    "mnist-unequal": _mnist_set(range(10), f"{sum(mnist.UNEQUAL):,} x 28 x 28", mnist.UNEQUAL),
    "seals": _seals_set(None, 5, 32, "5,000 x 32 x 32 x 3"),
    "seals-2": _seals_set(seals.PUPS, 2, 32, "2,000 x 32 x 32 x 3"),
    "seals-3": _seals_set(seals.THREE, 3, 32, "3,000 x 32 x 32 x 3"),
    "seals-64": _seals_set(None, 3, 64, "1,800 x 64 x 64 x 3"),
    "reuters": NamedSet(
        news.load_reuters,
        "216,000 x 2,000 sparse",
        4,
        "RCV1-v2 (Lewis et al. 2004), by scikit-learn",
        "free for research",
        fetched_file=news.RCV1_FILE,
    ),
    "reuters21578": NamedSet(
        news.load_reuters21578,
        "7,076 texts",
        4,
        "Reuters-21578, distribution 1.0",
        "free for research, with acknowledgement",
        (news.REUTERS_21578.path,),
    ),
    "reuters21578-balanced": NamedSet(
        partial(news.load_reuters21578, per_class=350),
        "1,400 texts",
        4,
        "Reuters-21578, as many of each topic",
        "free for research, with acknowledgement",
        (news.REUTERS_21578.path,),
    ),
    "agnews": NamedSet(
        news.load_agnews,
        "7,600 x 2,000 sparse",
        4,
        "AG's corpus of news articles, test part",
        "research, not commercial",
        (news.AG_NEWS.path,),
    ),
    "rcv1-subset": NamedSet(
        news.load_rcv1_subset,
        "5,107 x 944 sparse",
        4,
        "RCV1-v2, subset 1 of Mulan/LIBSVM",
        "free for research",
        (news.RCV1_SUBSET.path,),
    ),
    "rcv1-subset-balanced": NamedSet(
        partial(news.load_rcv1_subset, per_class=400),
        "1,600 x 944 sparse",
        4,
        "RCV1-v2, subset 1, as many of each root",
        "free for research",
        (news.RCV1_SUBSET.path,),
    ),
}
