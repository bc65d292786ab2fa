"""ddclust update."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from commands import run
from ddclust import DDC


@pytest.fixture
def fits(tmp_path):
    """Items of three kinds and a fit of them; further items of these, and of a fourth kind, too."""
    X, y = make_blobs(800, centers=[[0, 0], [9, 0], [0, 9], [9, 9]], random_state=0)
    np.save(tmp_path / "old.npy", X[y < 3][:400])
    np.save(tmp_path / "more.npy", X[y < 3][400:])
    np.save(tmp_path / "new.npy", X[y > 1])
    options = ("--runs", 1, "--max-iter", 200, "--no-report", "--quiet", "--jobs", 1)
    assert run("fit", tmp_path / "old.npy", "-k", 3, *options, "--out", tmp_path / "run").exit_code == 0
    return tmp_path


def content(folder):
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_update_leaves_a_result_folder_and_the_old_one_as_it_is(fits):
    before = content(fits / "run")
    out = fits / "updated"
    result = run("update", fits / "run", fits / "new.npy", "--new-clusters", "auto", "--out", out)
    assert result.exit_code == 0, result.output
    assert "New clusters: 3" in result.output
    assert content(fits / "run") == before
    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    assert len(rows) == 400
    assert 180 <= sum(row["cluster"] == "3" for row in rows) <= 205
    assert json.loads((out / "run.json").read_text())["status"] == "complete"
    assert (out / "report.html").exists()
    assert DDC.load(out).n_clusters_ == 4
    old, new = (json.loads((fits / name / "names.json").read_text())["names"] for name in ("run", "updated"))
    assert old.items() <= new.items()
    assert run("report", out).exit_code == 0
    assert run("runs", out).exit_code == 0
    again = run("update", out, fits / "more.npy", "--out", fits / "third")
    assert (again.exit_code, "no new kinds" in again.output) == (0, True), again.output


def test_update_offers_and_replaces_only_if_asked(fits):
    result = run("update", fits / "run", fits / "new.npy", "--out", fits / "run")
    assert (result.exit_code, "--force" in result.output) == (2, True)
    result = run("update", fits / "run", fits / "new.npy", "--in-place", "--no-report")
    assert (result.exit_code, "--new-clusters 'auto'" in result.output) == (0, True), result.output
    assert DDC.load(fits / "run").n_clusters_ == 3
    assert len((fits / "run" / "labels.csv").read_text().splitlines()) == 401


def test_update_errors_leave_nothing(fits):
    before = content(fits / "run")
    for options, sentence in [
        (("--new-clusters", "some"), "neither 'auto' nor a number"),
        (("--new-clusters", 999, "--in-place"), "too few for --new-clusters 999"),
        (("--in-place", "--out", fits / "x"), "leave out --out"),
    ]:
        result = run("update", fits / "run", fits / "new.npy", *options)
        assert (result.exit_code, sentence in result.output) == (2, True), result.output
    assert content(fits / "run") == before
    assert not list(fits.glob("new-update*"))
