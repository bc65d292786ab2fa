"""Comparisons: really run as processes, stopped, resumed, failed, and chosen with and without labels."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs

from ddclust.compare.comparison import ComparisonError, compare
from ddclust.compare.process import Budget
from ddclust.compare.table import COMPARISON_FILE, LABELS_FILE, TABLE_FILE


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """All methods but the slow ones on three blobs, and what they left behind."""
    from sklearn.datasets import make_blobs

    X, y = make_blobs(120, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.5, random_state=0)
    folder = tmp_path_factory.mktemp("comparison") / "blobs"
    methods = ("k-means", "itc-parzen", "itc-knn", "sec", "ldmgi", "ddc")
    arguments = {"methods": methods, "runs": 3, "max_choices": 1, "max_iter": 60}
    return X, y, folder, arguments, compare(X, 3, folder, truth=y, **arguments)


def test_all_methods_find_blobs(compared):
    rows = compared[-1]
    assert [entry["method"] for entry in rows] == [
        "k-means",
        "ITC (parzen)",
        "ITC (knn)",
        "SEC",
        "LDMGI",
        "DDC",
        "DDC-VOTE",
    ]
    for entry in rows:
        assert entry["failures"] == []
        assert entry["fits"] == (3 if entry["method"] == "k-means" else 1)
        assert entry["seconds"] > 0
        assert entry["peak_mb"] > 50
        if not entry["method"].startswith("DDC"):  # so few steps prove nothing of it
            assert entry["label_free"]["ACC"] > 0.99, entry


def test_tables_are_written(compared):
    _, y, folder, _, rows = compared
    assert json.loads((folder / COMPARISON_FILE).read_text())["rows"] == rows
    with (folder / TABLE_FILE).open() as file:
        table = list(csv.DictReader(file))
    assert [line["method"] for line in table] == [entry["method"] for entry in rows]
    with (folder / LABELS_FILE).open() as file:
        labels = list(csv.DictReader(file))
    assert len(labels) == len(y)
    assert {line["SEC"] for line in labels} == {"0", "1", "2"}


def times(folder):
    return {file: file.stat().st_mtime_ns for file in folder.glob("fits/*/result.json")}


def test_what_is_done_is_not_done_again(compared):
    X, y, folder, arguments, rows = compared
    before = times(folder)
    assert compare(X, 3, folder, truth=y, **arguments) == rows
    assert times(folder) == before


def test_options_of_one_method_do_not_concern_another(compared):
    X, y, folder, _, _ = compared
    before = times(folder)
    compare(X, 3, folder, truth=y, methods=["k-means", "sec"], runs=2, max_choices=1, max_iter=61)
    assert times(folder) == before


@pytest.mark.slow
def test_fits_and_choice_are_the_same_without_the_truth(compared, tmp_path):
    X, _, folder, _, _ = compared
    rows = compare(X, 3, tmp_path / "blind", methods=["k-means"], runs=3)
    assert "best" not in rows[0]
    for file in (tmp_path / "blind" / "fits").rglob("*.npy"):
        with_truth = folder / file.relative_to(tmp_path / "blind")
        np.testing.assert_array_equal(np.load(file), np.load(with_truth))
    chosen = "labels/k-means.npy"
    np.testing.assert_array_equal(np.load(tmp_path / "blind" / chosen), np.load(folder / chosen))


def test_rows_of_earlier_methods_stay(compared):
    X, y, folder, _, rows = compared
    compare(X, 3, folder, truth=y, methods=["ldmgi"], max_choices=1)
    assert {row["method"] for row in json.loads((folder / COMPARISON_FILE).read_text())["rows"]} == {
        row["method"] for row in rows
    }
    header = (folder / LABELS_FILE).read_text().partition("\n")[0]
    assert {row["method"] for row in rows} == set(header.split(",")[1:])


def test_unknown_classes_do_not_count(compared):
    X, y, folder, arguments, rows = compared
    truth = [None if i < 5 else f"class {c}" for i, c in enumerate(y)]
    again = compare(X, 3, folder, truth=truth, **arguments)
    assert again[0]["label_free"]["ACC"] == rows[0]["label_free"]["ACC"] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"truth": [1, 2]}, "truth has 2 entries, but there are 120 items"),
        ({"item_names": ["a"]}, "item_names has 1 entries"),
        ({"truth": [None] * 120}, "truth has no known class"),
    ],
)
def test_truth_and_names_are_checked_before_anything_is_fitted(compared, tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        compare(compared[0], 3, tmp_path / "new", **given)
    assert not (tmp_path / "new").exists()


def test_two_comparisons_in_one_folder_do_not_disturb_each_other(compared):
    X, _, folder, arguments, _ = compared
    with (folder / "lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ComparisonError, match="Another comparison"):
            compare(X, 3, folder, **arguments)


def test_other_data_are_refused(compared):
    X, _, folder, arguments, _ = compared
    with pytest.raises(ComparisonError, match="the data differ"):
        compare(X + 1, 3, folder, **arguments)
    with pytest.raises(ComparisonError, match="n_clusters is"):
        compare(X, 4, folder, **arguments)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(ComparisonError, match="other files"):
        compare(np.eye(4), 2, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["diary.txt"]


@pytest.mark.slow
def test_parameters_of_a_method_are_handed_to_each_of_its_choices(tmp_path):
    X, y = make_blobs(60, centers=2, random_state=0)
    given = {"dec": {"layers": [5, 2], "layer_iter": 3, "finetune_iter": 4, "max_iter": 5}}
    compare(X, 2, tmp_path / "c", truth=y, methods=["dec", "k-means"], runs=1, params=given)
    jobs = {p.parent.name: json.loads(p.read_text()) for p in (tmp_path / "c").glob("fits/*/job.json")}
    assert jobs["dec-0-0"]["params"] == given["dec"]
    assert jobs["k-means-0-0"]["params"] == {}


def test_unknown_method(tmp_path):
    with pytest.raises(ValueError, match="no method 'dbscan'; choose from k-means"):
        compare(np.eye(4), 2, tmp_path / "new", methods=["dbscan"])
    assert not (tmp_path / "new").exists()


def test_a_fit_beyond_its_time_is_a_row_that_says_so_and_a_larger_budget_makes_it_again(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    arguments = {"methods": ["k-means"], "runs": 1}
    (entry,) = compare(X, 2, tmp_path / "new", budget=Budget(seconds=0.2), **arguments)
    assert entry["fits"] == 0
    assert "minutes" in entry["failures"][0]["error"]
    (entry,) = compare(X, 2, tmp_path / "new", budget=Budget(seconds=0.1), **arguments)
    assert entry["fits"] == 0
    (entry,) = compare(X, 2, tmp_path / "new", **arguments)
    assert entry["fits"] == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_a_fit_beyond_its_memory_is_a_row_that_says_so(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    (entry,) = compare(X, 2, tmp_path / "new", methods=["k-means"], runs=1, budget=Budget(bytes=20 * 2**20))
    assert "GB of memory" in entry["failures"][0]["error"]


def test_a_fit_that_fails_is_a_row_that_says_so(tmp_path):
    X = np.random.default_rng(0).normal(size=(4, 3))
    (entry,) = compare(X, 5, tmp_path / "new", methods=["sec"], max_choices=1)
    assert entry["fits"] == 0
    assert "n_clusters=5" in entry["failures"][0]["error"]


@pytest.mark.slow
def test_sparse_data_with_long_indices(tmp_path):
    X = scipy.sparse.random_array((60, 20), density=0.3, format="csr", random_state=0)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    rows = compare(
        X, 2, tmp_path / "c", methods=["k-means", "sec", "ldmgi", "itc-knn"], runs=1, max_choices=1
    )
    assert [row["failures"] for row in rows] == [[], [], [], []]


def test_sparse_data(tmp_path):
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(rng.random((60, 20)) * (rng.random((60, 20)) < 0.2))
    (entry,) = compare(X, 2, tmp_path / "new", methods=["sec"], max_choices=1)
    assert entry["fits"] == 1, entry


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_started_again_it_ends_the_same(tmp_path):
    command = [Path(sys.executable).parent / "ddclust", "compare", "circles", "-k", "2", "--out"]
    options = ["--methods", "ddc", "--runs", "1", "--max-iter", "400", "-q"]
    undisturbed = tmp_path / "undisturbed"
    subprocess.run([*command, undisturbed, *options], check=True, capture_output=True)
    folder = tmp_path / "killed"
    process = subprocess.Popen([*command, folder, *options], stdout=subprocess.DEVNULL)
    while process.poll() is None and not any(folder.glob("fits/ddc-0-0/checkpoints/run-*")):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = subprocess.run([*command, folder, *options], check=True, capture_output=True, text=True)
    assert "DDC" in done.stdout
    assert (folder / "labels.csv").read_bytes() == (undisturbed / "labels.csv").read_bytes()
