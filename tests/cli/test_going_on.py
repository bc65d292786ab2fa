"""Commands that were killed or interrupted go on where they were, and scans through the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_blobs

from ddclust.cli.main import main


def wait_for(condition, seconds=100):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start_cli(*arguments):
    command = [Path(sys.executable).parent / "ddclust", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_command_line_goes_on_after(tmp_path, how):
    options = ["circles", "-k", 2, "--runs", 3, "--vote", 2, "--max-iter", 1500, "--jobs", 1, "--out"]
    undisturbed = start_cli("fit", *options, tmp_path / "a")
    process = start_cli("fit", *options, tmp_path / "b")
    wait_for(lambda: list((tmp_path / "b" / "checkpoints").glob("run-*")))
    os.killpg(process.pid, how)
    _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert f"'ddclust resume {tmp_path / 'b'}' goes on" in err
        assert "Traceback" not in err
        assert (tmp_path / "b" / "labels.csv").exists()
    refused = start_cli("fit", *options, tmp_path / "b")
    assert "holds an unfinished fit; 'ddclust resume" in refused.communicate()[1]
    table = start_cli("runs", tmp_path / "b").communicate()[0]
    assert "circles: interrupted" in table
    assert "interrupted" in table.splitlines()[2]
    resumed = start_cli("resume", tmp_path / "b")
    _, err = resumed.communicate(timeout=100)
    assert resumed.returncode == 0, err
    undisturbed.communicate(timeout=100)
    assert (tmp_path / "a" / "labels.csv").read_text() == (tmp_path / "b" / "labels.csv").read_text()
    assert not (tmp_path / "b" / "checkpoints").exists()
    assert "nothing to go on with" in start_cli("resume", tmp_path / "b").communicate()[0]
    assert "votes" in start_cli("runs", tmp_path / "b").communicate()[0]


@pytest.fixture
def data(tmp_path):
    X, y = make_blobs(150, centers=[[0, 0], [8, 0], [0, 8]], cluster_std=0.5, random_state=0)
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    return tmp_path


OPTIONS = ["--from", "2", "--to", "4", "--runs", "4", "--jobs", "1", "--learning-rate", "1e-3"]


@pytest.mark.slow
def test_the_command(data):
    out = data / "scan"
    result = CliRunner().invoke(
        main, ["scan", str(data / "blobs.npz"), *OPTIONS, "--max-iter", "150", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "Recommended: 3 clusters" in result.output
    assert "3 known classes, which were not used" in result.output
    assert (out / "scan.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((out / "scan.json").read_text())
    assert content["recommendation"]["n_clusters"] == 3
    assert [row["k"] for row in content["rows"]] == [2, 3, 4]
    assert not list(out.glob("*/checkpoints"))
    wrong = CliRunner().invoke(main, ["scan", str(data / "blobs.npz"), "--from", "5", "--to", "4"])
    assert wrong.exit_code == 2
    assert "--from 5 is larger than --to 4" in wrong.output


def test_the_command_with_pairs(data):
    command = ["scan", str(data / "blobs.npz"), *OPTIONS, "--max-iter", "5", "--out", str(data / "scan")]
    result = CliRunner().invoke(main, [*command, "--augment", "noise", "--neighbors", "3"])
    assert result.exit_code == 0, result.output
    used = json.loads((data / "scan" / "k-003" / "row.json").read_text())["setup"]
    assert list(used["augment"]) == ["Noise"]
    assert used["neighbors"] == 3


@pytest.mark.slow
def test_a_killed_command_goes_on_and_ends_the_same(data):
    """Killed in the middle of a fit, the same command takes up its checkpoints."""

    def start(out):
        command = [sys.executable, "-c", "from ddclust.cli.main import main; main()", "scan"]
        arguments = [data / "blobs.npz", *OPTIONS, "--max-iter", "300", "--out", out]
        return subprocess.Popen(
            [*command, *map(str, arguments)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    killed = start(data / "killed")
    try:
        deadline = time.time() + 120
        while not list((data / "killed" / "k-002").glob("checkpoints/run-*")):
            assert killed.poll() is None
            assert time.time() < deadline
            time.sleep(0.05)
    finally:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    assert not (data / "killed" / "scan.json").exists()
    assert start(data / "killed").wait() == 0
    assert start(data / "whole").wait() == 0
    rows = [json.loads((data / name / "scan.json").read_text())["rows"] for name in ("killed", "whole")]
    for one, other in zip(*rows, strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
