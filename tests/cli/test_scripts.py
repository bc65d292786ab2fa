"""What scripts and shells use: JSON, completion and exit codes."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from commands import run


def printed_json(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_tables_as_json(vectors):
    folder, _, _ = vectors
    out, quick = folder / "run", ("--runs", 2, "--max-iter", 20, "--jobs", 1)
    run("fit", folder / "blobs.npz", "-k", 3, *quick, "--no-report", "--out", out)
    shown = printed_json("runs", out, "--json")
    assert (shown["data"], shown["status"]) == ("blobs", "complete")
    assert [record["run"] for record in shown["runs"]] == [0, 1]
    assert isinstance(shown["runs"][0]["loss"], float)
    scores = printed_json("evaluate", out, folder / "blobs.npz", "--kmeans", "--json")
    assert set(scores) == {"clusters", "k-means"}
    assert 0 <= scores["clusters"]["ACC"] <= 1
    assert scores["k-means"]["ECE"] is None
    scanned = printed_json(
        "scan", folder / "blobs.npz", "--to", 3, *quick, "--out", folder / "scan", "--json"
    )
    assert [row["k"] for row in scanned["rows"]] == [2, 3]
    assert {"n_clusters", "confidence", "reason"} <= scanned["recommendation"].keys()


@pytest.mark.slow
def test_comparison_as_json(vectors):
    folder, _, _ = vectors
    given = ("--methods", "k-means", "--runs", 3, "--out", folder / "compared", "--quiet", "--json")
    (row,) = printed_json("compare", folder / "blobs.npz", "-k", 3, *given)
    assert row["method"] == "k-means"


def test_data_sets_as_json():
    listed = {entry["name"]: entry for entry in printed_json("datasets", "--json")}
    assert {"digits", "tiles", "mnist"} <= listed.keys()
    assert [entry["name"] for entry in printed_json("datasets", "wine", "--json")] == ["wine"]


def completed(shell, words, number):
    """What a shell is told when the word of this number is being typed."""
    environment = os.environ | {
        "_DDCLUST_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": words.split()[-1] if shell == "fish" else str(number),
    }
    code = "from ddclust.cli.main import main; main(prog_name='ddclust')"
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    ).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed(shell):
    assert "predict" in completed(shell, "ddclust pre", 1)
    assert "--max-iter" in completed(shell, "ddclust fit --max-", 2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_completion_is_one_that_the_shell_takes(shell, tmp_path):
    environment = os.environ | {"_DDCLUST_COMPLETE": f"{shell}_source"}
    code = "from ddclust.cli.main import main; main(prog_name='ddclust')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "_DDCLUST_COMPLETE" in done.stdout
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)
