"""ddclust scan; tests of the scan itself have more."""

import json
from importlib import import_module

from commands import run


def test_a_scan(vectors):
    folder, _, _ = vectors
    out = folder / "scan"
    options = ["--from", 2, "--to", 3, "--runs", 2, "--max-iter", 5, "--jobs", 1, "--out", out]
    result = run("scan", folder / "blobs.npz", *options)
    assert result.exit_code == 0, result.output
    assert "The data has 3 known classes, which were not used." in result.output
    assert f"Results: {out}/" in result.output
    assert "confidence 1.00" not in result.output  # from a single pair of runs
    used = json.loads((out / "k-003" / "row.json").read_text())
    assert (used["setup"]["n_init"], used["setup"]["max_iter"], used["random_state"]) == (2, 5, 0)
    assert run("scan", folder / "blobs.npz", *options, "--quiet").output == ""


def test_wrong_numbers_name_the_option(vectors):
    folder, _, _ = vectors
    data = folder / "blobs.csv"
    assert "Invalid value for '--runs'" in run("scan", data, "--runs", 1).output
    wrong = run("scan", data, "--from", 5, "--to", 4)
    assert wrong.exit_code == 2
    assert "--from 5 is larger than --to 4" in wrong.output


def test_an_interrupt_keeps_what_is_done(vectors, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    folder, _, _ = vectors
    monkeypatch.setattr(import_module("ddclust.scan"), "scan", interrupt)
    result = run("scan", folder / "blobs.csv", "--out", folder / "scan")
    assert result.exit_code == 130
    assert f"{folder / 'scan'}/ keeps what is done; run the same command to go on." in result.output
