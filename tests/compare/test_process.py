"""Fits in processes of their own: which results count, and that none outlives its comparison."""

import dataclasses
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from ddclust.compare.job import Job, Result, write_labels
from ddclust.compare.process import Budget, is_made


def job_in(folder, **changes):
    job = Job("k-means", {}, 2, 0, {}, "nowhere.npy", str(folder))
    (folder / "job.json").write_text(json.dumps(dataclasses.asdict(job)))
    return dataclasses.replace(job, **changes)


def test_failed_and_torn_results_are_made_again(tmp_path):
    job = job_in(tmp_path)

    def is_made_by(result, budget=Budget()):  # noqa: B008 - frozen
        (tmp_path / "result.json").write_text(json.dumps(result))
        return is_made(job, budget)

    done = {"seconds": 1, "titles": []}
    assert is_made_by(done | {"peak_mb": 1})
    assert not is_made_by(done)  # killed before it was complete
    assert not is_made_by({"error": "no space left", "peak_mb": 1})
    stopped = {"error": "too long", "limit": {"seconds": 60}, "peak_mb": 1}
    assert is_made_by(stopped, Budget(seconds=60))
    assert not is_made_by(stopped, Budget(seconds=61))


def test_damaged_labels_are_made_again(tmp_path):
    job = job_in(tmp_path)
    file = job.labels_file("k-means")
    digest = write_labels(file, np.array([0, 1, 1]))
    Result(seconds=1.0, peak_mb=1.0, titles=("k-means",), digests={"k-means": digest}).write(tmp_path)
    assert is_made(job, Budget())
    write_labels(file, np.array([0, 1, 0]))
    assert not is_made(job, Budget())
    file.write_bytes(b"no array")
    assert not is_made(job, Budget())
    file.unlink()
    assert not is_made(job, Budget())


@pytest.mark.parametrize(
    "change", [{"seconds": "long"}, {"titles": 5}, {"peak_mb": [1]}, {"limit": {"seconds": "x"}}]
)
def test_results_of_other_types_are_made_again(tmp_path, change):
    job = job_in(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps({"seconds": 1, "titles": [], "peak_mb": 1} | change))
    assert not is_made(job, Budget())


@pytest.mark.parametrize("content", ["[]", '{"method": "k-means"}', "{", "[" * 100_000])
def test_damaged_jobs_are_made_again(tmp_path, content):
    job = job_in(tmp_path)
    Result(seconds=1.0, peak_mb=1.0).write(tmp_path)
    assert is_made(job, Budget())
    (tmp_path / "job.json").write_text(content)
    assert not is_made(job, Budget())


def test_results_of_other_parameters_do_not_count(tmp_path):
    job = job_in(tmp_path, data="moved.npy")
    Result(seconds=1.0, peak_mb=1.0).write(tmp_path)
    assert is_made(job, Budget())
    assert not is_made(dataclasses.replace(job, seed=1), Budget())
    assert is_made(job, Budget())  # asking has removed nothing


def test_a_tuple_among_the_parameters_is_recognised(tmp_path):
    job = dataclasses.replace(job_in(tmp_path), params={"layers": (5, 2)})
    (tmp_path / "job.json").write_text(json.dumps(dataclasses.asdict(job)))
    Result(seconds=1.0, peak_mb=1.0).write(tmp_path)
    assert is_made(job, Budget())


@pytest.mark.parametrize(
    ("result", "keys"),
    [
        (
            Result(1.0, None, ("SEC",), {"SEC": "0a"}),
            ["seconds", "objective", "titles", "digests", "warnings", "sha256"],
        ),
        (
            Result(error="too long", limit={"seconds": 60}, peak_mb=1.0),
            ["error", "limit", "peak_mb", "sha256"],
        ),
    ],
)
def test_keys_of_the_result_file(tmp_path, result, keys):
    result.write(tmp_path)
    assert list(json.loads((tmp_path / "result.json").read_text())) == keys
    assert Result.read(tmp_path) == result


def test_a_torn_result_counts_as_none(tmp_path):
    (tmp_path / "result.json").write_text('{"seconds": 1')
    assert Result.read(tmp_path) == Result()


def test_a_fit_ends_when_its_comparison_is_gone_before_it_begins(tmp_path):
    job_in(tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = [sys.executable, "-m", "ddclust.compare.worker", tmp_path / "job.json", str(gone.pid)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    assert process.wait(timeout=120) == -signal.SIGKILL
    assert not (tmp_path / "result.json").exists()
