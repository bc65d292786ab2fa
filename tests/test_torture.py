"""The harness of tests/torture, in small: what it tries must not fail, and it must see what does."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from torture import crash, faults, fuzz, kills, places
from torture.disk import HOWS
from torture.table import Result, Table, markdown
from torture.targets import TARGETS

SCENARIOS = {scenario.name: scenario for scenario in crash.SCENARIOS}
QUICK = (
    "save over a model of two files",
    "first checkpoint",
    "checkpoint",
    "labels with names",
    "data set as a table",
    "features of an encoder",
)


def failures(results):
    """What failed; at least one thing must have been tried."""
    results = list(results)
    assert results
    return [f"{result.row}: {result.failure}" for result in results if result.failure]


class TestCrash:
    @pytest.mark.parametrize("name", QUICK)
    def test_old_or_new_content_is_there_after_any_crash(self, tmp_path, name):
        assert failures(crash.points(SCENARIOS[name], tmp_path, every=3)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["fit --force", "save a model of a table"])
    def test_the_same_of_what_takes_longer(self, tmp_path, name):
        assert failures(crash.points(SCENARIOS[name], tmp_path, every=11, share=0.1)) == []

    @pytest.mark.parametrize("how", HOWS)
    def test_a_careless_writer_is_caught(self, tmp_path, how):
        """One that writes the file in place; an interrupt before anything is written harms nothing."""
        found = [result.failure for result in crash.points(careless(), tmp_path, hows=(how,), cuts=1)]
        assert any("lost" in failure for failure in found)

    def test_a_writer_that_does_not_sync_is_caught_by_the_replay(self, tmp_path):
        found = [result.failure for result in crash.points(careless(renames=True), tmp_path, hows=(), cuts=1)]
        assert any("power fails" in failure for failure in found)
        assert not any("killed" in failure.split("lost")[0] for failure in found)


def careless(renames=False):
    def write(content):
        def act(folder):
            path = folder / ("new" if renames else "file")
            path.write_bytes(content)
            if renames:
                path.replace(folder / "file")

        return act

    def check(folder):
        return {b"old" * 9: "old", b"new" * 9: "new"}[(folder / "file").read_bytes()]

    return crash.Scenario("careless", write(b"old" * 9), write(b"new" * 9), check)


class TestKills:
    @pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
    def test_a_fit_that_is_stopped_goes_on_to_the_same_end(self, tmp_path, name):
        undisturbed = kills.Undisturbed(tmp_path / "undisturbed", False)
        kill = kills.Kill("group", name, "training", 1)
        assert failures(kills.kills(tmp_path / "chain", kill, 1, undisturbed, seed=0)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("kill", kills.TWO_JOBS[::5], ids=str)
    def test_no_process_is_left_and_the_end_is_the_same(self, tmp_path, kill):
        undisturbed = kills.Undisturbed(tmp_path / "undisturbed", False)
        assert failures(kills.kills(tmp_path / "chain", kill, 2, undisturbed, seed=1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_ctrl_c_while_workers_start_prints_no_traceback(tmp_path, seconds):
    """To the whole group, in a terminal, as the shell sends it; the workers are found by their names."""
    main, ours = os.openpty()
    command = [
        "fit",
        "circles",
        "-k",
        "2",
        "--runs",
        "4",
        "--max-iter",
        "100000",
        "--jobs",
        "2",
        "--no-report",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ddclust", *command, "--out", tmp_path / "run"],
        stdin=ours,
        stdout=ours,
        stderr=ours,
        start_new_session=True,
    )
    os.close(ours)
    while process.poll() is None and not kills.workers(process.pid):
        time.sleep(0.01)
    time.sleep(seconds)
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    printed = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # the last process that had the terminal is gone
            break
        if not part:
            break
        printed += part
    os.close(main)
    assert process.wait(timeout=60) == 130
    assert b"Traceback" not in printed, printed.decode()
    assert psutil.wait_procs(family, timeout=5)[1] == []


class TestFaults:
    def test_outputs_that_are_closed_or_full(self, tmp_path):
        assert failures(faults.outputs(tmp_path, every=40)) == []

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "run",
        [
            lambda place: faults.outputs(place, every=15),
            lambda place: faults.processes(place, every=3),
            lambda place: faults.short_files(place, [1, 4, 9, 12]),
            lambda place: faults.changing_data(place, 1),
        ],
        ids=["outputs", "processes", "limited files", "changing data"],
    )
    def test_every_fault_ends_with_a_sentence(self, tmp_path, run):
        assert failures(run(tmp_path)) == []

    @pytest.mark.slow
    def test_small_and_read_only_disks(self, tmp_path):
        if not faults.can_mount(tmp_path / "disk"):
            pytest.skip("only root can mount a small disk")
        assert failures(faults.full_disks(tmp_path / "full", [1, 3, 10, 20, 30])) == []
        assert failures(faults.read_only(tmp_path / "read-only")) == []


# These take seconds to begin.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow)
    if name in ("comparison.json", "result.json", "job.json")
    else name
    for name in TARGETS
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


class TestFuzz:
    @pytest.mark.parametrize("name", NAMES)
    def test_good_files_are_read(self, name, place):
        """A mutation of what is refused anyway would tell nothing."""
        target = TARGETS[name]
        folder = place / f"good-{name}"
        folder.mkdir()
        good = 0
        for content in target.all_seeds():
            # A table of texts needs an option that says so, and some kept files must be refused.
            with contextlib.suppress(ValueError):
                target.read(target.place(folder, content))
                good += 1
        assert good > 0

    @pytest.mark.parametrize("name", NAMES)
    def test_mutated_files_are_read_or_refused(self, name, place, monkeypatch, tmp_path):
        monkeypatch.setattr(fuzz, "FAILURES", tmp_path)
        target = TARGETS[name]
        folder = place / name
        folder.mkdir()
        assert failures(fuzz.batch(target, folder, 0, 0, max(int(10 * target.share), 2))) == []

    @pytest.mark.parametrize(
        ("read", "what"),
        [
            (lambda path: {}["key"], "traceback"),
            (lambda path: int("no"), "does not name the file"),
            (lambda path: eval("1"), "exec"),
            (lambda path: __import__("pickle").loads(b"cos\ngetpid\n(tR."), "pickle.find_class"),
            (lambda path: os.kill(os.getpid(), signal.SIGKILL), "ended with -9"),
            (lambda path: bytearray(3 * 2**30), ""),
            (lambda path: [os.urandom(1) * 2**20 for _ in range(3000)], "takes more than 2 GB"),
        ],
        ids=["KeyError", "nameless", "eval", "pickle", "crash", "one allocation that is refused", "memory"],
    )
    def test_a_bad_reader_is_caught(self, tmp_path, monkeypatch, read, what):
        monkeypatch.setattr(fuzz, "FAILURES", tmp_path / "failures")
        target = TARGETS["txt"]._replace(read=read)
        found = [result.failure for result in fuzz.batch(target, tmp_path, 0, 0, 2)]
        assert len(found) == 2
        assert all(what in failure and bool(failure) == bool(what) for failure in found), found

    def test_a_reader_that_hangs_is_stopped(self, tmp_path, monkeypatch):
        monkeypatch.setattr(fuzz, "FAILURES", tmp_path / "failures")
        monkeypatch.setattr(fuzz, "CASE_SECONDS", 0.5)
        monkeypatch.setattr(fuzz, "WARM_SECONDS", 0.5)
        target = TARGETS["txt"]._replace(
            read=lambda path: time.sleep(60) if path.stat().st_size > 1 else None
        )
        (result,) = fuzz.batch(target, tmp_path, 0, 0, 1)
        assert "takes more than" in result.failure


class TestSharing:
    def test_every_name_survives_the_table_of_labels(self):
        assert failures(places.names(200, seed=0)) == []

    def test_fits_in_threads_of_one_process_do_not_change_each_other(self):
        assert failures(places.threads(18, seed=0)) == []

    def test_flipped_bits_are_noticed(self, tmp_path):
        assert failures(places.flipped(tmp_path, 40, seed=0)) == []

    @pytest.mark.slow
    def test_nothing_is_written_through_links(self, tmp_path):
        assert failures(places.linked(tmp_path, every=3)) == []

    def test_models_saved_over_each_other(self, tmp_path):
        assert failures(places.together(tmp_path, 10)) == []

    def test_one_fit_at_a_time(self, tmp_path):
        assert failures(places.one_at_a_time(tmp_path, 1)) == []


def test_every_promise_names_tests_that_are_there():
    page = (Path(__file__).parents[1] / "docs" / "robustness.md").read_text()
    sources = "".join(file.read_text() for file in Path(__file__).parent.rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 50
    assert [name for name in sorted(named) if f"def {name}(" not in sources] == []


def test_the_table_of_counts_is_that_of_the_last_run():
    results = Path(__file__).parent / "torture" / "results.json"
    assert markdown(results) in (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


def test_counts_of_several_runs_are_added(tmp_path):
    for seed in (0, 0, 1):
        table = Table()
        table.add("fuzz", Result("csv", "broken" if seed else ""))
        table.seconds["fuzz"] = 2
        table.write(tmp_path / "a.json", add=True, scale=0.1, seed=seed)
    (part,) = json.loads((tmp_path / "a.json").read_text())["parts"].values()
    assert part["rows"] == {"csv": {"count": 3, "failures": 1, "examples": ["broken"]}}
    assert (part["seconds"], part["seed"]) == (6, "0, 1")
