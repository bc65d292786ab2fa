"""Plain texts: a document per line of a .txt file, or per file of a folder."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path

from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, make_bunch, refuse_too_many_unreadable
from ddclust.data.readers.encodings import UTF_8, called, guessed_encoding, note_of
from ddclust.data.readers.folders import classes_note, files_of, left_out_files, truth_by_subfolder
from ddclust.data.readers.formats import ENCODING, Format, ReadOptions
from ddclust.data.readers.text_files import LINE_BYTES, open_text, stem

TEXT_SUFFIXES = (".txt",)


def read_txt(path: Path, options: ReadOptions) -> Bunch:
    """One document per line; empty lines are skipped, and items are named by their line, counted from 1."""
    with open_text(path, options.budget(path), options.known_encoding) as file:
        encoding = str(getattr(file, "encoding", UTF_8))
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
        notes=note_of(encoding, "The texts are"),
    )


def read_text_folder(folder: Path, options: ReadOptions) -> Bunch:
    """Every .txt file below a folder; sub-folders are the classes if every file is in one."""
    paths = files_of(folder, TEXT_SUFFIXES)
    texts, names, skipped = [], [], {}
    found: Counter[str] = Counter()
    budget = options.budget(folder)
    for path in paths:
        budget.spend(path.stat().st_size + LINE_BYTES)
        name = path.relative_to(folder).as_posix()
        try:
            content = path.read_bytes()
            encoding = options.known_encoding or guessed_encoding(BytesIO(content), name)
            text = content.decode(encoding).replace("\r\n", "\n")
        except UnicodeError:
            skipped[name] = f"not in {called(encoding)}"
        except DataError as error:
            skipped[name] = str(error).removeprefix(f"{name!r} is ").rstrip(".")
        except OSError as error:
            skipped[name] = error.strerror or "unreadable"
        else:
            if "\0" in text:
                skipped[name] = "not a text"
                continue
            texts.append(text)
            found[encoding] += 1
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
        notes=[
            *left_out_files(folder, TEXT_SUFFIXES),
            *classes_note(target_names),
            *(
                note
                for one, n in found.items()
                for note in note_of(one, f"{n:,} of {len(texts):,} texts {'is' if n == 1 else 'are'}")
            ),
        ],
        skipped=skipped,
    )


TXT = Format(TEXT_SUFFIXES, read_txt, ENCODING, may_be_gzipped=True)
TEXT_FOLDER = Format(TEXT_SUFFIXES, read_text_folder, ENCODING)
