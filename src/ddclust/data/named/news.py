"""News: Reuters' RCV1 as in the paper, and smaller collections that can stand in for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from ddclust.data.named.fetch import fetched
from ddclust.data.named.store import DataFile, cache_folder, need, where_to
from ddclust.data.readers.arrays import open_npz, read_npz
from ddclust.data.readers.bunch import Reading, drawn_of_classes, make_bunch
from ddclust.data.readers.texts import read_json_lines

REUTERS_21578 = DataFile(
    "reuters21578_topics.jsonl.gz", "b939c25fc3ddb0088aef56369d1e83ec909949695bc683e729867e2b3998f2a3"
)
AG_NEWS = DataFile(
    "agnews_test_counts2000.npz", "4e6d0acfb41566c89bf5a4cbe8a4aa7e777488cbc0fb7db72e240592b4832684"
)
RCV1_SUBSET = DataFile(
    "rcv1_subset1_top944.npz", "696be17477ec420d5b9e82171d2f7867ec62649972c68fea268c5bf5f39014ac"
)
RCV1_FILE = "reuters-rcv1.npz"
TOPICS = ("earn", "acq", "crude", "trade")
ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")


def load_reuters(*, per_class: int = 54_000, random_state: int = 0) -> Bunch:
    """The paper's Reuters: RCV1 stories with exactly one root category, as many of each, 2,000 TF-IDF features.

    The word stems are those of the RCV1-v2 vectors that scikit-learn fetches (656 MB); the 2,000 that occur in
    most of the stories are kept, and rows scaled to length one again.

    Parameters
    ----------
    per_class : int, default=54_000
        Stories drawn from each category, at random.
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
        RCV1_FILE,
        {"data", "indices", "indptr", "shape", "y", "id"},
        fetch,
        "reuters",
        f"{RCV1_FILE!r} from a machine where the data set has been loaded {where_to()}; or the archives of RCV1-v2"
        f" (lyrl2004_vectors_*.dat.gz, rcv1v2.topics.qrels.gz) into {str(cache_folder() / 'RCV1')!r}",
    )
    target = arrays["y"].astype(np.int64)
    chosen = drawn_of_classes(target, per_class, random_state)
    return make_bunch(
        _matrix(arrays)[chosen],
        target=target[chosen],
        target_names=ROOTS,
        item_names=arrays["id"][chosen].astype(str).tolist(),
        name="reuters",
        about="Reuters news (RCV1-v2, Lewis et al. 2004) of four root categories, TF-IDF of 2,000 word stems.",
    )


def load_reuters21578(*, per_class: int | None = None) -> Bunch:
    """Reuters-21578: title and body of the stories with exactly one of the topics earn, acq, crude and trade.

    Parameters
    ----------
    per_class : int, optional
        So many stories of each topic, drawn at random; by default all.

    Returns
    -------
    Bunch
        ``data`` is a list of texts.
    """
    records = [record for _, record in read_json_lines(need(REUTERS_21578, "reuters21578"))]
    chosen = [r for r in records if len(r["topics"]) == 1 and r["topics"][0] in TOPICS]
    target = np.array([TOPICS.index(r["topics"][0]) for r in chosen])
    if per_class is not None:
        places = drawn_of_classes(target, per_class, random_state=0)
        chosen, target = [chosen[place] for place in places], target[places]
    return make_bunch(
        [f"{r['title']}\n{r['body']}" for r in chosen],
        target=target,
        target_names=TOPICS,
        item_names=[str(r["id"]) for r in chosen],
        name="reuters21578" if per_class is None else "reuters21578-balanced",
        about="Reuters news of 1987 (Reuters-21578, distribution 1.0) of the four largest topics, as texts.",
    )


def load_agnews() -> Bunch:
    """AG News, the 7,600 stories of the test part: four balanced categories, TF-IDF of 2,000 word stems.

    Returns
    -------
    Bunch
        ``data`` is a CSR matrix; ``feature_names`` are the stems.
    """
    path = need(AG_NEWS, "agnews")
    counts = read_npz(path, Reading())
    arrays = open_npz(path)
    bunch = make_bunch(
        tfidf(counts.data),
        target=counts.target.astype(np.int64),
        target_names=arrays["class_names"].tolist(),
        name="agnews",
        about="AG's news topics (test part), four classes, TF-IDF of 2,000 word stems.",
    )
    bunch.feature_names = arrays["vocabulary"].tolist()
    return bunch


def load_rcv1_subset(*, per_class: int | None = None) -> Bunch:
    """A part of RCV1: 5,107 stories with one root category, of unequal classes, TF-IDF of 944 terms.

    Parameters
    ----------
    per_class : int, optional
        So many stories of each category, drawn at random; by default all.

    Returns
    -------
    Bunch
        ``data`` is a CSR matrix.
    """
    pattern = read_npz(need(RCV1_SUBSET, "rcv1-subset"), Reading())
    keep = np.flatnonzero(pattern.target >= 0)
    if per_class is not None:
        keep = keep[drawn_of_classes(pattern.target[keep], per_class, random_state=0)]
    return make_bunch(
        tfidf(pattern.data[keep]),
        target=pattern.target[keep].astype(np.int64),
        target_names=ROOTS,
        item_names=[str(i) for i in keep],
        name="rcv1-subset" if per_class is None else "rcv1-subset-balanced",
        about="Reuters news (RCV1-v2, subset 1) of four root categories, TF-IDF of 944 terms"
        + (", imbalanced." if per_class is None else "."),
    )


def tfidf(counts: Any) -> Any:
    """TF-IDF of a matrix of counts, weighted as :class:`ddclust.data.text.StemVectorizer` does."""
    return scipy.sparse.csr_array(
        TfidfTransformer(sublinear_tf=True).fit_transform(counts.astype(np.float32))
    )


def single_root_stories(rcv1: Bunch, n_features: int = 2000) -> dict[str, NDArray]:
    """The stories of RCV1 with exactly one root category and their most frequent features, as plain arrays."""
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
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = scipy.sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix
