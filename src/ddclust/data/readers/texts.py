"""Texts: a document per line (.txt), per JSON object (.jsonl), or per file of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, Reading, coded, make_bunch, refuse_too_many_unreadable
from ddclust.data.readers.folders import files_of, left_out_files, truth_by_subfolder
from ddclust.data.readers.tables import ID_COLUMN, open_text, stem

TEXT_SUFFIXES = {".txt"}
TITLE_FIELDS = ("title", "headline")
BODY_FIELDS = ("text", "body", "content", "document", "abstract")


def read_txt(path: Path, reading: Reading) -> Bunch:
    """One document per line; empty lines are passed over, and items are named by their line, from 1."""
    with open_text(path) as file:
        lines = [(number, line.strip()) for number, line in enumerate(file, start=1) if line.strip()]
    for number, line in lines:
        if "\0" in line:
            raise DataError(f"{str(path)!r} is not a text file: line {number} holds a zero byte.")
    if not lines:
        raise DataError(f"{str(path)!r} is empty.")
    return make_bunch(
        [line for _, line in lines],
        item_names=[str(number) for number, _ in lines],
        name=stem(path),
        about=f"Read from {path.name}, a document per line.",
    )


def read_jsonl(path: Path, reading: Reading) -> Bunch:
    """One JSON object per line, with the text in one field or several."""
    records = read_json_lines(path)
    keys = {key for _, record in records for key in record}
    named = [name.strip() for name in (reading.text_column or "").split(",") if name.strip()]
    fields = named or _text_fields(keys)
    id_field = reading.id_column or (ID_COLUMN if ID_COLUMN in keys else None)
    unknown = [f for f in (*fields, id_field, reading.truth_column) if f is not None and f not in keys]
    if unknown or not fields:
        raise DataError(
            f"{str(path)!r} has no field {(unknown or ['text'])[0]!r}; its fields are {', '.join(sorted(keys))}. Name the"
            " ones with the text (--text title,body)."
        )
    texts, names, classes = [], [], []
    for line, record in records:
        parts = [record.get(field) for field in fields]
        for field, part in zip(fields, parts, strict=True):
            if part is not None and not isinstance(part, str):
                raise DataError(
                    f"{str(path)!r}: line {line}: {field!r} is not a text but {json.dumps(part)[:60]}."
                )
        texts.append("\n".join(part for part in parts if part))
        name = None if id_field is None else record.get(id_field)
        names.append(str(line if name is None else name))
        if reading.truth_column is not None:
            classes.append(_class_of(record.get(reading.truth_column), reading.truth_column, line, path))
    target, target_names = coded(classes) if classes else (None, None)
    return make_bunch(
        texts,
        target=target,
        target_names=target_names,
        item_names=names,
        name=stem(path),
        about=f"Read from {path.name}: {' and '.join(fields)} of each object.",
    )


def read_text_folder(folder: Path, reading: Reading) -> Bunch:
    """Every .txt file below a folder; sub-folders are the truth if every file is in one."""
    paths = files_of(folder, TEXT_SUFFIXES)
    texts, names, skipped = [], [], {}
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            skipped[name] = "not in UTF-8"
        except OSError as error:
            skipped[name] = error.strerror or "unreadable"
        else:
            if "\0" in text:
                skipped[name] = "not a text"
                continue
            texts.append(text)
            names.append(name)
    refuse_too_many_unreadable(skipped, len(paths), "texts", str(folder))
    target, target_names = truth_by_subfolder(names)
    return make_bunch(
        texts,
        target=target,
        target_names=target_names,
        item_names=names,
        name=folder.resolve().name,
        about=f"Texts from the folder {folder.resolve().name}.",
        notes=left_out_files(folder, TEXT_SUFFIXES),
        skipped=skipped,
    )


def read_json_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """(line, object) of every line that is not empty."""
    records = []
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{str(path)!r}: line {number} is not JSON: {error}") from error
            if not isinstance(record, dict):
                raise DataError(f'{str(path)!r}: line {number} is not an object such as {{"text": "..."}}.')
            records.append((number, record))
    if not records:
        raise DataError(f"{str(path)!r} is empty.")
    return records


def _text_fields(keys: set[str]) -> list[str]:
    """The usual names: a title, if there is one, and a body."""
    body = [field for field in BODY_FIELDS if field in keys][:1]
    title = [field for field in TITLE_FIELDS if field in keys][:1]
    return title + body


def _class_of(value: Any, field: str, line: int, path: Path) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, (str, int, float, bool)):
        raise DataError(
            f"{str(path)!r}: line {line}: {field!r} is {json.dumps(value)[:60]}; it must be one class for each item."
        )
    return str(value)
