"""ddclust fit --force."""

import json
import os
import signal
import subprocess
import time

import pytest

from commands import PROCESS, QUICK, run

LONG = ("--runs", "1", "--jobs", "1", "--max-iter", "1000000", "--augment", "none", "-q", "--no-report")


def began(folder):
    """Wait until a fit has written a checkpoint."""
    for _ in range(600):
        if any((folder / "checkpoints").glob("run-*")):
            return
        time.sleep(0.1)
    raise AssertionError("no checkpoint")


def test_results_are_replaced_and_nothing_else(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    assert run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out).exit_code == 0
    before = (out / "model" / "model.json").read_text()
    (out / "notes.txt").write_text("mine")
    refused = run("fit", folder / "blobs.csv", "-k", 2, *QUICK, "--out", out)
    assert refused.exit_code == 2
    assert "exists already; choose another name, or replace its results by --force" in refused.output
    result = run("fit", folder / "blobs.csv", "-k", 2, *QUICK, "--out", out, "--force")
    assert result.exit_code == 0, result.output
    assert json.loads((out / "run.json").read_text())["options"]["clusters"] == 2
    assert (out / "model" / "model.json").read_text() != before
    assert len(list((out / "model").glob("tensors*"))) == 1
    assert (out / "notes.txt").read_text() == "mine"
    assert "force" not in json.loads((out / "run.json").read_text())["options"]


def test_a_folder_of_something_else_stays(vectors):
    folder, _, _ = vectors
    (folder / "mine").mkdir()
    (folder / "mine" / "labels.csv").write_text("mine")
    result = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "mine", "--force")
    assert result.exit_code == 2
    assert "holds no results of 'ddclust fit' that could be replaced" in result.output
    assert (folder / "mine" / "labels.csv").read_text() == "mine"


@pytest.mark.parametrize("kind", ["a link", "other files"])
def test_a_model_folder_with_anything_else_is_left_alone(vectors, kind):
    folder, _, _ = vectors
    out, kept = folder / "run", folder / "kept"
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out)
    if kind == "a link":
        (out / "model").rename(kept)
        (out / "model").symlink_to(kept)
    else:
        (out / "model" / "mine.txt").write_text("mine")
    before = {path: path.read_bytes() for path in (out / "model").iterdir()}
    result = run("fit", folder / "blobs.csv", "-k", 3, "--seed", 1, *QUICK, "--out", out, "--force")
    assert (result.exit_code, "so it is not replaced" in result.output) == (2, True), result.output
    assert {path: path.read_bytes() for path in (out / "model").iterdir()} == before


def test_wrong_data_loses_nothing(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out)
    labels = (out / "labels.csv").read_text()
    assert run("fit", folder / "none.csv", "-k", 3, *QUICK, "--out", out, "--force").exit_code == 2
    assert (out / "labels.csv").read_text() == labels


@pytest.mark.slow
def test_a_fit_that_works_is_not_replaced_one_that_was_killed_is(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    command = [*PROCESS, "fit", str(folder / "blobs.csv"), "-k", "3", *LONG, "--out", str(out)]
    process = subprocess.Popen(command)
    try:
        began(out)
        assert run("runs", out).output.startswith("blobs: running\n")
        result = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out, "--force")
        assert result.exit_code == 2
        assert "A fit is working in" in result.output
        assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    shown = run("runs", out).output
    assert shown.startswith("blobs: interrupted\n")
    assert "running" not in shown
    without = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out)
    assert "goes on with it, --force replaces it" in without.output
    result = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out, "--force")
    assert result.exit_code == 0, result.output
    assert not (out / "checkpoints").exists()
    assert run("runs", out).output.startswith("blobs: complete\n")


def test_after_ctrl_c_nothing_is_running(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    process = subprocess.Popen(
        [*PROCESS, "fit", str(folder / "blobs.csv"), "-k", "3", *LONG, "--out", str(out)]
    )
    try:
        began(out)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    finally:
        process.kill()
    shown = run("runs", out).output
    assert shown.startswith("blobs: interrupted\n")
    assert " interrupted " in shown
    assert "running" not in shown


def test_dry_run(vectors):
    folder, _, _ = vectors
    result = run("fit", folder / "blobs.csv", "-k", 3, "--max-iter", 50, "--out", folder / "run", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "blobs: 150 items of 2 values" in result.output
    assert "\nmax_iter        50\n" in result.output
    assert "4 runs of 50 iterations" in result.output
    assert ": about " in result.output
    assert not (folder / "run").exists()
