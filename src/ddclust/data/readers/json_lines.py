"""Texts in .jsonl files, a JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, coded, make_bunch
from ddclust.data.readers.columns import ID_COLUMN
from ddclust.data.readers.formats import COLUMN_OPTIONS, Format, ReadOptions
from ddclust.data.readers.text_files import open_text, stem
from ddclust.storage.limits import Budget, in_words

TITLE_FIELDS = ("title", "headline")
LONGEST_OBJECT = 2**26  # characters
MOST_FIELDS = 10_000
BODY_FIELDS = ("text", "body", "content", "document", "abstract")


def read_jsonl(path: Path, options: ReadOptions) -> Bunch:
    """One text per object, from one field or several."""
    keys = _keys(path, options.budget(path))
    named = [name.strip() for name in (options.text_column or "").split(",") if name.strip()]
    fields = named or _text_fields(keys)
    id_field = options.id_column or (ID_COLUMN if ID_COLUMN in keys else None)
    unknown = [f for f in (*fields, id_field, options.truth_column) if f is not None and f not in keys]
    if unknown or not fields:
        raise DataError(
            f"{str(path)!r} has no field {(unknown or ['text'])[0]!r}; its fields are {', '.join(sorted(keys))}. Name the"
            " fields that hold the text (text_column='title,body')."
        )
    texts, names, classes = [], [], []
    for line, record in json_lines(path, options.budget(path)):
        parts = [record.get(field) for field in fields]
        for field, part in zip(fields, parts, strict=True):
            if part is not None and not isinstance(part, str):
                raise DataError(f"{str(path)!r}: line {line}: {field!r} is not a text but {part!r:.60}.")
        texts.append("\n".join(part for part in parts if part))
        name = None if id_field is None else record.get(id_field)
        names.append(str(line if name is None else name))
        if options.truth_column is not None:
            classes.append(_class_of(record.get(options.truth_column), options.truth_column, line, path))
    target, target_names = coded(classes) if classes else (None, None)
    return make_bunch(
        texts,
        target=target,
        target_names=target_names,
        item_names=names,
        name=stem(path),
        about=f"Read from {path.name}: {' and '.join(fields)} of each object.",
    )


JSON_LINES = Format((".jsonl",), read_jsonl, COLUMN_OPTIONS, may_be_gzipped=True)


def json_lines(path: Path, budget: Budget) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of every line that is not empty, one at a time: an object can take much more room than its line."""
    number = 0
    with open_text(path, budget) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            if len(line) > LONGEST_OBJECT:
                raise DataError(
                    f"{str(path)!r}: line {number} is longer than {in_words(LONGEST_OBJECT)}; shorten it."
                )
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{str(path)!r}: line {number} is not JSON: {error}.") from error
            if not isinstance(record, dict):
                raise DataError(f'{str(path)!r}: line {number} is not an object such as {{"text": "..."}}.')
            yield number, record
    if not number:
        raise DataError(f"{str(path)!r} is empty.")


def _keys(path: Path, budget: Budget) -> set[str]:
    """The fields of all objects."""
    keys: set[str] = set()
    for _, record in json_lines(path, budget):
        keys |= record.keys()
        if len(keys) > MOST_FIELDS:
            raise DataError(
                f"{str(path)!r} has more than {MOST_FIELDS:,} different fields; its objects must have the same ones."
            )
    if not keys:
        raise DataError(f"{str(path)!r} is empty.")
    return keys


def _text_fields(keys: set[str]) -> list[str]:
    """The fields of the usual names: a title, if there is one, and a body."""
    body = [field for field in BODY_FIELDS if field in keys][:1]
    title = [field for field in TITLE_FIELDS if field in keys][:1]
    return title + body


def _class_of(value: Any, field: str, line: int, path: Path) -> str:
    """The class in a field; a list with one class counts as that class."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, (str, int, float, bool)):
        raise DataError(
            f"{str(path)!r}: line {line}: {field!r} is {value!r:.60}; it must be one class for each item."
        )
    return str(value)
