"""Faults that lost results, hung, or changed them: each happens here for real."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from sklearn.datasets import make_blobs

from ddclust.choosing.consensus import Vote
from ddclust.datasets import read_labels
from ddclust.results import ResultFolderError, labels_table, under_way
from ddclust.storage.atomic import locked
from helpers import quick

FIT = """
import warnings; warnings.simplefilter("ignore")
from sklearn.datasets import make_blobs
from ddclust import DDC
X, _ = make_blobs(400, centers=3, random_state=0)
print("ready", flush=True)
DDC(3, n_init=4, n_jobs=2, max_iter=10**6, early_stopping=None, random_state=0, verbose=True).fit(X)
"""


def test_a_failing_fit_leaves_the_results_of_others(tmp_path):
    with pytest.raises(ValueError, match="broken"), under_way(tmp_path / "exp" / "a", {"status": "running"}):
        (tmp_path / "exp" / "b").mkdir()
        (tmp_path / "exp" / "b" / "labels.csv").write_text("precious")
        raise ValueError("broken")
    assert not (tmp_path / "exp" / "a").exists()
    assert (tmp_path / "exp" / "b" / "labels.csv").read_text() == "precious"


def test_a_failing_fit_removes_the_empty_folders_that_it_made(tmp_path):
    with pytest.raises(ValueError, match="broken"), under_way(tmp_path / "x" / "y" / "z", {}):
        raise ValueError("broken")
    assert os.listdir(tmp_path) == []


def test_the_second_fit_in_a_folder_changes_nothing_there(tmp_path):
    with under_way(tmp_path / "run", {"status": "first"}):
        before = (tmp_path / "run" / "run.json").read_text()
        with (
            pytest.raises(ResultFolderError, match="Another fit is working"),
            under_way(tmp_path / "run", {"status": "second"}),
        ):
            pass
        assert (tmp_path / "run" / "run.json").read_text() == before


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("content")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="lock"):
        locked(tmp_path / "lock")
    assert (tmp_path / "precious").read_text() == "content"


def test_every_name_survives_the_table_of_labels(tmp_path):
    names = [
        "a\rb",
        "a\nb",
        "a\r\nb",
        'a"b',
        "a,b",
        "a\x1b[31mb",
        "\u202eabc",
        "\N{SEAL}",
        " a ",
        "-1",
        "=1+1",
    ]
    labels = np.arange(len(names))
    ones = np.ones(len(names))
    (tmp_path / "labels.csv").write_bytes(labels_table(names, Vote(labels, ones), ones[:, None]).encode())
    found = read_labels(tmp_path / "labels.csv")
    assert found.item_names == names
    assert found.labels.astype(int).tolist() == labels.tolist()


def test_fits_in_threads_of_one_process_do_not_change_each_other():
    X, _ = make_blobs(120, centers=3, random_state=0)

    def fit(number):
        model = quick(n_init=1 + number % 2, max_iter=10, random_state=number % 3).fit(X)
        return model.probabilities_.tobytes()

    expected = [fit(number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(fit, [number % 6 for number in range(48)]))
    assert [one == expected[number % 6] for number, one in enumerate(found)] == [True] * 48


@pytest.mark.slow
def test_a_standard_error_that_goes_away_stops_nothing(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ddclust",
        "fit",
        "circles",
        "-k",
        "2",
        "--runs",
        "2",
        "--max-iter",
        "300",
    ]
    process = subprocess.Popen(
        [*command, "--out", tmp_path / "run", "--no-report"], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stderr.read(100)
    process.stderr.close()
    assert process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert (tmp_path / "run" / "labels.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.5, 3.0])
def test_workers_end_if_their_parent_is_killed_while_they_start(seconds):
    process = subprocess.Popen([sys.executable, "-c", FIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
