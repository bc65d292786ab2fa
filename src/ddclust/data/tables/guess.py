"""What each column of a table is, guessed from its values and its name."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ddclust.data.tables.cells import COMPACT, TRUE_WORDS, gaps_in, words_in
from ddclust.data.tables.kinds import (
    MOST_LEVELS,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    LeftOutColumn,
    NumberColumn,
    TextColumn,
    date_format,
)
from ddclust.data.tables.units import MOSTLY, NumberForm, mixed_units

# What a user can say that a column is.
KINDS = ("number", "category", "boolean", "date", "text", "id")
# Words nearly all of which differ name the rows.
DIFFERENT = 0.9
# Texts have so many words on average, and many differ.
WORDS_OF_TEXT, DIFFERENT_TEXTS = 6.0, 0.5
MOST_DATES = 2000  # numbers that are looked at for days such as 20240131
_ID_NAME = re.compile(r"(^|[^a-z])(id|ids|uuid|guid|index|rownames?|rowid)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](Id|ID)$")


def described_column(name: str, values: NDArray, kind: str | None, language: str) -> Column:
    """The description of a column, of a kind that the user gives or that is guessed.

    Examples
    --------
    >>> from ddclust.data.tables.cells import column_of
    >>> described_column("age", column_of([3, None, 5]), None, "english").kind
    'number'
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"The column {name!r} cannot be a {kind!r}; there are the kinds {', '.join(KINDS)}.")
    gaps = int(gaps_in(values).sum())
    if kind == "id":
        return LeftOutColumn(name, "an id", gaps)
    if gaps == len(values):
        return LeftOutColumn(name, "empty", gaps)
    if len(set(words_in(values).tolist()) - {None}) == 1 and not (gaps and kind):
        return LeftOutColumn(name, "the same everywhere", gaps)
    makers: dict[str, Callable[[], Column]] = {
        "number": lambda: _numbers(name, values),
        "category": lambda: CategoryColumn.of(name, values),
        "boolean": lambda: BooleanColumn.of(name, values),
        "date": lambda: DateColumn.of(name, values),
        "text": lambda: TextColumn.of(name, values, language),
    }
    guessed = kind or guessed_kind(name, values)
    return makers[guessed]() if guessed in makers else LeftOutColumn(name, guessed, gaps)


def guessed_kind(name: str, values: NDArray) -> str:
    """The kind of a column with at least two different values, or why it is left out.

    Examples
    --------
    >>> from ddclust.data.tables.cells import column_of
    >>> guessed_kind("sex", column_of(["m", "f", "m", None])), guessed_kind("PassengerId", column_of([7, 9, 8]))
    ('category', 'an id, all values differ')
    """
    if values.dtype.kind == "M":
        return "date"
    if values.dtype.kind == "f":
        return _kind_of_numbers(name, values)
    words = [word.strip() for word in values if word is not None]
    different = set(words)
    form = NumberForm.of(values)
    if form is not None:
        return "number" if form.unit else _kind_of_numbers(name, form.numbers(values))
    if _are_opposites(different):
        return "boolean"
    if date_format(values, MOSTLY) is not None:
        return "date"
    n_words = sum(len(word.split()) for word in different) / len(different)
    if n_words >= WORDS_OF_TEXT and len(different) > DIFFERENT_TEXTS * len(words):
        return "text"
    if is_called_id(name) and len(different) > MOST_LEVELS:
        return "an id by its name"
    if len(different) > max(DIFFERENT * len(words), 4):
        units = mixed_units(values)
        if units:
            return f"numbers in different units: {', '.join(units)}; convert them to one"
        return (
            "an id, all values differ" if len(different) == len(words) else "an id, nearly all values differ"
        )
    return "category"


def looks_like_id(name: str, numbers: NDArray[np.float64]) -> bool:
    """Whether numbers count or call the rows: whole and all different, with such a name or in steps of one."""
    if (
        np.isnan(numbers).any()
        or (numbers != np.floor(numbers)).any()
        or len(np.unique(numbers)) < len(numbers)
    ):
        return False
    return is_called_id(name) or (len(numbers) > 2 and bool((np.diff(numbers) == 1).all()))


def is_called_id(name: str) -> bool:
    """Whether a column is called an id.

    Examples
    --------
    >>> [name for name in ("id", "customer id", "PassengerId", "humid") if is_called_id(name)]
    ['id', 'customer id', 'PassengerId']
    """
    return _ID_NAME.search(name) is not None or _CAMEL_ID.search(name) is not None


def _kind_of_numbers(name: str, numbers: NDArray[np.float64]) -> str:
    if looks_like_id(name, numbers):
        return "an id, all values differ"
    if date_format(words_in(numbers[:MOST_DATES]), 1.0) == COMPACT:
        return "date"
    different = set(numbers[~np.isnan(numbers)].tolist())
    return "boolean" if different == {0.0, 1.0} else "number"


def _numbers(name: str, values: NDArray) -> Column:
    form = NumberForm.of(values, mostly=0)
    if form is None:
        units = ", ".join(mixed_units(values))
        raise ValueError(
            f"The column {name!r} holds numbers in different units: {units}; convert them to one."
            if units
            else f"The column {name!r} holds no numbers; it can be a category or a text."
        )
    return NumberColumn.of(name, values, form)


def _are_opposites(words: set[str]) -> bool:
    lower = {word.lower() for word in words}
    return len(words) == 2 and any(lower == {yes, no} for yes, no in TRUE_WORDS.items())
