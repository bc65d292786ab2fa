"""What is shared: places of several processes, links in a received folder, damaged files, threads of one process, names."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust.choosing.consensus import Vote
from ddclust.data.tables import Table
from ddclust.datasets import read_labels
from ddclust.results import (
    ResultFolderError,
    changed_files,
    labels_file,
    labels_table,
    read_run,
    under_way,
)
from torture.faults import FIT, Place, command
from torture.table import Part, Result

X, _ = make_blobs(120, centers=3, random_state=0)
SHORT: dict = {"max_iter": 10, "learning_rate": 1e-3, "n_jobs": 1}
# What breaks tables, terminals and lines.
PIECES = [
    *(
        "\r",
        "\n",
        "\r\n",
        '"',
        '""',
        ",",
        ";",
        "\t",
        "'",
        "\x1b[31m",
        "\u202e",
        "\u2066",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x00"[:0],
    ),
    *(
        "🦭",
        "é",
        "e\u0301",
        " ",
        "  ",
        "-1",
        "=1+1",
        "+",
        "@SUM",
        "item",
        "cluster",
        "a",
        "b",
        "0",
        "\\",
        "/",
        "%",
        "\x7f",
        "\x0b",
    ),
]


def names(n: int, seed: int) -> Iterator[Result]:
    """Tables of random names that are read again."""
    rng = np.random.default_rng(seed)
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "labels.csv"
        for _ in range(n):
            count = int(rng.integers(2, 8))
            found = ["".join(rng.choice(PIECES, rng.integers(1, 6))) for _ in range(count)]
            labels, ones = np.arange(count), np.ones(count)
            file.write_bytes(labels_table(found, Vote(labels, ones), ones[:, None]).encode())
            try:
                read = read_labels(file)
                same = read.item_names == found and read.labels.astype(int).tolist() == labels.tolist()
                failure = "" if same else f"{found!r} become {read.item_names!r}"
            except ValueError as error:
                failure = f"{found!r}: {error}"
            yield Result("names", failure)


def threads(n: int, seed: int) -> Iterator[Result]:
    """Fits in threads of one process, compared with the same ones in turn."""
    warnings.simplefilter("ignore")

    table = Table({"a": [None, *X[1:, 0]], "b": X[:, 1], "site": [f"s{i % 3}" for i in range(len(X))]})

    def fit(number: int) -> bytes:
        # The mixture that is asked first takes most of the time, and no random state.
        options = SHORT if number == 0 else {**SHORT, "anchor": None}
        model = DDC(3, n_init=1 + number % 2, random_state=number % 3, **options)
        return model.fit(table if number == 5 else X).probabilities_.tobytes()

    expected = [fit(number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(fit, [number % 6 for number in range(n)])
        for number, one in enumerate(found):
            yield Result("fits in threads", "" if one == expected[number % 6] else f"fit {number} differs")


def flipped(folder: Path, n: int, seed: int) -> Iterator[Result]:
    """Bits flipped in every file of a result folder: noticed, or without a meaning."""
    made, rng = Place(folder), np.random.default_rng(seed)
    expected = DDC.load(made.result)
    files = [
        path for path in made.result.rglob("*") if path.is_file() and path.name != "names.json"
    ]  # the user's own
    for file in files:
        content = file.read_bytes()
        for _ in range(max(n // len(files), 1)):
            place = int(rng.integers(len(content)))
            changed = bytearray(content)
            changed[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(changed)
            yield Result(f"bits flipped in {file.name.partition('-')[0]}", _noticed(made, file, expected))
        file.write_bytes(content)


def _noticed(made: Place, file: Path, expected: DDC) -> str:
    """What is wrong with how a damaged result folder is read."""
    try:
        run = read_run(made.result)
        if changed_files(made.result, run):
            return ""
        read_labels(labels_file(made.result))
        model = DDC.load(made.result)
        same = (
            run["voters"] == list(expected.voters_)
            and made.labels == (made.result / "labels.csv").read_bytes()
        )
        same &= np.array_equal(model.probabilities_, expected.probabilities_)
        same &= np.array_equal(model.predict_proba(X[:5, :2]), expected.predict_proba(X[:5, :2]))
        return "" if same else f"{file.name}: another content, without a word"
    except ValueError as error:
        return "" if file.name in str(error) or str(made.result) in str(error) else f"nameless: {error}"
    except Exception as error:
        return f"{file.name}: {error!r}"


def linked(folder: Path, *, every: int = 1) -> Iterator[Result]:
    """Received folders in which a file or folder is a link to somewhere else: nothing is written there."""
    made = Place(folder / "place")
    cases: dict[str, tuple[Callable[[Path], None], Callable[[Path], list[str]]]] = {
        "resume": (lambda place: _unfinished(made, place), lambda place: ["resume", str(place)]),
        "report": (
            lambda place: shutil.copytree(made.result, place),
            lambda place: ["report", str(place), str(made.data)],
        ),
        "scan": (
            lambda place: _made(_scan(made, place), made, interrupted=True),
            lambda place: _scan(made, place),
        ),
        "compare": (
            lambda place: _made(_compare(made, place), made),
            lambda place: _compare(made, place),
        ),
    }
    number = 0
    for name, (prepare, arguments) in cases.items():
        template = folder / f"template-{name}"
        prepare(template)
        inside = sorted(str(path.relative_to(template)) for path in template.rglob("*"))
        extra = {
            "resume": ["checkpoints/lock", ".lock", "model", "labels.csv", "history.json", "report.html"]
        }
        for link in dict.fromkeys(
            [*inside, *extra.get(name, ["lock", "report.html", "labels.csv", ".lock"])]
        ):
            for kind in ("file", "folder"):
                number += 1
                if number % every:
                    continue
                place, outside = folder / "received", folder / "outside"
                for each in (place, outside):
                    shutil.rmtree(each, ignore_errors=True)
                # Links are in what is received, which is made under the name that its own files give.
                shutil.copytree(template, place)
                before = _link(place / link, outside, kind)
                failure = command(arguments(place), made.printed, may_end_with=(130,))
                if _content(outside) != before:
                    failure = f"what a link leads to was changed; {failure}"
                yield Result(f"links, {name}", failure and f"{link} leads to a {kind}: {failure}")


def _link(path: Path, outside: Path, kind: str) -> dict[str, tuple]:
    """Replace a path by a link to a file or folder outside; gives what that holds."""
    outside.mkdir()
    target = outside / "precious"
    if path.is_dir() and kind == "folder":
        shutil.copytree(path, target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.write_bytes(path.read_bytes() if path.is_file() else b"precious")
    (target / "mine" if kind == "folder" else outside / "mine").write_text("precious")
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return _content(outside)


def _content(folder: Path) -> dict[str, tuple]:
    """All that is in a folder, with what tells whether it was written again."""
    found = {}
    for path in folder.rglob("*"):
        about = path.stat()
        content = b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (content, about.st_ino, about.st_mtime_ns)
    return found


def _unfinished(made: Place, place: Path) -> None:
    """A fit that was killed after it had begun."""
    import signal

    def meanwhile(pid: int) -> None:
        while not any(place.glob("checkpoints/run-*")):
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)

    options = ["--max-iter", "300", "--learning-rate", "0.001"]
    command(["fit", str(made.data), *FIT, *options, "--out", str(place)], made.printed, meanwhile=meanwhile)
    shutil.copytree(made.result / "model", place / "model", dirs_exist_ok=True)


def _scan(made: Place, place: Path) -> list[str]:
    options = ["--from", "2", "--to", "2", "--runs", "2", "--max-iter", "2", "--jobs", "1"]
    return ["scan", str(made.data), *options, "--out", str(place)]


def _compare(made: Place, place: Path) -> list[str]:
    return [
        "compare",
        str(made.data),
        "-k",
        "2",
        "--methods",
        "k-means",
        "--runs",
        "1",
        "--out",
        str(place),
        "--quiet",
    ]


def _made(arguments: list[str], made: Place, *, interrupted: bool = False) -> None:
    failure = command(arguments, made.printed)
    if failure:
        raise RuntimeError(failure)
    if interrupted:
        file = Path(arguments[-1]) / "k-002" / "row.json"
        content = json.loads(file.read_text())
        file.write_text(
            json.dumps({name: value for name, value in content.items() if name not in ("row", "sha256")})
        )


SAVER = """
import sys
from pathlib import Path
import numpy as np
import torch
from ddclust.storage.model_folder import load_model, save_model
place, number = Path(sys.argv[1]), float(sys.argv[2])
for turn in range(int(sys.argv[3])):
    save_model(place / "model", {"number": number}, {"a": torch.full((1000,), number)}, overwrite=True)
"""


def together(folder: Path, n: int) -> Iterator[Result]:
    """Processes that write to one place: models that are saved over each other, and fits in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    import torch

    from ddclust.storage.model_folder import load_model, save_model

    save_model(folder / "model", {"number": 0.0}, {"a": torch.full((1000,), 0.0)})
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder), str(number), str(n)], stderr=subprocess.PIPE
        )
        for number in (1, 2, 3)
    ]
    while any(saver.poll() is None for saver in savers):
        failure = ""
        try:
            description, tensors = load_model(folder / "model")
            if set(tensors["a"].tolist()) != {description["number"]}:
                failure = "tensors of another description"
        except ValueError as error:
            # The description may be replaced, and its tensors removed, between the reading of the two.
            failure = "" if "missing" in str(error) else str(error)
        yield Result("models saved over each other", failure)
        time.sleep(0.02)
    for saver in savers:
        error = saver.communicate()[1].decode()
        yield Result("models saved over each other", error[-300:])
    load_model(folder / "model")
    rest = [path.name for path in (folder / "model").iterdir()]
    yield Result("models saved over each other", "" if len(rest) == 2 else f"rests: {rest}")


def one_at_a_time(folder: Path, n: int) -> Iterator[Result]:
    """A second fit in a folder is refused and changes nothing; a failing one removes its own files only."""
    for number in range(n):
        place = folder / f"exp-{number}"
        with under_way(place / "a", {"status": "first"}):
            before = (place / "a" / "run.json").read_text()
            try:
                with under_way(place / "a", {"status": "second"}):
                    failure = "two fits at once"
            except ResultFolderError as error:
                failure = "" if "Another fit is working" in str(error) else str(error)
            if (place / "a" / "run.json").read_text() != before:
                failure = "run.json was changed"
        yield Result("fits in one folder", failure)
        with contextlib.suppress(RuntimeError), under_way(place / "b", {"status": "running"}):
            (place / "c").mkdir()
            (place / "c" / "labels.csv").write_text("precious")
            raise RuntimeError
        failure = (
            "" if (place / "c" / "labels.csv").exists() and not (place / "b").exists() else "removed too much"
        )
        yield Result("fits in one folder", failure)


def run(folder: Path, scale: float, seed: int) -> Iterator[Result]:
    """Everything shared."""
    yield from names(max(int(2000 * scale), 20), seed)
    yield from threads(max(int(500 * scale), 12), seed)
    yield from flipped(folder / "flipped", max(int(1000 * scale), 20), seed)
    yield from linked(folder / "linked", every=max(round(1 / scale), 1))
    yield from together(folder / "together", max(int(100 * scale), 10))
    yield from one_at_a_time(folder / "fits", max(int(20 * scale), 2))


PART = Part("share", "cases", 4_000, run)
