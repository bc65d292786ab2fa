"""ddclust report."""

import json

import numpy as np
import pytest

from commands import WITH_REPORT, run


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

    np.save(folder / "other.npy", X + 1)
    wrong = run("report", out, folder / "other.npy")
    assert wrong.exit_code == 2
    assert "its content differs" in wrong.output


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
