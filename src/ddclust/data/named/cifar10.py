"""CIFAR-10: small photographs of ten kinds of things, one of the six parts of the data set."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.store import DataFile, need
from ddclust.data.readers.arrays import open_npz
from ddclust.data.readers.bunch import make_bunch

FILE = DataFile("cifar10_batch1.npz", "e628f6017a321b9902a27cd5c80fa3970ade9d2ad246339a75830dc9a10a6b8b")


def load_cifar10() -> Bunch:
    """CIFAR-10: the 10,000 photographs of its first batch, in ten classes of 937 to 1,032.

    Returns
    -------
    Bunch
        ``data`` is an array of 32 x 32 pixels in three colours, uint8.
    """
    arrays = open_npz(need(FILE, "cifar10-batch1"))
    return make_bunch(
        arrays["X"],
        target=arrays["y"].astype(np.int64),
        target_names=arrays["class_names"].tolist(),
        name="cifar10-batch1",
        about="Photographs of ten kinds of things (CIFAR-10, first batch), 32x32 pixels.",
    )


SETS = (
    NamedSet(
        "cifar10-batch1",
        load_cifar10,
        size="10,000 x 32 x 32 x 3",
        classes=10,
        origin="CIFAR-10 (A. Krizhevsky), first batch",
        licence="research",
        files=(FILE.path,),
    ),
)
