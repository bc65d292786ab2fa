"""The data of the experiments: the named data sets, and some tables of scikit-learn."""

from __future__ import annotations

import sklearn.datasets
from sklearn.utils import Bunch

from ddclust.data.text import StemVectorizer
from ddclust.datasets import NAMED, load

TABLES = {
    "iris": sklearn.datasets.load_iris,
    "wine": sklearn.datasets.load_wine,
    "breast_cancer": sklearn.datasets.load_breast_cancer,
}
AS_VECTORS = "-as-vectors"


def is_at_hand(name: str) -> bool:
    """Whether a data set can be loaded here."""
    return name in TABLES or NAMED[name.removesuffix(AS_VECTORS)].at_hand() != "no"


def load_data(name: str) -> Bunch:
    """A data set whose items are vectors or images. Texts become TF-IDF vectors and stay at hand as ``texts``."""
    bunch = TABLES[name]() if name in TABLES else load(name.removesuffix(AS_VECTORS))
    if name.endswith(AS_VECTORS):
        bunch.data = bunch.data.reshape(len(bunch.data), -1).astype("float32")
    if not hasattr(bunch.data, "shape"):
        bunch.texts = bunch.data
        bunch.data = StemVectorizer().fit_transform(bunch.data)
    bunch.name = name
    return bunch
