"""Reuters-21578: news stories of 1987, as texts."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.named.sampling import sample_of_classes
from ddclust.data.named.store import DataFile, need
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.readers.formats import budget_of
from ddclust.data.readers.json_lines import json_lines

FILE = DataFile(
    "reuters21578_topics.jsonl.gz", "b939c25fc3ddb0088aef56369d1e83ec909949695bc683e729867e2b3998f2a3"
)
TOPICS = ("earn", "acq", "crude", "trade")


def load_reuters21578(*, per_class: int | None = None) -> Bunch:
    """Reuters-21578: title and body of the stories with exactly one of the topics earn, acq, crude and trade.

    Parameters
    ----------
    per_class : int, optional
        The number of stories drawn at random from each topic; by default all stories are kept.

    Returns
    -------
    Bunch
        ``data`` is a list of texts.
    """
    path = need(FILE, "reuters21578")
    chosen = [
        r for _, r in json_lines(path, budget_of(path)) if len(r["topics"]) == 1 and r["topics"][0] in TOPICS
    ]
    target = np.array([TOPICS.index(r["topics"][0]) for r in chosen])
    if per_class is not None:
        places = sample_of_classes(target, per_class, random_state=0)
        chosen, target = [chosen[place] for place in places], target[places]
    return make_bunch(
        [f"{r['title']}\n{r['body']}" for r in chosen],
        target=target,
        target_names=TOPICS,
        item_names=[str(r["id"]) for r in chosen],
        name="reuters21578" if per_class is None else "reuters21578-balanced",
        about="Reuters news of 1987 (Reuters-21578, distribution 1.0) of the four largest topics, as texts.",
    )


SETS = (
    NamedSet(
        "reuters21578",
        load_reuters21578,
        size="7,076 texts",
        classes=4,
        origin="Reuters-21578, distribution 1.0",
        licence="free for research, with acknowledgement",
        files=(FILE.path,),
    ),
    NamedSet(
        "reuters21578-balanced",
        partial(load_reuters21578, per_class=350),
        size="1,400 texts",
        classes=4,
        origin="Reuters-21578, as many of each topic",
        licence="free for research, with acknowledgement",
        files=(FILE.path,),
    ),
)
