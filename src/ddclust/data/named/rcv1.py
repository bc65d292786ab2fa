"""Reuters' RCV1: the paper's news stories, and a smaller subset that can stand in for them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.fetch import fetched
from ddclust.data.named.sampling import sample_of_classes
from ddclust.data.named.store import DataFile, cache_folder, need, where_to
from ddclust.data.readers.arrays import read_npz
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.readers.formats import ReadOptions
from ddclust.data.text import tfidf_of_counts

FETCHED_FILE = "reuters-rcv1.npz"
SUBSET_FILE = DataFile(
    "rcv1_subset1_top944.npz", "696be17477ec420d5b9e82171d2f7867ec62649972c68fea268c5bf5f39014ac"
)
ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")


def load_reuters(*, per_class: int = 54_000, random_state: int = 0) -> Bunch:
    """The paper's Reuters: equally many RCV1 stories of each root category, TF-IDF of 2,000 word stems.

    Only stories with exactly one root category are used. The word stems are those of the RCV1-v2 vectors that
    scikit-learn fetches (656 MB). The 2,000 stems that occur in most stories are kept, and rows are scaled to unit
    length again.

    Parameters
    ----------
    per_class : int, default=54_000
        The number of stories drawn at random from each category.
    random_state : int, default=0

    Returns
    -------
    Bunch
        ``data`` is a CSR matrix.
    """

    def fetch(data_home: Path) -> dict[str, NDArray]:
        from sklearn.datasets import fetch_rcv1

        return single_root_stories(fetch_rcv1(data_home=data_home))

    arrays = fetched(
        FETCHED_FILE,
        {"data", "indices", "indptr", "shape", "y", "id"},
        fetch,
        "reuters",
        f"{FETCHED_FILE!r} from a machine where the data set has been loaded {where_to()}; or the archives of RCV1-v2"
        f" (lyrl2004_vectors_*.dat.gz, rcv1v2.topics.qrels.gz) into {str(cache_folder() / 'RCV1')!r}",
    )
    target = arrays["y"].astype(np.int64)
    chosen = sample_of_classes(target, per_class, random_state)
    return make_bunch(
        _matrix(arrays)[chosen],
        target=target[chosen],
        target_names=ROOTS,
        item_names=arrays["id"][chosen].astype(str).tolist(),
        name="reuters",
        about="Reuters news (RCV1-v2, Lewis et al. 2004) of four root categories, TF-IDF of 2,000 word stems.",
    )


def load_rcv1_subset(*, per_class: int | None = None) -> Bunch:
    """A subset of RCV1: 5,107 stories with one root category, in classes of unequal size, TF-IDF of 944 terms.

    Parameters
    ----------
    per_class : int, optional
        The number of stories drawn at random from each category; by default all stories are kept.

    Returns
    -------
    Bunch
        ``data`` is a CSR matrix.
    """
    pattern = read_npz(need(SUBSET_FILE, "rcv1-subset"), ReadOptions())
    keep = np.flatnonzero(pattern.target >= 0)
    if per_class is not None:
        keep = keep[sample_of_classes(pattern.target[keep], per_class, random_state=0)]
    return make_bunch(
        tfidf_of_counts(pattern.data[keep]),
        target=pattern.target[keep].astype(np.int64),
        target_names=ROOTS,
        item_names=[str(i) for i in keep],
        name="rcv1-subset" if per_class is None else "rcv1-subset-balanced",
        about="Reuters news (RCV1-v2, subset 1) of four root categories, TF-IDF of 944 terms"
        + (", imbalanced." if per_class is None else "."),
    )


SETS = (
    NamedSet(
        "reuters",
        load_reuters,
        size="216,000 x 2,000 sparse",
        classes=4,
        origin="RCV1-v2 (Lewis et al. 2004), by scikit-learn",
        licence="free for research",
        fetched_file=FETCHED_FILE,
    ),
    NamedSet(
        "rcv1-subset",
        load_rcv1_subset,
        size="5,107 x 944 sparse",
        classes=4,
        origin="RCV1-v2, subset 1 of Mulan/LIBSVM",
        licence="free for research",
        files=(SUBSET_FILE.path,),
    ),
    NamedSet(
        "rcv1-subset-balanced",
        partial(load_rcv1_subset, per_class=400),
        size="1,600 x 944 sparse",
        classes=4,
        origin="RCV1-v2, subset 1, as many of each root",
        licence="free for research",
        files=(SUBSET_FILE.path,),
    ),
)


def single_root_stories(rcv1: Bunch, n_features: int = 2000) -> dict[str, NDArray]:
    """The stories of RCV1 with exactly one root category and their most frequent stems, as plain arrays."""
    columns = [list(rcv1.target_names).index(root) for root in ROOTS]
    roots = np.asarray(rcv1.target[:, columns].todense()) > 0
    keep = np.flatnonzero(roots.sum(axis=1) == 1)
    X = scipy.sparse.csr_array(rcv1.data)[keep]
    n_stories = np.bincount(X.indices, minlength=X.shape[1])
    most_frequent = np.sort(np.argsort(-n_stories, kind="stable")[:n_features])
    X = scipy.sparse.csr_array(normalize(X[:, most_frequent]).astype(np.float32))
    return {
        "data": X.data,
        "indices": X.indices.astype(np.int32),
        "indptr": X.indptr.astype(np.int64),
        "shape": np.array(X.shape),
        "y": roots[keep].argmax(axis=1).astype(np.int8),
        "id": np.asarray(rcv1.sample_id)[keep],
    }


def _matrix(arrays: dict[str, NDArray]) -> Any:
    """The stories as a CSR matrix."""
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = scipy.sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix
