"""--encoder on the command line: fit, predict, explain, scan and report."""

import csv
import json

import pytest

from commands import QUICK, WITH_REPORT, run
from ddclust.encoders.named import is_installed

needs_static = pytest.mark.skipif(not is_installed("static"), reason="static is not installed")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr("ddclust.encoders.cache.cache_folder", lambda: tmp_path / "cache")
    path = tmp_path / "texts.txt"
    lines = [
        "The bank raised its rates",
        "A striker scored two goals",
        "Loans get expensive",
        "The match was a draw",
    ]
    path.write_text("\n".join(f"{line} on day {day}" for day in range(10) for line in lines))
    return path


def options_of(folder):
    return json.loads((folder / "run.json").read_text())["options"]


def test_an_unknown_encoder_is_one_sentence(file, tmp_path):
    result = run("fit", file, "-k", 2, *QUICK, "--encoder", "nothing", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "nothing is downloaded." in result.stderr
    assert not (tmp_path / "out").exists()


def test_none_learns_from_words(file, tmp_path):
    result = run("fit", file, "-k", 2, *QUICK, "--encoder", "none", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert options_of(tmp_path / "out")["encoder"] == "none"
    assert "encoder" not in json.loads((tmp_path / "out" / "model" / "model.json").read_text())


def test_empty_texts_are_named(file, tmp_path):
    table = tmp_path / "texts.csv"
    lines = file.read_text().splitlines()
    table.write_text("id,text\n" + "".join(f"no{n},{line}\n" for n, line in enumerate(lines)) + "blank,\n")
    given = ("--text", "text", "--encoder", "none")
    fitted = run("fit", table, "-k", 2, *QUICK, *given, "--out", tmp_path / "out")
    assert "1 of 41 texts hold none of the" in fitted.stderr
    assert "counted: 'blank'." in fitted.stderr
    assert "The texts seem to be in English" in fitted.stderr
    predicted = run("predict", tmp_path / "out", table, "--text", "text", "--reject", 0)
    assert (
        next(line for line in predicted.stdout.splitlines() if line.startswith("blank")).split(",")[1] == "-1"
    )


@needs_static
def test_a_fit_on_features(file, tmp_path):
    out = tmp_path / "out"
    result = run("fit", file, "-k", 2, *WITH_REPORT, "--encoder", "static", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "and no words." in (out / "report.html").read_text()
    model = json.loads((out / "model" / "model.json").read_text())
    assert model["encoder"]["name"] == "static"
    assert len(model["encoder"]["digest"]) == 64
    predicted = run("predict", out, file)
    assert predicted.exit_code == 0, predicted.stderr
    fitted = list(csv.reader((out / "labels.csv").read_text().splitlines()))
    assert [row[1] for row in csv.reader(predicted.stdout.splitlines())] == [row[1] for row in fitted]
    assert run("predict", out, "The bank cuts rates").exit_code == 0
    assert run("report", out).exit_code == 0
    explained = run("explain", out, "--out", tmp_path / "why")
    assert explained.exit_code == 2
    assert "sees the features of the encoder 'static'" in explained.stderr


@needs_static
def test_a_plan_and_a_scan_on_features(file, tmp_path):
    planned = run("fit", file, "-k", 2, "--encoder", "static", "--dry-run")
    assert planned.exit_code == 0, planned.stderr
    assert "encoder         static (" in planned.stdout
    scanned = run(
        "scan", file, "--from", 2, "--to", 2, "--runs", 2, "--max-iter", 5, "--jobs", 1, "--encoder", "static",
        "--out", tmp_path / "scan",
    )  # fmt: skip
    assert scanned.exit_code == 0, scanned.stderr
