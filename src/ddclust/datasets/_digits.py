"""scikit-learn's embedded handwritten digits."""

from __future__ import annotations

import sklearn.datasets
from sklearn.utils import Bunch


def load_digits() -> Bunch:
    """1797 grey images of 8x8 pixels, ten classes; they come with scikit-learn.

    Returns
    -------
    Bunch

    Examples
    --------
    >>> load_digits().data.shape
    (1797, 8, 8)
    """
    digits = sklearn.datasets.load_digits()
    return Bunch(
        data=digits.images,
        target=digits.target,
        item_names=[str(i) for i in range(len(digits.images))],
        name="digits",
        about="Handwritten digits of 8x8 pixels, ten classes, from scikit-learn (UCI, CC BY 4.0).",
    )
