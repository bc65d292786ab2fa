"""Crash points: whatever fails, stops or dies in the middle of writing, the old or the new content can be loaded."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs

from ddclust import DDC, results
from ddclust.choosing.consensus import Vote
from ddclust.cli.report import write_report
from ddclust.compare.comparison import compare
from ddclust.data.readers.bunch import make_bunch
from ddclust.data.tables import Table
from ddclust.data.writing import write_data
from ddclust.datasets import load, read_labels
from ddclust.encoders.cache import FolderCache
from ddclust.scan import scan
from ddclust.storage.model_folder import load_model, save_model
from ddclust.training import run as _runs
from ddclust.training.checkpoints import RunStore
from torture.disk import HOWS, crashes, failing_at, materialise, recording, snapshot
from torture.table import Part, Result

X, _ = make_blobs(40, centers=3, random_state=0)
NAMES = [f"item {i}" for i in range(len(X))]
# Short, and the same from every process.
QUICK: dict[str, Any] = {"max_iter": 4, "augment": None, "neighbors": None, "n_jobs": 1, "random_state": 0}


class LostError(Exception):
    """Neither the old nor the new content is there, or something is in the way of the next attempt."""


class Scenario(NamedTuple):
    """Something that writes into a folder.

    Parameters
    ----------
    prepare : callable (folder)
        Makes the old content.
    act : callable (folder)
        Replaces it.
    check : callable (folder) -> str
        What can be loaded: "old" or "new"; raises anything if there is neither.
    again : int
        After every how many crashes of a replay the act is repeated, which must lead to the new content.
    """

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], Any]
    check: Callable[[Path], str]
    again: int = 1


@contextlib.contextmanager
def every_step_saved() -> Iterator[None]:
    """A checkpoint at every step."""
    usual = _runs.CHECKPOINT_SECONDS, _runs.CHECKPOINT_SHARE
    _runs.CHECKPOINT_SECONDS, _runs.CHECKPOINT_SHARE = 0.0, 1e9
    try:
        yield
    finally:
        _runs.CHECKPOINT_SECONDS, _runs.CHECKPOINT_SHARE = usual


@cache
def _models() -> tuple[DDC, DDC]:
    """An old and a new model, small ones."""
    return DDC(3, n_init=1, **QUICK).fit(X), DDC(2, n_init=1, **QUICK).fit(X)


def _which(labels: Any) -> str:
    for name, model in zip(("old", "new"), _models(), strict=True):
        if np.array_equal(labels, model.labels_):
            return name
    raise LostError("other labels than the old and the new model's")


def _no_rest(folder: Path) -> None:
    rest = [str(path.relative_to(folder)) for path in folder.rglob(".*.partial")]
    if rest:
        raise LostError(f"hidden rests stay: {rest}")


# Models.


def _check_model(folder: Path) -> str:
    return _which(DDC.load(folder / "model").labels_)


def _check_new_model(folder: Path) -> str:
    return _check_model(folder) if (folder / "model").exists() else "old"


def _check_small(folder: Path) -> str:
    description, tensors = load_model(folder / "model")
    (value,) = {*tensors["a"].tolist()}
    if {"old": 1.0, "new": 2.0}[description["name"]] != value:
        raise LostError("tensors of another description")
    return description["name"]


def _save_small(name: str) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        import torch

        value = {"old": 1.0, "new": 2.0}[name]
        save_model(
            folder / "model",
            {"name": name, "runs": [0] * 40},
            {"a": torch.full((300,), value)},
            overwrite=True,
        )

    return save


# Checkpoints.


@cache
def _states() -> tuple[dict, list]:
    """The identity of a fit, and three states of its run, one after the other."""
    kept: list = []
    with tempfile.TemporaryDirectory() as place, every_step_saved():
        model = DDC(2, n_init=1, **QUICK).set_params(checkpoint_dir=place)
        real = RunStore.save

        def save(store: RunStore, state: Any) -> None:
            kept.append(state._replace(plain=json.loads(json.dumps(state.plain)), record=_copy(state.record)))
            real(store, state)

        RunStore.save = save  # type: ignore[method-assign]
        try:
            model.fit(X)
        finally:
            RunStore.save = real  # type: ignore[method-assign]
        return RunStore(place).read(), kept[:3]


def _copy(record: Any) -> Any:
    return type(record).from_dict(json.loads(json.dumps(record.to_dict())))


def _save_states(*numbers: int) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        identity, states = _states()
        store = RunStore(folder / "checkpoints")
        own = {key: value for key, value in identity.items() if key not in ("format", "format_version")}
        with store.claimed(own):
            for number in numbers:
                store.save(states[number])

    return save


def _check_states(folder: Path) -> str:
    store = RunStore(folder / "checkpoints")
    state = store.load(0)
    if state is None or not store.read()["seeds"] or len(store.records()) != 1:
        raise LostError("no state")
    return {2: "old", 3: "new"}[state.record.saves]


def _check_first_state(folder: Path) -> str:
    place = folder / "checkpoints"
    if not (place / "fit.json").exists():
        return "old"
    return "old" if RunStore(place).load(0) is None else "new"


# A fit with all its checkpoints.


def _fit(folder: Path) -> None:
    with every_step_saved():
        model = DDC(2, n_init=2, n_vote=2, **QUICK).set_params(checkpoint_dir=folder / "checkpoints")
        model.fit(X)
    (folder / "labels").write_text(" ".join(map(str, model.labels_)))


@cache
def _fitted() -> str:
    with tempfile.TemporaryDirectory() as place:
        _fit(Path(place))
        return (Path(place) / "labels").read_text()


def _check_fit(folder: Path) -> str:
    if (folder / "checkpoints" / "fit.json").exists():
        RunStore(folder / "checkpoints").records()
    return "new" if (folder / "labels").exists() and (folder / "labels").read_text() == _fitted() else "old"


# Results of ddclust fit.


def _run() -> dict[str, Any]:
    return results.description(make_bunch(X, name="blobs", about="", item_names=NAMES), "blobs.npy", {})


def _begin_results(folder: Path) -> None:
    _save_states(0, 1)(folder)
    results.write_json(folder / "run.json", _run())


def _write_results(folder: Path) -> None:
    """As ``ddclust resume`` does."""
    if not results.is_unfinished(folder):
        return
    with results.under_way(folder, _run()):
        results.write_results(folder, _models()[1], NAMES, {}, _run())


def _check_results(folder: Path) -> str:
    """Unfinished with checkpoints to go on from, or complete with everything."""
    results.read_records(folder)
    if results.is_unfinished(folder):
        if RunStore(folder / "checkpoints").load(0) is None:
            raise LostError("unfinished and nothing to go on from")
        return "old"
    labels = read_labels(folder / "labels.csv")
    if labels.item_names != NAMES or not json.loads((folder / "history.json").read_text()):
        raise LostError("labels.csv or history.json is not whole")
    model = DDC.load(folder)
    if not np.array_equal(labels.labels.astype(int), model.labels_) or len(results.read_records(folder)) != 1:
        raise LostError("labels.csv, run.json and the model differ")
    return _which(model.labels_)


def _begin_complete(folder: Path) -> None:
    with results.under_way(folder, _run()):
        results.write_results(folder, _models()[0], NAMES, {}, _run())


def _force(folder: Path) -> None:
    """As ``ddclust fit --force`` does."""
    results.refuse_to_replace(folder)
    with results.under_way(folder, _run(), replaces=True):
        _save_states(0)(folder)
        results.write_results(folder, _models()[1], NAMES, {}, _run())


def _check_forced(folder: Path) -> str:
    """The whole earlier fit, the whole new one, or a fit under way whose checkpoints, if there are any, are its own."""
    results.read_records(folder)
    if results.is_unfinished(folder):
        if (folder / "checkpoints" / "fit.json").exists():
            RunStore(folder / "checkpoints").load(0)
        elif any((folder / "checkpoints").glob("run-*")):
            raise LostError("checkpoints that nobody can go on from")
        return "old"
    labels = read_labels(results.labels_file(folder)).labels.astype(int)
    if not np.array_equal(labels, DDC.load(folder).labels_) or results.changed_files(
        folder, results.read_run(folder)
    ):
        raise LostError("a complete fit that is not whole")
    return _which(labels)


def _write_report(names: dict[int, str] | None) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        model = _models()[1]
        bunch = make_bunch(X, name="blobs", about="", item_names=NAMES)
        with contextlib.redirect_stderr(sys.stdout):
            if write_report(folder, model, bunch, _run(), names) is None:
                raise OSError("no report")

    return write


def _check_report(folder: Path) -> str:
    page = (folder / "report.html").read_text()
    if not page.rstrip().endswith("</html>"):
        raise LostError("half a page")
    return "new" if "Seals" in page else "old"


def _write_labels(cluster_names: dict[int, str] | None) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        model = _models()[1]
        vote = Vote(model.labels_, model.agreement_)
        table = results.labels_table(NAMES, vote, model.probabilities_, cluster_names)
        results.write_file(folder / "labels.csv", table.encode())

    return write


def _check_labels(folder: Path) -> str:
    if _which(read_labels(folder / "labels.csv").labels.astype(int)) != "new":
        raise LostError("other labels")
    return "new" if "Seals" in (folder / "labels.csv").read_text() else "old"


# Data sets as files, and features that are kept.


def _write_data(folder: Path) -> None:
    if not (folder / "data.csv").exists():
        write_data(make_bunch(X, name="blobs", about="", item_names=NAMES), folder / "data.csv")


def _check_data(folder: Path) -> str:
    if not (folder / "data.csv").exists():
        return "old"
    if not np.array_equal(load(folder / "data.csv", id_column="id").data, X):
        raise LostError("other data")
    return "new"


def _keep_features(value: float) -> Callable[[Path], None]:
    return lambda folder: FolderCache(folder).write("key", np.full((40, 5), value, dtype=np.float32))


def _check_features(folder: Path) -> str:
    found = FolderCache(folder).read("key")
    if found is None or found.shape != (40, 5):
        raise LostError("no features")
    return {1.0: "old", 2.0: "new"}[float(found.min())]


@cache
def _model_of_table() -> DDC:
    table = Table({"a": [None, *X[1:, 0]], "site": [f"s{i % 3}" for i in range(len(X))]})
    return DDC(2, n_init=1, **QUICK).fit(table)


def _check_table(folder: Path) -> str:
    model = DDC.load(folder / "model")
    if not hasattr(model, "columns_"):
        return _which(model.labels_)
    found, expected = (json.dumps(one.columns_.to_plain()[0]) for one in (model, _model_of_table()))
    if found != expected or not np.array_equal(model.labels_, _model_of_table().labels_):
        raise LostError("another model of a table")
    return "new"


# Scans and comparisons.


def _scan(*numbers: int) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        scan(X, numbers, model=DDC(n_init=2, **QUICK), folder=folder / "scan")

    return act


def _rows(found: dict) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found["rows"]]


@cache
def _scanned() -> dict[int, dict]:
    with tempfile.TemporaryDirectory() as place:
        _scan(2, 3)(Path(place))
        return {row["k"]: row for row in _rows(json.loads((Path(place) / "scan" / "scan.json").read_text()))}


def _check_scan(folder: Path) -> str:
    """Rows that are there are right; scan.json is the old or the new one."""
    place = folder / "scan"
    rows = [json.loads(file.read_text()) for file in place.glob("k-*/row.json")]
    for row in _rows({"rows": [row["row"] for row in rows if "row" in row]}):
        if row != _scanned()[row["k"]]:
            raise LostError("another row")
    found = _rows(json.loads((place / "scan.json").read_text()))
    if found != [_scanned()[row["k"]] for row in found]:
        raise LostError("other rows in scan.json")
    return "new" if len(found) == 2 else "old"


@cache
def _comparison() -> dict[str, bytes | None]:
    """A comparison of k-means with itself whose fits are made, but not yet tabulated with all items named."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _compare(folder, NAMES[::-1])
        return snapshot_of(folder)


def _compare(folder: Path, names: list[str]) -> None:
    compare(X, 3, folder / "comparison", methods=["k-means"], runs=1, item_names=names)


def _check_comparison(folder: Path) -> str:
    place = folder / "comparison"
    rows = json.loads((place / "comparison.json").read_text())["rows"]
    lines = (place / "labels.csv").read_text().splitlines()
    if [row["method"] for row in rows] != ["k-means"] or len(lines) != len(X) + 1:
        raise LostError("not the rows of the comparison")
    np.load(place / "labels" / "k-means.npy", allow_pickle=False)
    if (place / "table.csv").read_text().count("\n") != 2:
        raise LostError("half a table")
    return "new" if lines[1].startswith(NAMES[0]) else "old"


SCENARIOS = (
    Scenario("save over a model of two files", _save_small("old"), _save_small("new"), _check_small),
    Scenario(
        "save over a fitted model",
        lambda folder: _models()[0].save(folder / "model"),
        lambda folder: _models()[1].save(folder / "model", overwrite=True),
        _check_model,
    ),
    Scenario(
        "save a new model",
        lambda folder: None,
        lambda folder: _models()[1].save(folder / "model", overwrite=True),
        _check_new_model,
    ),
    Scenario("first checkpoint", lambda folder: None, _save_states(0), _check_first_state),
    Scenario("checkpoint", _save_states(0, 1), _save_states(2), _check_states),
    Scenario("fit with checkpoints", lambda folder: None, _fit, _check_fit, again=25),
    Scenario("results of a fit", _begin_results, _write_results, _check_results),
    Scenario("fit --force", _begin_complete, _force, _check_forced),
    Scenario(
        "save a model of a table",
        lambda folder: _models()[0].save(folder / "model"),
        lambda folder: _model_of_table().save(folder / "model", overwrite=True),
        _check_table,
    ),
    Scenario("data set as a table", lambda folder: None, _write_data, _check_data),
    Scenario("features of an encoder", _keep_features(1.0), _keep_features(2.0), _check_features),
    Scenario("labels with names", _write_labels(None), _write_labels({0: "Seals"}), _check_labels),
    Scenario("report with names", _write_report(None), _write_report({0: "Seals"}), _check_report, again=25),
    Scenario("scan", _scan(2), _scan(2, 3), _check_scan, again=25),
    Scenario(
        "comparison",
        lambda folder: materialise(_comparison(), folder),
        lambda folder: _compare(folder, NAMES),
        _check_comparison,
    ),
)


def snapshot_of(folder: Path) -> dict[str, bytes | None]:
    """The content of every file below a folder."""
    return {name: None if file is None else file.content for name, file in snapshot(folder).items()}


def points(
    scenario: Scenario,
    folder: Path,
    *,
    hows: tuple[str, ...] = HOWS,
    every: int = 1,
    cuts: int = 3,
    share: float = 1.0,
) -> Iterator[Result]:
    """Every point of a scenario: failing, interrupted or killed there, and the states that a replay finds possible.

    ``every`` takes each so many-th point only, ``share`` a part of the replayed ones.
    """
    warnings.simplefilter("ignore")
    before, place = folder / "before", folder / "place"
    shutil.rmtree(before, ignore_errors=True)
    before.mkdir(parents=True)
    scenario.prepare(before)
    _reset(before, place)
    with recording(place) as ops:
        scenario.act(place)
    start = snapshot(before)
    if scenario.check(place) != "new":
        raise LostError(f"{scenario.name} does not lead to the new content")
    for how in hows:
        for n in itertools.count(1, every):
            _reset(before, place)
            reached, failure = _act(scenario, place, n, how)
            if not reached:
                break
            failure = failure or _judged(scenario, place, again=True)
            kind = how.split()[0]
            yield Result(f"{scenario.name}: {kind}", failure and f"{how} at {n}: {failure}")
    for n in range(1, len(ops) + 1, every) if scenario.again == 1 else ():
        _reset(before, place)
        _act(scenario, place, n, "kill half")
        state = snapshot_of(place)
        for m in itertools.count(1, every):
            materialise(state, place)
            reached, failure = _act(scenario, place, m, "kill after")
            if not reached:
                break
            failure = failure or _judged(scenario, place, again=m % 5 == 0)
            yield Result(f"{scenario.name}: kill twice", failure and f"kill at {n}, then at {m}: {failure}")
    for number, (name, state) in enumerate(crashes(start, ops, cuts)):
        if number % max(round(1 / share), 1):
            continue
        materialise(state, place)
        failure = _judged(scenario, place, again=number % scenario.again == 0)
        yield Result(f"{scenario.name}: replay", failure and f"{name}: {failure}")


def _reset(before: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place)


def _act(scenario: Scenario, place: Path, n: int, how: str) -> tuple[bool, str]:
    """Whether the point was reached, and what went wrong beyond it."""
    if how.startswith("kill"):
        return _act_and_die(scenario, place, n, how)
    with failing_at(place, n, how) as reached:
        try:
            scenario.act(place)
        except (OSError, KeyboardInterrupt):
            pass
        except Exception as error:
            return True, f"raises {error!r}"
    return bool(reached), ""


def _act_and_die(scenario: Scenario, place: Path, n: int, how: str) -> tuple[bool, str]:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with failing_at(place, n, how):
                scenario.act(place)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True, ""
    return status != 0, "" if status == 0 else f"ended with status {status} instead"


def _judged(scenario: Scenario, place: Path, *, again: bool) -> str:
    """What is wrong with what a crash left, and with the next attempt."""
    try:
        scenario.check(place)
    except Exception as error:
        return f"lost: {error!r}"
    if again:
        try:
            scenario.act(place)
            found = scenario.check(place)
            _no_rest(place)
        except Exception as error:
            return f"the next attempt: {error!r}"
        if found != "new":
            return "the next attempt does not lead to the new content"
    return ""


def run(folder: Path, scale: float, seed: int) -> Iterator[Result]:
    """All scenarios, with the more points the larger the scale."""
    for scenario in SCENARIOS:
        yield from points(
            scenario,
            folder / scenario.name.replace(" ", "-"),
            every=1 if scale >= 0.5 else 5,
            cuts=max(int(80 * scale), 1),
            share=min(scale, 1.0),
        )


PART = Part("crash", "points", 10_000, run)
