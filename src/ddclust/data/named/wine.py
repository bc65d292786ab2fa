"""The table of wines that comes with scikit-learn."""

from __future__ import annotations

import sklearn.datasets
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.readers.bunch import make_bunch


def load_wine() -> Bunch:
    """178 wines of three cultivars, by 13 chemical measurements; they come with scikit-learn.

    Returns
    -------
    Bunch

    Examples
    --------
    >>> load_wine().feature_names[:2]
    ['alcohol', 'malic_acid']
    """
    wine = sklearn.datasets.load_wine()
    return make_bunch(
        wine.data,
        target=wine.target,
        target_names=[str(name) for name in wine.target_names],
        feature_names=wine.feature_names,
        name="wine",
        about="Chemical measurements of wines of three cultivars, from scikit-learn (UCI, CC BY 4.0).",
    )


SETS = (
    NamedSet(
        "wine",
        load_wine,
        size="178 x 13",
        classes=3,
        origin="UCI, comes with scikit-learn",
        licence="CC BY 4.0",
    ),
)
