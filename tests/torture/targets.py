"""What is fuzzed: every reader of data and every file of the project's own, with what reads them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
import shutil
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.datasets import make_blobs

from commands import QUICK as QUICK_FIT
from commands import run as run_command
from ddclust import DDC, results
from ddclust.compare.comparison import Protocol, compare
from ddclust.compare.job import Result as FitResult
from ddclust.compare.process import Budget, is_made
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.tables import Columns, Table
from ddclust.datasets import load, read_labels, read_pairs
from ddclust.encoders.cache import FolderCache
from ddclust.scan import scan
from ddclust.training.checkpoints import RunStore
from helpers import seal
from torture.mutate import mutated_bytes, mutated_json

CORPUS = Path(__file__).parent / "corpus"
X, _ = make_blobs(30, centers=2, random_state=0)
NAMES = [f"item {i}" for i in range(len(X))]
FIT: dict[str, Any] = {"max_iter": 2, "augment": None, "neighbors": None, "n_jobs": 1, "random_state": 0}
Mutate = Callable[[Sequence[bytes], np.random.Generator], bytes]


class CommandFailedError(Exception):
    """A command that ended otherwise than with 0, or with 2 and one line."""


class Target(NamedTuple):
    """A kind of file.

    Parameters
    ----------
    name : str
        Also of its folder in the corpus.
    place : callable (folder, content) -> path
        Puts a file where it is read.
    read : callable (path)
        Reads it, as the commands do.
    command : callable (path, out) -> list of str
        A command that reads it.
    seeds : callable () -> list of bytes
        Good files, beyond those in the corpus.
    share : float
        Of the cases; less for what takes longer.
    """

    name: str
    place: Callable[[Path, bytes], Path]
    read: Callable[[Path], Any]
    command: Callable[[Path, Path], list[str]]
    mutate: Mutate = mutated_bytes
    seeds: Callable[[], list[bytes]] = list
    share: float = 1.0

    def kept(self) -> list[Path]:
        """The files of the corpus: good ones, and those that once were read wrongly."""
        return sorted((CORPUS / self.name).glob("*"))

    def all_seeds(self) -> list[bytes]:
        return [file.read_bytes() for file in self.kept()] + self.seeds()


# Data.


def _file(name: str) -> Callable[[Path, bytes], Path]:
    def place(folder: Path, content: bytes) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return place


def _read_data(path: Path) -> None:
    bunch = load(path)
    if hasattr(bunch.data, "__array__"):
        np.asarray(bunch.data[:2]).sum()
    if isinstance(bunch.data, Table):
        _read_columns(bunch.data)
    if str(path).removesuffix(".gz").endswith((".csv", ".tsv", ".jsonl", ".parquet")):
        for options in ({"text_column": "text"}, {"truth_column": "class", "id_column": "id"}):
            try:
                load(path, **options)
            except ValueError as error:
                refuse_nameless(error, path)


def _read_columns(table: Table) -> None:
    """What a fit makes of a table. Errors name the column, since the table may not come from a file."""
    try:
        columns = Columns.of(table)
    except ValueError as error:
        if not any(word in str(error) for word in ("olumn", "X holds")):
            raise AssertionError(f"the message names no column: {error!r}") from error
        return
    columns.encode(table), columns.traits(table), str(columns), table.sha256()
    again = Columns.from_plain(json.loads(json.dumps(columns.to_plain()[0])), columns.to_plain()[1])
    if again.to_plain()[0] != columns.to_plain()[0]:
        raise AssertionError("the description of the columns is another one after saving")


def refuse_nameless(error: BaseException, path: Path) -> None:
    """A message should say which file, or which folder with it, is meant."""
    said = f"{error} {getattr(error, 'filename', '')}"
    own = [path, *itertools.takewhile(lambda parent: parent.name not in ("", "tmp"), path.parents)]
    if not any(part.name in said for part in own):
        raise AssertionError(f"the message does not name the file: {error!r}") from error


def _fit_command(path: Path, out: Path) -> list[str]:
    return ["fit", str(path), "-k", "2", *QUICK_FIT, "--max-iter", "2", "--out", str(out)]


def _data(suffix: str) -> Target:
    return Target(suffix, _file(f"data.{suffix}"), _read_data, _fit_command)


def _gzipped(target: Target) -> Target:
    """The same file through gzip, mutated before or after its compression."""

    def mutate(seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
        if rng.random() < 0.3:
            return gzip.compress(mutated_bytes([gzip.decompress(seed) for seed in seeds], rng), 1, mtime=0)
        return mutated_bytes(seeds, rng)

    return target._replace(
        name=f"{target.name}.gz",
        place=_file(f"data.{target.name}.gz"),
        mutate=mutate,
        seeds=lambda: [gzip.compress(seed, 1, mtime=0) for seed in target.all_seeds()],
    )


def _images(suffix: str) -> Target:
    def place(folder: Path, content: bytes) -> Path:
        place = folder / "images"
        place.mkdir(exist_ok=True)
        for name in ("a", "b"):
            (place / f"{name}.{suffix}").write_bytes(content)
        for number in range(8):
            shutil.copy(CORPUS / "png" / "grey.png", place / f"good-{number}.png")
        return place

    return Target(suffix, place, lambda path: load(path), _fit_command, share=0.2)


def _labels(suffix: str) -> Target:
    truth = ["item,cluster", *(f"{i},{i % 2}" for i in range(6))]

    def place(folder: Path, content: bytes) -> Path:
        (folder / "truth.csv").write_text("\n".join(truth) + "\n")
        return _file(f"labels.{suffix}")(folder, content)

    def command(path: Path, out: Path) -> list[str]:
        return ["evaluate", str(path), str(path.with_name("truth.csv"))]

    return Target(f"labels.{suffix}", place, lambda path: read_labels(path), command)


def _pairs_command(path: Path, out: Path) -> list[str]:
    data = path.with_name("pairs-data.npy")
    np.save(data, X)
    return [*_fit_command(data, out), "--must-link", str(path)]


# The project's own files.


@cache
def _model() -> DDC:
    return DDC(2, n_init=1, **FIT).fit(X)


@cache
def _table() -> Table:
    """Columns of every kind, with gaps."""
    places = range(60)
    columns = {
        "mass": [None if i % 9 == 4 else float(i) for i in places],
        "tail": [float(10 ** (i % 7)) * i for i in places],
        "sex": ["f" if i % 2 else "m" for i in places],
        "site": [None if i % 11 == 3 else f"site {i % 25}" for i in places],
        "wild": [("yes", "no")[i % 3 == 0] for i in places],
        "day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in places],
        "note": [f"a {('seal', 'ship', 'sea')[i % 3]} seen on the {('ice', 'shore')[i % 2]}" for i in places],
        "land": ["x"] * 60,
    }
    return Table(columns, kinds={"note": "text"})


@cache
def _model_of_table() -> DDC:
    return DDC(2, n_init=1, **FIT).fit(_table())


class Vowels:
    """An encoder with a digest, so that its features are kept."""

    name, digest = "vowels", "0123456789abcdef"

    def __call__(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(vowel) for vowel in "aeiou"] for text in texts], dtype=float)


TEXTS = [("a banana and a canal", "deep green trees", "old fog on top")[i % 3] + "a" * i for i in range(30)]


@cache
def _model_of_encoded() -> DDC:
    import tempfile
    from unittest import mock

    with (
        tempfile.TemporaryDirectory() as place,
        mock.patch("ddclust.encoders.cache.cache_folder", return_value=Path(place)),
    ):
        return DDC(2, n_init=1, encoder=Vowels(), **FIT).fit(TEXTS)


def _result_folder(folder: Path) -> Path:
    """A result folder of a fit under way, with checkpoints, and the data beside it."""
    place, data = folder / "result", folder / "other.npy"
    if not place.exists():
        np.save(data, X[::-1])
        bunch = make_bunch(X, name="blobs", about="", item_names=NAMES)
        options = {"clusters": 2, "runs": 1, "max_iter": 2, "jobs": 1, "augment": "none", "report": False}
        run = results.description(bunch, str(data), options)
        DDC(2, n_init=1, **FIT).set_params(checkpoint_dir=place / "checkpoints").fit(X)
        results.write_json(place / "run.json", run)
    return place


@cache
def _template(name: str) -> bytes:
    """A file of a real result folder, scan or comparison, without its digest, which a mutation would break."""
    content = json.loads(_sealed(name))
    if name != "model.json":
        content.pop("sha256", None)
    return json.dumps(content, indent=1).encode()


def _sealed(name: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if name == "row.json":
            with patch("ddclust.scan._write"):  # the summary and its picture
                scan(X, [2], model=DDC(n_init=2, **FIT), folder=folder / "scan")
            return (folder / "scan" / "k-002" / "row.json").read_bytes()
        if name in ("comparison.json", "result.json", "job.json"):
            return next(_comparison(folder).rglob(name)).read_bytes()
        if name == "model.json":
            return _saved(_model)[name]
        found = _result_folder(folder)
        return (found / name).read_bytes()


@cache
def _comparison_files() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        compare(X, 2, Path(place), methods=["k-means"], runs=1)
        return {str(p.relative_to(place)): p.read_bytes() for p in Path(place).rglob("*") if p.is_file()}


def _comparison(folder: Path) -> Path:
    place = folder / "comparison"
    for name, content in _comparison_files().items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def _in_result(name: str) -> Callable[[Path, bytes], Path]:
    def place(folder: Path, content: bytes) -> Path:
        found = _result_folder(folder)
        for own in ("run.json", "checkpoints/fit.json"):
            (found / own).write_bytes(_template(own))
        (found / name).write_bytes(content)
        return found / name

    return place


def refuse_failed(*arguments: str) -> None:
    """Run a command in this process; it must end with 0, or with 2 and one line."""
    done = run_command(*arguments)
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(("Note:", "Warning:"))]
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise CommandFailedError(f"{' '.join(arguments)}: {done.exception!r}") from done.exception
    if done.exit_code not in (0, 2) or (
        done.exit_code == 2 and not lines[-1].startswith(("Error:", "Usage:"))
    ):
        raise CommandFailedError(f"{' '.join(arguments)}: exit code {done.exit_code}, {done.stderr}")


def _read_run(path: Path) -> None:
    refuse_failed("runs", str(path.parent))
    refuse_failed("resume", str(path.parent), "--quiet")


def _read_fit(path: Path) -> None:
    refuse_failed("runs", str(path.parents[1]))
    DDC(2, n_init=1, **FIT).set_params(checkpoint_dir=path.parent).fit(X)


def _checkpoint_place(folder: Path, content: bytes) -> Path:
    """The state of a run with the digest that belongs to it, as somebody would write it who tampers with it."""
    place = _in_result("run.json")(folder, _template("run.json")).parent / "checkpoints"
    for file in place.glob("run-*"):
        file.unlink()
    (place / "run-000.b").write_bytes(hashlib.sha256(content).digest() + content)
    return place / "run-000.b"


def _read_checkpoint(path: Path) -> None:
    RunStore(path.parent).load(0)
    _read_fit(path)


@cache
def _state() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        found = _result_folder(Path(place))
        return max((found / "checkpoints").glob("run-000.*")).read_bytes()[32:]


def _mutated_tensors(seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """Safetensors with another header, in their bytes or their structure; the tensors stay, or lose their end."""
    content = seeds[rng.integers(len(seeds))]
    size = struct.unpack("<Q", content[:8])[0]
    header, body = content[8 : 8 + size], content[8 + size :]
    if rng.random() < 0.2:
        return mutated_bytes([content[: 8 + size + 64]], rng)
    tree = json.loads(header)
    if rng.random() < 0.6 and "state" in tree.get("__metadata__", {}):
        tree["__metadata__"]["state"] = mutated_json([tree["__metadata__"]["state"].encode()], rng).decode(
            "utf-8", "replace"
        )
        header = json.dumps(tree).encode()
    else:
        header = mutated_json([header], rng)
    return (
        struct.pack("<Q", len(header))
        + header
        + (body if rng.random() < 0.9 else body[: rng.integers(len(body))])
    )


def _model_place(
    folder: Path, description: bytes | None, tensors: bytes | None, model: Callable[[], DDC] = _model
) -> Path:
    """A model with another description or other tensors, whose digests fit them."""
    place = folder / "model"
    shutil.rmtree(place, ignore_errors=True)
    for name, content in _saved(model).items():
        place.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    file = next(place.glob("tensors*.safetensors"))
    if tensors is not None:
        file.write_bytes(tensors)
    if description is not None:
        (place / "model.json").write_bytes(description)
    with contextlib.suppress(Exception):  # if it is not even JSON, digests do not matter
        seal(place)
    return place


@cache
def _saved(model: Callable[[], DDC]) -> dict[str, bytes]:
    """The files of a saved model; saving for each case would take longer than reading."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        model().save(Path(place) / "model")
        return {file.name: file.read_bytes() for file in Path(place, "model").iterdir()}


def _tensors(model: Callable[[], DDC] = _model) -> bytes:
    return next(content for name, content in _saved(model).items() if name.startswith("tensors"))


def _read_model(path: Path) -> None:
    model = DDC.load(path)
    model.predict_proba(X[:3])
    if hasattr(model, "known_items_"):
        model.predict(X[:3], reject=0.1)


def _read_model_of_table(path: Path) -> None:
    """As a table is predicted; the errors of what is predicted need not name the model."""
    model = DDC.load(path)
    str(getattr(model, "columns_", ""))
    with contextlib.suppress(ValueError):
        model.predict_proba(_table()[:3])
        model.columns_.traits(_table()[:3])


def _read_model_of_encoded(path: Path) -> None:
    model = DDC.load(path, encoder=Vowels())
    str(getattr(model, "encoder_", ""))
    with contextlib.suppress(ValueError):
        model.predict_proba(TEXTS[:3])


def _of_model(name: str, model: Callable[[], DDC], read: Callable[[Path], None], entry: str) -> Target:
    """The description of a model, mutated mostly in one of its entries."""

    def seed() -> bytes:
        return _saved(model)["model.json"]

    def mutate(seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
        if rng.random() < 0.2:
            return mutated_json(seeds, rng)
        whole = json.loads(seeds[rng.integers(len(seeds))])
        part = mutated_json([json.dumps(whole[entry]).encode()], rng)
        whole[entry] = 0
        text = json.dumps(whole).encode()
        return text.replace(f'"{entry}": 0'.encode(), f'"{entry}": '.encode() + part, 1)

    return Target(
        name,
        lambda folder, content: _model_place(folder, content, None, model),
        read,
        _predict,
        mutate,
        lambda: [seed()],
        0.15,
    )


# Features that were kept.


def _features() -> list[bytes]:
    import io

    file = io.BytesIO()
    np.save(file, np.ones((4, 3), dtype=np.float32))
    return [file.getvalue()]


def _features_place(folder: Path, content: bytes) -> Path:
    """A file of features whose digest fits, as somebody would write it who tampers with it."""
    path = folder / "key.npy"
    path.write_bytes(content + hashlib.sha256(content).digest())
    return path


def _read_features(path: Path) -> None:
    """What cannot be used counts as absent, whatever is wrong with it."""
    try:
        found = FolderCache(path.parent).read("key")
    except Exception as error:
        raise CommandFailedError(f"the cache raises {error!r}") from error
    if found is not None and (found.ndim != 2 or not np.isfinite(found).all()):
        raise CommandFailedError("the cache gives what are no features")


def _predict(path: Path, out: Path) -> list[str]:
    data = out.with_name("model-data.npy")
    np.save(data, X)
    return ["predict", str(path), str(data)]


def _names_place(folder: Path, content: bytes) -> Path:
    path = folder / "names.json"
    path.write_bytes(content)
    return path


def _names() -> list[bytes]:
    key = results.clustering_key(_model().labels_)
    return [
        json.dumps(
            {"format": results.NAMES_FORMAT, "key": key, "names": {"0": "Seals", "1": "Ships"}}
        ).encode()
    ]


def _row_place(folder: Path, content: bytes) -> Path:
    path = folder / "scan" / "k-002" / "row.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _read_row(path: Path) -> None:
    with patch("ddclust.scan._write"):  # the summary and its picture
        scan(X, [2], model=DDC(n_init=2, **FIT), folder=path.parents[1])


def _scan_command(path: Path, out: Path) -> list[str]:
    data = out.with_name("scan-data.npy")
    np.save(data, X)
    options = ["--from", "2", "--to", "2", "--runs", "2", "--max-iter", "2", "--jobs", "1"]
    return ["scan", str(data), *options, "--out", str(path.parents[1])]


def _comparison_place(name: str) -> Callable[[Path, bytes], Path]:
    def place(folder: Path, content: bytes) -> Path:
        path = next(_comparison(folder).rglob(name))
        path.write_bytes(content)
        return path

    return place


def _read_comparison(path: Path) -> None:
    compare(X, 2, path.parent, methods=["k-means"], runs=1)


def _read_fit_result(path: Path) -> None:
    """As a comparison does that looks whether the fit is made; making it again would start a process."""
    folder = path.parents[2]
    (job,) = Protocol(runs=1).jobs(["k-means"], 2, folder / "data" / "data.npy", folder)
    FitResult.read(path.parent)
    if is_made(job, Budget()):
        compare(X, 2, folder, methods=["k-means"], runs=1)


def _compare_command(path: Path, out: Path) -> list[str]:
    folder = next(parent for parent in path.parents if parent.name == "comparison")
    data = out.with_name("comparison-data.npy")
    np.save(data, X)
    return [
        "compare",
        str(data),
        "-k",
        "2",
        "--methods",
        "k-means",
        "--runs",
        "1",
        "--out",
        str(folder),
        "--quiet",
    ]


DATA = [_data(suffix) for suffix in ("csv", "tsv", "jsonl", "txt", "npy", "npz", "parquet")]
IMAGES = [_images(suffix) for suffix in ("png", "jpg", "gif", "bmp", "tif", "webp", "ppm")]
TARGETS = {
    target.name: target
    for target in (
        *DATA,
        *(_gzipped(target) for target in DATA[:4]),
        *IMAGES,
        *map(_labels, ("csv", "npy", "npz")),
        Target("pairs.csv", _file("pairs.csv"), lambda path: read_pairs(path, NAMES), _pairs_command),
        Target(
            "run.json",
            _in_result("run.json"),
            _read_run,
            lambda path, out: ["runs", str(path.parent)],
            mutated_json,
            lambda: [_template("run.json")],
            0.1,
        ),
        Target(
            "fit.json",
            _in_result("checkpoints/fit.json"),
            _read_fit,
            lambda path, out: ["runs", str(path.parents[1])],
            mutated_json,
            lambda: [_template("checkpoints/fit.json")],
            0.05,
        ),
        Target(
            "checkpoint",
            _checkpoint_place,
            _read_checkpoint,
            lambda path, out: ["runs", str(path.parents[1])],
            _mutated_tensors,
            lambda: [_state()],
            0.05,
        ),
        Target(
            "model.json",
            lambda folder, content: _model_place(folder, content, None),
            _read_model,
            _predict,
            mutated_json,
            lambda: [_template("model.json")],
            0.1,
        ),
        Target(
            "tensors",
            lambda folder, content: _model_place(folder, None, content),
            _read_model,
            _predict,
            _mutated_tensors,
            lambda: [_tensors()],
            0.1,
        ),
        _of_model("columns.json", _model_of_table, _read_model_of_table, "columns"),
        Target(
            "columns.tensors",
            lambda folder, content: _model_place(folder, None, content, _model_of_table),
            _read_model_of_table,
            _predict,
            _mutated_tensors,
            lambda: [_tensors(_model_of_table)],
            0.1,
        ),
        _of_model("encoder.json", _model_of_encoded, _read_model_of_encoded, "encoder"),
        _of_model("calibration.json", _model, _read_model, "calibration"),
        Target(
            "features",
            _features_place,
            _read_features,
            lambda path, out: ["datasets", "circles"],
            mutated_bytes,
            _features,
            1.0,
        ),
        Target(
            "names.json",
            _names_place,
            lambda path: results.read_names(path, _model().labels_, 2),
            lambda path, out: [*_predict(_model_place(path.parent, None, None), out), "--names", str(path)],
            mutated_json,
            _names,
        ),
        Target(
            "row.json",
            _row_place,
            _read_row,
            _scan_command,
            mutated_json,
            lambda: [_template("row.json")],
            0.05,
        ),
        Target(
            "comparison.json",
            _comparison_place("comparison.json"),
            _read_comparison,
            _compare_command,
            mutated_json,
            lambda: [_template("comparison.json")],
            0.1,
        ),
        Target(
            "result.json",
            _comparison_place("result.json"),
            _read_fit_result,
            _compare_command,
            mutated_json,
            lambda: [_template("result.json")],
            0.1,
        ),
        Target(
            "job.json",
            _comparison_place("job.json"),
            _read_fit_result,
            _compare_command,
            mutated_json,
            lambda: [_template("job.json")],
            0.1,
        ),
    )
}
