"""Texts that are installed anyway: the documentation of functions of SciPy, PyTorch and Matplotlib."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ddclust.data.named.declaration import NamedSet
from ddclust.data.readers.bunch import make_bunch

# Where the functions of each topic are.
TOPICS = {
    "neural networks": "torch.nn",
    "plots": "matplotlib.axes.Axes",
    "signals": "scipy.signal",
    "special functions": "scipy.special",
}
PER_TOPIC = 150
PROMPTS = (">>>", "...")  # of lines of code
FEWEST_CHARACTERS = 200  # of a text that says something
# A set of words in a text. Python writes it in another order in every process.
SET = re.compile(r"\{'[^'{}]*'(?:, '[^'{}]*')*\}")


def load_manuals() -> Bunch:
    """600 texts in four topics: what the installed SciPy, PyTorch and Matplotlib say about their functions.

    The topics are the known classes. Which functions and which parts of their texts are taken was chosen with the topics
    in sight, so that scores on these texts are an example and no evidence. Other versions of the packages have slightly
    different texts.

    Returns
    -------
    Bunch
        ``data`` is a list of texts.
    """
    texts: list[str] = []
    names: list[str] = []
    target: list[int] = []
    for topic, place in enumerate(TOPICS.values()):
        found = _texts_of(place)
        chosen = list(found)
        if len(chosen) > PER_TOPIC:
            chosen = [chosen[i] for i in np.linspace(0, len(chosen) - 1, PER_TOPIC).astype(int)]
        texts += [found[name] for name in chosen]
        names += [f"{place}.{name}" for name in chosen]
        target += [topic] * len(chosen)
    return make_bunch(
        texts,
        target=np.array(target),
        target_names=list(TOPICS),
        item_names=names,
        name="manuals",
        about="The documentation of functions of SciPy, PyTorch and Matplotlib, four topics.",
    )


def _texts_of(place: str) -> dict[str, str]:
    """The documentation of all public names in a module or class, without code; texts that repeat are left out."""
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are going away
        owner = _imported(place)
        for name in sorted(getattr(owner, "__all__", None) or dir(owner)):
            thing = getattr(owner, name, None)
            text = inspect.getdoc(thing) if callable(thing) and not name.startswith("_") else None
            lines = (text or "").splitlines()
            text = "\n".join(line for line in lines if not line.lstrip().startswith(PROMPTS)).strip()
            text = SET.sub(_sorted, text)
            if len(text) >= FEWEST_CHARACTERS and text not in found.values():
                found[name] = text
    return found


def _sorted(words: re.Match[str]) -> str:
    """A set of words in alphabetical order.

    Examples
    --------
    >>> SET.sub(_sorted, "Use of ``{'weights', 'normalize'}`` by position")
    "Use of ``{'normalize', 'weights'}`` by position"
    """
    return "{" + ", ".join(sorted(words[0].strip("{}").split(", "))) + "}"


def _imported(place: str) -> Any:
    """A module, or a class in one."""
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        module, _, name = place.rpartition(".")
        return getattr(importlib.import_module(module), name)


SETS = (
    NamedSet(
        "manuals",
        load_manuals,
        size="600 texts",
        classes=len(TOPICS),
        origin="documentation of SciPy, PyTorch, Matplotlib",
        licence="BSD and alike",
    ),
)
