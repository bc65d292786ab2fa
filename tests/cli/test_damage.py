"""Result folders that were damaged or edited: the file is named, and nothing of it is believed."""

import json
import shutil

import pytest

from commands import QUICK, run
from helpers import edit_json


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A result folder, its data, and the truth."""
    folder = tmp_path_factory.mktemp("fit")
    (folder / "a.csv").write_text("".join(f"{i % 2 * 9 + i / 50},{i / 30}\n" for i in range(30)))
    (folder / "truth.csv").write_text("class\n" + "".join(f"{i % 2}\n" for i in range(30)))
    result = run("fit", folder / "a.csv", "-k", 2, *QUICK, "--out", folder / "run")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def out(fitted, tmp_path):
    return shutil.copytree(fitted / "run", tmp_path / "run")


def flip(file, place=0.5):
    content = bytearray(file.read_bytes())
    content[int(len(content) * place)] ^= 1
    file.write_bytes(bytes(content))


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.output.count("\n") == 1
    for word in words:
        assert word in result.output


def test_damaged_labels_are_not_evaluated(fitted, out):
    assert run("evaluate", out, fitted / "truth.csv").exit_code == 0
    flip(out / "labels.csv")
    refused(
        run("evaluate", out, fitted / "truth.csv"),
        "labels.csv' is not as the fit wrote it: it is damaged or was edited; to use it as it is, give the file",
    )


def test_edited_labels_are_evaluated_if_they_are_named(fitted, out):
    rows = (out / "labels.csv").read_text().splitlines()
    (out / "labels.csv").write_text("\n".join(rows[:1] + [row.replace(",0,", ",1,") for row in rows[1:]]))
    refused(run("evaluate", out, fitted / "truth.csv"), "labels.csv'")
    shown = run("evaluate", out / "labels.csv", fitted / "truth.csv")
    assert shown.exit_code == 0
    assert "0.500" in shown.output


@pytest.mark.parametrize("file", ["labels.csv", "history.json"])
def test_runs_tells_of_every_changed_file(out, file):
    assert "Warning" not in run("runs", out).output
    flip(out / file)
    assert f"Warning: '{out / file}' is not as the fit wrote it" in run("runs", out).output
    (out / file).unlink()
    assert f"Warning: '{out / file}' is not as the fit wrote it" in run("runs", out).output


@pytest.mark.parametrize("command", ["runs", "report", "resume", "explain"])
def test_a_flipped_bit_in_run_json(out, command):
    text = (out / "run.json").read_text()
    (out / "run.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    refused(
        run(command, out), "run.json' is damaged: its content differs from what was written; copy it again"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"data": None}, "Object missing required field data"),
        ({"command": 5}, "Expected array, got int at command"),
        ({"runs": [{"run": 0}]}, "Object missing required field seed at runs[0]"),
        (
            {"runs": [{"run": 0, "seed": 1, "outcome": "lost"}]},
            "Invalid enum value 'lost' at runs[0].outcome",
        ),
        ({"voters": ["x"]}, "Expected int, got str at voters[0]"),
        ({"options": [1]}, "Expected object, got array at options"),
        (
            {"options": {"clusters": {"a": [[]]}}},
            "Expected bool | int | float | str | null, got object at options",
        ),
        ({"status": "finished"}, "Invalid enum value 'finished' at status"),
        ({"files": {"labels.csv": 3}}, "Expected str, got int at files[...]"),
    ],
)
def test_other_types_in_run_json(out, changes, problem):
    edit_json(out / "run.json", **changes)
    for command in ("runs", "report", "resume"):
        refused(run(command, out), f"run.json' does not hold what it should ({problem}", "; copy it again")


def test_an_option_of_another_type_in_run_json(out):
    edit_json(out / "run.json", status="interrupted", options={"clusters": 2, "report": -0.0})
    refused(run("resume", out), "--no-report -0.0: '-0.0' is not a valid boolean", "start it anew")


def test_results_of_earlier_versions_have_no_digests(fitted, out):
    edit_json(out / "run.json", files=None)
    flip(out / "labels.csv", 0.99)
    assert run("runs", out).exit_code == 0
    assert run("evaluate", out, fitted / "truth.csv").exit_code == 0


def test_a_fit_that_goes_on_does_not_vouch_for_earlier_results(out):
    """Killed between two of its files, it must not call the newer one damaged."""
    from ddclust.results import read_run, under_way

    edit_json(out / "run.json", status="interrupted")
    with under_way(out, read_run(out)):
        assert "files" not in json.loads((out / "run.json").read_text())


def test_a_damaged_row_of_a_scan(fitted, tmp_path):
    arguments = ("scan", fitted / "a.csv", "--from", 2, "--to", 2, "--runs", 2, "--max-iter", 5, "--jobs", 1)
    assert run(*arguments, "--out", tmp_path / "scan").exit_code == 0
    row = tmp_path / "scan" / "k-002" / "row.json"
    whole = row.read_text()
    row.write_text(whole.replace('"k": 2', '"k": 3'))
    refused(
        run(*arguments, "-q", "--out", tmp_path / "scan"),
        "row.json' is damaged: its content differs from what",
    )
    row.write_text(whole)
    edit_json(row, row={"k": 2})
    refused(
        run(*arguments, "-q", "--out", tmp_path / "scan"),
        "row.json' does not hold what it should (Object missing required field",
        "delete the folder to start anew",
    )
