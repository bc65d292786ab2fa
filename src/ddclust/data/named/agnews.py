"""AG News: short news stories in four categories."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.store import DataFile, need
from ddclust.data.readers.arrays import open_npz, read_npz
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.readers.formats import ReadOptions, budget_of
from ddclust.data.readers.json_lines import json_lines
from ddclust.data.text import tfidf_of_counts

FILE = DataFile(
    "agnews_test_counts2000.npz", "4e6d0acfb41566c89bf5a4cbe8a4aa7e777488cbc0fb7db72e240592b4832684"
)
TEXTS_FILE = DataFile(
    "agnews_test.jsonl.gz", "e3e7cd3de336361e0c8c5815c3cee8550dd78659cf9db8a2164b9ed2032f8618"
)
CLASSES = ("World", "Sports", "Business", "Sci/Tech")


def load_agnews() -> Bunch:
    """AG News: the 7,600 stories of the test part in four balanced categories, TF-IDF of 2,000 word stems.

    Returns
    -------
    Bunch
        ``data`` is a CSR matrix; ``feature_names`` are the stems.
    """
    path = need(FILE, "agnews")
    counts = read_npz(path, ReadOptions())
    arrays = open_npz(path)
    return make_bunch(
        tfidf_of_counts(counts.data),
        target=counts.target.astype(np.int64),
        target_names=arrays["class_names"].tolist(),
        feature_names=arrays["vocabulary"].tolist(),
        name="agnews",
        about="AG's news topics (test part), four classes, TF-IDF of 2,000 word stems.",
    )


def load_agnews_texts() -> Bunch:
    """AG News: title and description of the 7,600 stories of the test part in four balanced categories.

    Returns
    -------
    Bunch
        ``data`` is a list of texts.
    """
    path = need(TEXTS_FILE, "agnews-texts")
    stories = [story for _, story in json_lines(path, budget_of(path))]
    return make_bunch(
        [f"{story['title']}\n{story['description']}" for story in stories],
        target=np.array([CLASSES.index(story["class"]) for story in stories]),
        target_names=CLASSES,
        item_names=[str(story["id"]) for story in stories],
        name="agnews-texts",
        about="AG's news topics (test part), four classes, as texts.",
    )


SETS = (
    NamedSet(
        "agnews",
        load_agnews,
        size="7,600 x 2,000 sparse",
        classes=4,
        origin="AG's corpus of news articles, test part",
        licence="research, not commercial",
        files=(FILE.path,),
    ),
    NamedSet(
        "agnews-texts",
        load_agnews_texts,
        size="7,600 texts",
        classes=4,
        origin="AG's corpus of news articles, test part",
        licence="research, not commercial",
        files=(TEXTS_FILE.path,),
    ),
)
