"""What scripts and shells use: JSON, completion and exit codes."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from commands import PROCESS, run
from ddclust.cli.main import main


def printed_json(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_tables_as_json(vectors):
    folder, X, _ = vectors
    out, quick = folder / "run", ("--runs", 2, "--max-iter", 20, "--jobs", 1)
    fitted = printed_json("fit", folder / "blobs.npz", "-k", 3, *quick, "--no-report", "--out", out, "--json")
    assert (fitted["data"], fitted["status"], fitted["results"]) == ("blobs", "complete", str(out))
    assert sum(cluster["items"] for cluster in fitted["clusters"]) == len(X)
    assert 0 <= fitted["scores"]["NMI"] <= 1
    shown = printed_json("runs", out, "--json")
    assert {name: fitted[name] for name in shown} == shown
    assert printed_json("resume", out, "--json") == shown
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


def test_new_items_as_json(vectors):
    folder, X, _ = vectors
    out, quick = folder / "run", ("--runs", 1, "--max-iter", 20, "--no-report")
    run("fit", folder / "blobs.npz", "-k", 3, *quick, "--out", out)
    items = printed_json("predict", out, folder / "blobs.csv", "--json")
    written = list(csv.DictReader(io.StringIO(run("predict", out, folder / "blobs.csv").stdout)))
    assert [(item["item"], str(item["cluster"])) for item in items] == [
        (row["item"], row["cluster"]) for row in written
    ]
    assert items[0].keys() == written[0].keys()
    assert (items[0]["agreement"], written[0]["agreement"]) == (None, "")  # of a single run
    run("predict", out, folder / "blobs.csv", "--json", "--out", folder / "new.json")
    assert json.loads((folder / "new.json").read_text()) == items
    new = folder / "update"
    updated = printed_json("update", out, folder / "blobs.npz", "--no-report", "--out", new, "--json")
    assert (updated["results"], updated["status"]) == (str(new), "complete")
    assert updated["new"]["items"] == sum(cluster["items"] for cluster in updated["clusters"]) == len(X)


def test_plan_as_json(tmp_path):
    (tmp_path / "table.csv").write_text(
        "mass,kind\n" + "\n".join(f"{i / 7:.3f},{'ab'[i % 2]}" for i in range(40))
    )
    out = ("--out", tmp_path / "run")
    plan = printed_json("fit", tmp_path / "table.csv", "-k", 2, "--runs", 3, "--dry-run", "--json", *out)
    assert [(column["column"], column["kind"]) for column in plan["columns"]] == [
        ("mass", "number"),
        ("kind", "category"),
    ]
    assert (plan["items"], plan["setup"]["n_init"]) == (40, 3)
    assert plan["seconds"] > 0
    assert not out[1].exists()


def test_every_command_that_prints_a_table_has_json():
    with_table = {"fit", "resume", "update", "predict", "runs", "scan", "evaluate", "compare", "datasets"}
    having = {name: {option for p in c.params for option in p.opts} for name, c in main.commands.items()}
    assert {name for name, options in having.items() if "--json" in options} == with_table
    assert {name for name, options in having.items() if "--quiet" not in options} == {"runs", "datasets"}


@pytest.mark.parametrize("name", ["predict", "explain", "report", "evaluate"])
def test_quiet_commands_leave_notes_out(vectors, name):
    folder, _, _ = vectors
    out, table = folder / "run", folder / "classes.csv"
    run("fit", folder / "blobs.csv", "-k", 3, "--runs", 1, "--max-iter", 5, "--no-report", "--out", out)
    table.write_text("a,b\n" + "1,2\n" * len((out / "labels.csv").read_text().splitlines()[1:]))
    arguments = {
        "evaluate": (out, table),
        "explain": (out, "--items", "0", "--out", folder / "why"),
        "report": (out,),
    }
    arguments = (name, *arguments.get(name, (out, folder / "blobs.csv")))
    assert run(*arguments, "--quiet").stderr == ""
    if name == "evaluate":
        assert "Note: " in run(*arguments).stderr


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
    script = completion_script(shell)
    assert "_DDCLUST_COMPLETE" in script
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def completion_script(shell):
    """What ddclust prints for a shell to run."""
    environment = os.environ | {"_DDCLUST_COMPLETE": f"{shell}_source"}
    return subprocess.run([*PROCESS], env=environment, capture_output=True, text=True, check=True).stdout


# What a user has typed before the tab key.
TYPED = {
    "bash": "COMP_WORDS=(ddclust fit --max-); COMP_CWORD=2; _ddclust_completion ddclust --max- fit; echo ${COMPREPLY[@]}",
    "fish": "complete -C 'ddclust fit --max-'",
}


@pytest.mark.parametrize("shell", TYPED)
def test_shell_completes(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    command = tmp_path / "ddclust"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ddclust "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "script").write_text(completion_script(shell))
    line = f"source '{tmp_path}/script'; {TYPED[shell]}"
    done = subprocess.run(
        [shell, "-c", line],
        env=os.environ | {"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert [word for word in done.stdout.split() if word.startswith("--")] == ["--max-bytes", "--max-iter"]
