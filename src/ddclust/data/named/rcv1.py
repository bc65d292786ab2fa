"""Reuters' RCV1: the paper's news stories, and a smaller subset that can stand in for them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_files
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.fetch import RemoteFile, downloaded, fetched
from ddclust.data.named.sampling import sample_of_classes
from ddclust.data.named.store import DataFile, need, where_to
from ddclust.data.readers.arrays import read_npz
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.readers.formats import ReadOptions, budget_of
from ddclust.data.readers.text_files import open_bytes
from ddclust.data.text import tfidf_of_counts

FETCHED_FILE = "reuters-rcv1.npz"
N_TERMS = 47_236
# The archives of RCV1-v2 as scikit-learn names them; its own cache of them is pickled, so it is not used.
FIGSHARE = "https://ndownloader.figshare.com/files"
VECTORS = (
    RemoteFile(
        "RCV1/lyrl2004_vectors_train.dat.gz",
        "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae",
        f"{FIGSHARE}/5976057",
    ),
    RemoteFile(
        "RCV1/lyrl2004_vectors_test_pt0.dat.gz",
        "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374",
        f"{FIGSHARE}/5976069",
    ),
    RemoteFile(
        "RCV1/lyrl2004_vectors_test_pt1.dat.gz",
        "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6",
        f"{FIGSHARE}/5976066",
    ),
    RemoteFile(
        "RCV1/lyrl2004_vectors_test_pt2.dat.gz",
        "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5",
        f"{FIGSHARE}/5976063",
    ),
    RemoteFile(
        "RCV1/lyrl2004_vectors_test_pt3.dat.gz",
        "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39",
        f"{FIGSHARE}/5976060",
    ),
)
TOPICS = RemoteFile(
    "RCV1/rcv1v2.topics.qrels.gz",
    "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
    f"{FIGSHARE}/5976048",
)
SUBSET_FILE = DataFile(
    "rcv1_subset1_top944.npz", "696be17477ec420d5b9e82171d2f7867ec62649972c68fea268c5bf5f39014ac"
)
ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")


def load_reuters(*, per_class: int = 54_000, random_state: int = 0) -> Bunch:
    """The paper's Reuters: equally many RCV1 stories of each root category, TF-IDF of 2,000 word stems.

    Only stories with exactly one root category are used. The word stems are those of the RCV1-v2 vectors (656 MB), which
    are downloaded once, checked by their digests, and kept as plain arrays. The 2,000 stems that occur in most stories are
    kept, and rows are scaled to unit length again.

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
    arrays = fetched(
        FETCHED_FILE,
        {"data", "indices", "indptr", "shape", "y", "id"},
        lambda _: stories_of_archives(),
        "reuters",
        f"{FETCHED_FILE!r} from a machine where the data set has been loaded, or a folder RCV1 with the archives of RCV1-v2"
        f" (lyrl2004_vectors_*.dat.gz, rcv1v2.topics.qrels.gz), {where_to()}; the .pkl files that scikit-learn keeps are not"
        " read, since reading them could run code",
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
        origin="RCV1-v2 (Lewis et al. 2004)",
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


def stories_of_archives() -> dict[str, NDArray]:
    """The stories in the original files, downloaded if they are not at hand, as plain arrays."""
    vectors = [downloaded(remote, "reuters") for remote in VECTORS]
    topics = downloaded(TOPICS, "reuters")
    parts = load_svmlight_files(vectors, n_features=N_TERMS)
    ids = np.concatenate(parts[1::2]).astype(np.uint32)
    return single_root_stories(scipy.sparse.vstack(parts[::2], format="csr"), _roots(topics, ids), ids)


def _roots(topics: Path, ids: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which stories have which root categories, of shape (n, 4), from lines such as "MCAT 2286 1"."""
    place = {story: row for row, story in enumerate(ids.tolist())}
    roots = np.zeros((len(ids), len(ROOTS)), dtype=bool)
    with open_bytes(topics, budget_of(topics)) as file:
        for line in file:
            category, _, rest = line.decode("ascii").partition(" ")
            if category in ROOTS:
                roots[place[int(rest.split()[0])], ROOTS.index(category)] = True
    return roots


def single_root_stories(
    vectors: Any, roots: NDArray[np.bool_], ids: NDArray[np.uint32], n_features: int = 2000
) -> dict[str, NDArray]:
    """The stories of RCV1 with exactly one root category and their most frequent stems, as plain arrays."""
    keep = np.flatnonzero(roots.sum(axis=1) == 1)
    X = scipy.sparse.csr_array(vectors)[keep]
    n_stories = np.bincount(X.indices, minlength=X.shape[1])
    most_frequent = np.sort(np.argsort(-n_stories, kind="stable")[:n_features])
    X = scipy.sparse.csr_array(normalize(X[:, most_frequent]).astype(np.float32))
    return {
        "data": X.data,
        "indices": X.indices.astype(np.int32),
        "indptr": X.indptr.astype(np.int64),
        "shape": np.array(X.shape),
        "y": roots[keep].argmax(axis=1).astype(np.int8),
        "id": ids[keep],
    }


def _matrix(arrays: dict[str, NDArray]) -> Any:
    """The stories as a CSR matrix."""
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = scipy.sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix
