"""ddclust report."""

import csv
import json

import numpy as np
import pytest

from commands import QUICK, WITH_REPORT, as_predicted, run


@pytest.mark.slow
def test_report_is_made_anew_with_names(vectors, monkeypatch):
    folder, X, _ = vectors
    out = folder / "run"
    fitted = run("fit", folder / "blobs.npz", "-k", 3, *WITH_REPORT, "--out", out)
    assert f"Report:  {out / 'report.html'}" in fitted.output
    first = (out / "report.html").read_text()
    assert "ACC against known classes" in first
    names = folder / "names.json"
    names.write_text(json.dumps({"format": "ddclust-names", "names": {"0": "apples & <pears>"}}))
    again = run("report", out, "--names", names)
    assert again.exit_code == 0, again.output
    assert '"0": "apples \\u0026 \\u003cpears\\u003e"' in (out / "report.html").read_text()
    assert run("report", out).exit_code == 0
    assert (out / "report.html").read_text() == first

    predicted = run("predict", out, folder / "blobs.npz", "--names", names)
    header, *lines = predicted.output.splitlines()
    assert header == "item,cluster,confidence,agreement,name"
    assert {line.split(",")[-1] for line in lines if line.split(",")[1] == "0"} <= {"apples & <pears>"}
    proposed = json.loads((out / "names.json").read_text())["names"]  # for the clusters without a name
    assert {line.split(",")[-1] for line in lines if line.split(",")[1] == "1"} <= {proposed["1"]}

    np.save(folder / "other.npy", X + 1)
    wrong = run("report", out, folder / "other.npy")
    assert wrong.exit_code == 2
    assert "or has changed since; give the same data" in wrong.output


def test_a_report_that_fails_loses_nothing(vectors, monkeypatch):
    folder, _, _ = vectors
    from ddclust.show.report import page

    def fail(*arguments):
        raise ValueError("no paper left")

    monkeypatch.setattr(page, "_content_of", fail)
    result = run("fit", folder / "blobs.csv", "-k", 3, *WITH_REPORT, "--out", folder / "run")
    assert result.exit_code == 0
    assert "Warning: the report could not be made: no paper left" in result.output
    assert (folder / "run" / "labels.csv").exists()
    assert not (folder / "run" / "report.html").exists()


def test_clusters_have_names_from_the_fit_on(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    assert run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", out).exit_code == 0
    names = json.loads((out / "names.json").read_text())["names"]
    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    assert all(row["name"] == names[row["cluster"]] for row in rows)
    assert all(name.endswith(("mass", "age")) for name in names.values())
    assert run("predict", out, folder / "blobs.csv").output == as_predicted(out / "labels.csv")
    (out / "model").rename(folder / "moved")
    without = run("predict", folder / "moved", folder / "blobs.csv").output
    assert without.splitlines()[0] == "item,cluster,confidence,agreement"
    (folder / "moved").rename(out / "model")
    (out / "names.json").write_text('{"format": "ddclust-names", "names": {"7": "too many"}}')
    wrong = run("predict", out, folder / "blobs.csv")
    assert wrong.exit_code == 2
    assert "names.json' names cluster 7, but the model has the clusters 0 to 2." in wrong.output


def test_warnings_and_skipped_files_stay_with_the_run(photos):
    out = photos.parent / "run"
    options = ("--runs", 1, "--max-iter", 1, "--jobs", 1)
    fitted = run("fit", photos, "-k", 5, *options, "--out", out)
    assert fitted.exit_code == 0, fitted.output
    (warning,) = json.loads((out / "run.json").read_text())["warnings"]
    assert f"Warning: {warning}" in fitted.output
    assert "of the 5 clusters" in warning
    for page in (fitted, run("report", out)):
        assert page.exit_code == 0
        top = (out / "report.html").read_text().partition("<nav>")[0]
        assert warning in top
        assert "1 file could not be read and is left out" in top
        assert "dark/&lt;b&gt;.png" in top
