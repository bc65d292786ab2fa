"""The small handwritten digits that come with scikit-learn."""

from __future__ import annotations

import sklearn.datasets
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.readers.bunch import make_bunch


def load_digits() -> Bunch:
    """1,797 grey images of 8x8 pixels in ten classes; they come with scikit-learn.

    Returns
    -------
    Bunch

    Examples
    --------
    >>> load_digits().data.shape
    (1797, 8, 8)
    """
    digits = sklearn.datasets.load_digits()
    return make_bunch(
        digits.images,
        target=digits.target,
        target_names=[str(digit) for digit in range(10)],
        name="digits",
        about="Handwritten digits of 8x8 pixels, ten classes, from scikit-learn (UCI, CC BY 4.0).",
    )


SETS = (
    NamedSet(
        "digits",
        load_digits,
        size="1,797 x 8 x 8",
        classes=10,
        origin="UCI, comes with scikit-learn",
        licence="CC BY 4.0",
    ),
)
