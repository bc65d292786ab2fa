"""ddclust resume: fits that were stopped, also by earlier versions. tests/training kills real ones."""

import json

import numpy as np
import pytest

from commands import QUICK, run
from ddclust import DDC
from helpers import edit_json


def fitted(folder, blobs):
    np.savetxt(folder / "blobs.csv", blobs[0], delimiter=",")
    result = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run"


def unfinished(folder, *, without=(), **options):
    """Rewrite run.json as if another version had begun the fit and had been stopped."""
    file = folder / "run.json"
    record = json.loads(file.read_text())
    kept = {k: v for k, v in (record["options"] | options).items() if k not in without}
    edit_json(file, status="running", versions={"ddclust": "0.0.1"}, options=kept)
    return (folder / "labels.csv").read_text()


def test_options_that_an_earlier_version_did_not_have_get_their_defaults(tmp_path, blobs):
    out = fitted(tmp_path, blobs)
    labels = unfinished(out, without=("eliminate", "sizes", "must_link", "blocks", "criterion", "network"))
    (out / "labels.csv").unlink()
    resumed = run("resume", out)
    assert resumed.exit_code == 0, resumed.output
    assert (out / "labels.csv").read_text() == labels
    assert json.loads((out / "run.json").read_text())["status"] == "complete"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"temperature": 3}, ", which had an option 'temperature' that this version lacks; finish it with that version"),
        ({"criterion": "luck"}, " with --criterion luck: 'luck' is not one of 'loss', 'divergence', 'pairs', 'agreement'"),
        ({"must_link": "/nowhere/same.csv"}, " with --must-link /nowhere/same.csv: File '/nowhere/same.csv' does not"),
        ({"without": ["clusters"]}, ", but run.json does not give --clusters; start it anew"),
    ],
)  # fmt: skip
def test_fit_of_another_version_is_not_resumed(tmp_path, blobs, changes, sentence):
    out = fitted(tmp_path, blobs)
    unfinished(out, **changes)
    result = run("resume", out)
    assert result.exit_code == 2
    assert f"was begun by ddclust 0.0.1{sentence}" in result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    "content",
    ['{"status": "running", "options": {"clusters": 3}, "data": {}}', "[]", '{"status": 1, "data": 2}'],
)
def test_a_file_that_describes_no_fit(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    result = run("resume", tmp_path)
    assert result.exit_code == 2
    assert "run.json' does not hold what it should (" in result.output


def test_resume_from_another_folder(tmp_path, monkeypatch, blobs):
    np.savetxt(tmp_path / "blobs.csv", blobs[0], delimiter=",")
    monkeypatch.chdir(tmp_path)
    run("fit", "blobs.csv", "-k", 3, *QUICK, "--out", "run")
    edit_json(tmp_path / "run" / "run.json", status="running")
    monkeypatch.chdir("/")
    resumed = run("resume", tmp_path / "run")
    assert resumed.exit_code == 0, resumed.output
    assert "Results" in resumed.output


def test_other_data_is_refused(tmp_path, blobs):
    out = fitted(tmp_path, blobs)
    unfinished(out)
    np.savetxt(tmp_path / "blobs.csv", blobs[0] + 1, delimiter=",")
    result = run("resume", out)
    assert result.exit_code == 2
    assert "is not the data of the fit in" in result.output


def test_a_fit_is_not_begun_in_the_folder_of_an_unfinished_one(tmp_path, blobs):
    out = fitted(tmp_path, blobs)
    unfinished(out)
    result = run("fit", tmp_path / "blobs.csv", "-k", 3, *QUICK, "--out", out)
    assert result.exit_code == 2
    assert f"'ddclust resume {out}' goes on with it" in result.output


def test_an_interrupt_is_no_error(tmp_path, blobs, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    np.savetxt(tmp_path / "blobs.csv", blobs[0], delimiter=",")
    monkeypatch.setattr(DDC, "fit", interrupt)
    result = run("fit", tmp_path / "blobs.csv", "-k", 3, *QUICK, "--out", tmp_path / "run")
    assert result.exit_code == 130
    assert result.output.endswith("\nInterrupted.\n")
    assert not (tmp_path / "run").exists()


def test_a_complete_fit_is_left_alone(tmp_path, blobs):
    out = fitted(tmp_path, blobs)
    before = (out / "run.json").read_text()
    result = run("resume", out)
    assert result.exit_code == 0
    assert "is complete; there is nothing to go on with" in result.output
    assert (out / "run.json").read_text() == before
