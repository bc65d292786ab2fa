"""Faults that lost results, hung, or changed them: each happens here for real. Those of which there are many are in torture/."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from commands import PROCESS
from ddclust.compare.process import _ending
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.items import BlockItems, ShrunkenFileError, fingerprint
from ddclust.data.readers.images import _storage as image_storage
from ddclust.data.views import ViewItems
from ddclust.networks import MLP
from ddclust.results import ResultFolderError, under_way
from ddclust.storage.atomic import locked, temporary_name, write_file
from ddclust.storage.workspace import Kind, Workspace, WorkspaceError
from ddclust.training.engine import WorkersDiedError
from helpers import quick
from torture.kills import workers


def test_a_failing_fit_removes_the_empty_folders_that_it_made(tmp_path):
    with pytest.raises(ValueError, match="broken"), under_way(tmp_path / "x" / "y" / "z", {}):
        raise ValueError("broken")
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("content")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="lock"):
        locked(tmp_path / "lock")
    assert (tmp_path / "precious").read_text() == "content"


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


class Gone:
    """A stream whose reader has quit."""

    encoding = "utf-8"

    def write(self, text):
        raise BrokenPipeError

    flush = isatty = lambda self: self.write("")


@pytest.mark.parametrize("stream", [Gone(), None], ids=["gone", "closed"])
def test_a_verbose_fit_in_python_needs_no_standard_error(blobs, monkeypatch, stream):
    expected = quick(n_init=2, max_iter=20).fit(blobs[0]).labels_
    monkeypatch.setattr(sys, "stderr", stream)
    for verbose in (True, "auto"):
        found = quick(n_init=2, max_iter=20, verbose=verbose).fit(blobs[0]).labels_
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "in_a_read"), [("1", False), ("2", False), ("2", True)])
def test_a_data_file_that_shrinks_during_a_fit_is_named_and_nothing_is_lost(tmp_path, jobs, in_a_read):
    X, _ = make_blobs(400, centers=3, n_features=50, random_state=0)
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    options = ("-k", "3", "--runs", "2", "--max-iter", "500", "--jobs", jobs, "--out", "run", "--no-report")
    process = subprocess.Popen(
        [*PROCESS, "fit", "x.npy", *options, "-q"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not list((tmp_path / "run" / "checkpoints").glob("run-*")):
        time.sleep(0.05)
    os.truncate(tmp_path / "x.npy", 1000)
    if in_a_read:  # between the check and the read, the system sends this
        for worker in workers(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGBUS)
    said = process.communicate(timeout=240)[1].splitlines()
    # Where a worker has died, loky's tracker of semaphores may add its own warnings, of two lines each.
    tracked = [
        line for line in said if "resource_tracker" in line or line.strip().startswith("warnings.warn(")
    ]
    assert [line for line in said if line not in tracked] == [
        f"Error: {str(tmp_path / 'x.npy')!r} shrank from 160,128 to 1,000 bytes while it was in use; restore it and start again."
    ]
    assert process.returncode == 2
    (tmp_path / "x.npy").write_bytes(whole)
    assert subprocess.run([*PROCESS, "resume", "run", "-q"], cwd=tmp_path, timeout=240).returncode == 0
    assert (tmp_path / "run" / "labels.csv").exists()


def test_items_of_every_kind_notice_that_their_file_shrank(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4000.0).reshape(1000, 4))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    source = BatchSource(X[10:], Scaling.of(X[10:]))
    views, stored = ViewItems([X, X[:, :2]]), BlockItems(X)
    os.truncate(tmp_path / "x.npy", 5000)
    for read in (
        lambda: source.batch(np.array([0, 980])),
        lambda: views[np.array([0, 980])],
        lambda: stored[np.array([0, 980])],
        lambda: fingerprint(X),
        lambda: quick(2).fit(X),
    ):
        with pytest.raises(ShrunkenFileError, match=r"x.npy' shrank from 32,128 to 5,000 bytes"):
            read()


class BusError:
    """A network factory that ends its worker process as a failing disk under a memory map does."""

    def __init__(self):
        self.home = os.getpid()

    def __call__(self, input_shape, n_clusters):
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGBUS)
        return MLP(input_shape, n_clusters)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker process died")
def test_workers_that_cannot_read_a_memory_map_are_not_said_to_lack_memory():
    X, _ = make_blobs(60, random_state=0)
    with pytest.raises(WorkersDiedError, match="the file of a memory map cannot be read"):
        quick(n_init=2, network=BusError(), n_jobs=2, max_iter=5).fit(X)


def test_a_fit_of_a_comparison_that_ends_by_a_bus_error_is_not_said_to_lack_memory():
    assert "could not read its data file" in _ending(-signal.SIGBUS)
    assert "lack of memory" in _ending(-signal.SIGKILL)


@pytest.mark.skipif(not os.path.exists("/dev/shm"), reason="needs a file system in memory")
def test_images_that_do_not_fit_on_the_disk_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    too_many = 2 * shutil.disk_usage("/dev/shm").total
    with pytest.raises(OSError, match="No space left"):
        image_storage((too_many,))
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("ddclust-images-")]


def test_a_crash_of_the_command_line_says_where_it_was():
    code = (
        "import os, signal, sys\n"
        "from ddclust.cli import main as cli\n"
        "cli.datasets.callback = lambda **_: os.kill(os.getpid(), signal.SIGBUS)\n"
        "cli.main(['datasets'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGBUS
    assert done.stderr.startswith("Fatal Python error: Bus error")


def test_a_fit_does_not_go_on_in_a_folder_with_links(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(ResultFolderError, match="'.*/run/model' is a symbolic link"),
        under_way(tmp_path / "run", {}),
    ):
        pass


def test_a_workspace_holds_no_links(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "data").symlink_to(tmp_path)
    kind = Kind("format", "work.json", "work", "Other work", {})
    with pytest.raises(WorkspaceError, match="'.*/work/data' is a symbolic link"):
        Workspace(tmp_path / "work", kind).claim({})


def test_the_rest_of_a_killed_writer_is_removed_and_that_of_a_living_one_stays(tmp_path):
    path = tmp_path / "file"
    dead, living = temporary_name(path), temporary_name(path)
    dead.write_text("half")
    living.write_text("half")
    holding = locked(living)
    write_file(path, b"whole")
    holding.close()
    assert sorted(os.listdir(tmp_path)) == sorted(["file", living.name])


@pytest.mark.parametrize("redirected", ["> /dev/full", "2> /dev/full", ">&- 2>&-"])
def test_help_and_errors_that_cannot_be_printed(tmp_path, redirected):
    for arguments, code in (
        ("--help", 2 if redirected == "> /dev/full" else 0),
        (f"runs {tmp_path}/nothing", 2),
    ):
        line = f"{sys.executable} -m ddclust {arguments} {redirected}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
