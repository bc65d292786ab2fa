"""MNIST: 70,000 handwritten digits."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.fetch import fetched
from ddclust.data.named.sampling import sample_of_classes
from ddclust.data.named.store import DataFile, find, need, where_to
from ddclust.data.readers.bunch import DataError, make_bunch
from ddclust.data.readers.formats import budget_of
from ddclust.data.readers.text_files import open_bytes

# Train before test, images before labels.
FILES = (
    DataFile(
        "mnist/train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    DataFile(
        "mnist/train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    DataFile(
        "mnist/t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    DataFile(
        "mnist/t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
)
FETCHED_FILE = "mnist-openml.npz"
# Of all pixels, then all labels.
CONTENT_SHA256 = "c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83"
# Images of each digit in "mnist-unequal": each digit is a little rarer than the one before, and there are ten times
# as many zeros as nines.
UNEQUAL = tuple(round(6300 * 10 ** (-digit / 9)) for digit in range(10))


def load_mnist(classes: Sequence[int] = range(10), *, per_class: Sequence[int] | None = None) -> Bunch:
    """28x28 grey images of handwritten digits, all or some of them, from the training and test parts together.

    Parameters
    ----------
    classes : sequence of int, default=range(10)
        The digits to keep. The data set "mnist-3" has 0, 1 and 2; the paper does not say which three it used.
    per_class : sequence of int, optional
        The number of images drawn at random from each of these digits, as in the data set "mnist-unequal"; by
        default all images are kept.

    Returns
    -------
    Bunch
    """
    if all(find(file.path) is not None for file in FILES):
        paths = [need(file, "mnist") for file in FILES]
        images = np.concatenate([_read_idx(paths[0]), _read_idx(paths[2])])
        labels = np.concatenate([_read_idx(paths[1]), _read_idx(paths[3])])
    else:
        images, labels = _from_openml()
    keep = np.flatnonzero(np.isin(labels, classes))
    if per_class is not None:
        keep = keep[
            sample_of_classes(labels[keep], dict(zip(classes, per_class, strict=True)), random_state=0)
        ]
    return make_bunch(
        images[keep],
        target=labels[keep].astype(np.int64),
        target_names=[str(digit) for digit in range(10)],
        item_names=[str(i) for i in keep],
        name=_name(classes, per_class),
        about="Handwritten digits of 28x28 pixels (Y. LeCun, C. Cortes).",
    )


def _name(classes: Sequence[int], per_class: Sequence[int] | None) -> str:
    some = "mnist" if len(classes) == 10 else f"mnist-{len(classes)}"
    return some if per_class is None else f"{some}-unequal"


def _mnist_set(
    name: str, n_images: int, classes: Sequence[int] = range(10), per_class: tuple[int, ...] | None = None
) -> NamedSet:
    return NamedSet(
        name,
        partial(load_mnist, classes, per_class=per_class),
        size=f"{n_images:,} x 28 x 28",
        classes=len(classes),
        origin="LeCun, Cortes; OpenML mnist_784",
        licence="CC BY-SA 3.0 (as commonly given)",
        files=tuple(file.path for file in FILES),
        fetched_file=FETCHED_FILE,
    )


SETS = (
    _mnist_set("mnist", 70_000),
    _mnist_set("mnist-3", 21_770, range(3)),
    _mnist_set("mnist-unequal", sum(UNEQUAL), per_class=UNEQUAL),
)


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format."""
    with open_bytes(path, budget_of(path)) as file:
        content = file.read()
    n_axes = content[3]
    shape = struct.unpack(f">{n_axes}I", content[4 : 4 + 4 * n_axes])
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def _from_openml() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The same images from OpenML, cached as arrays that are quick to read."""

    def fetch(data_home: Path) -> dict[str, NDArray]:
        from importlib.util import find_spec

        from sklearn.datasets import fetch_openml

        parser = "pandas" if find_spec("pandas") else "liac-arff"  # the latter takes minutes
        bunch = fetch_openml("mnist_784", version=1, as_frame=False, data_home=data_home, parser=parser)
        return {
            "images": bunch.data.astype(np.uint8).reshape(-1, 28, 28),
            "labels": bunch.target.astype(np.uint8),
        }

    names = ", ".join(Path(file.path).name for file in FILES)
    arrays = fetched(
        FETCHED_FILE,
        {"images", "labels"},
        fetch,
        "mnist",
        f"the four files {names} in a folder mnist {where_to()}",
    )
    digest = hashlib.sha256(arrays["images"].tobytes() + arrays["labels"].tobytes()).hexdigest()
    if digest != CONTENT_SHA256:
        raise DataError(
            f"The images in {str(find(FETCHED_FILE) or FETCHED_FILE)!r} are not those of MNIST; remove that file."
        )
    return arrays["images"], arrays["labels"]
