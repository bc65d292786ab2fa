"""ddclust fit."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from commands import QUICK, run, set_by_options
from ddclust import DDC


@pytest.mark.slow
def test_merge_into(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    options = [
        "--learning-rate",
        1e-3,
        "--max-iter",
        150,
        "--runs",
        2,
        "--jobs",
        1,
        "--criterion",
        "divergence",
    ]
    fitted = run("fit", folder / "blobs.npz", "-k", 6, "--merge-into", 3, *options, "--out", out)
    assert fitted.exit_code == 0, fitted.output
    assert "ACC " in fitted.output
    model = DDC.load(out / "model")
    assert (model.n_clusters, model.n_clusters_) == (6, 3)
    assert set_by_options(model)["criterion"] == "divergence"
    assert "merged into 3" in (out / "report.html").read_text()
    predicted = csv.DictReader(run("predict", out, folder / "blobs.csv").output.splitlines())
    fitted_rows = csv.DictReader((out / "labels.csv").read_text().splitlines())
    # The fit knows the agreement of both runs, the model only the better one of them.
    assert list(predicted) == [row | {"agreement": ""} for row in fitted_rows]
    assert run("evaluate", out, folder / "blobs.npz").exit_code == 0
    explained = run("explain", out, folder / "blobs.csv", "--out", folder / "explained")
    assert explained.exit_code == 0, explained.output
    wrong = run("fit", folder / "blobs.csv", "-k", 3, "--merge-into", 4, *QUICK, "--out", folder / "wrong")
    assert wrong.exit_code == 2
    assert "--merge-into 4 should be <= --clusters 3" in wrong.output


@pytest.mark.parametrize("name", ["digits", "circles"])
def test_named_data(name, tmp_path):
    result = run("fit", name, "-k", 2, *QUICK, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "ACC" in result.output


def test_default_folder_never_overwrites(vectors, monkeypatch):
    folder, _, _ = vectors
    monkeypatch.chdir(folder)
    for expected in ("blobs-clusters/", "blobs-clusters-2/"):
        assert f"Results: {expected}" in run("fit", "blobs.csv", "-k", 3, *QUICK).output


def test_same_seed_same_file(vectors):
    folder, _, _ = vectors
    for name in ("a", "b"):
        run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / name)
    assert (folder / "a" / "labels.csv").read_text() == (folder / "b" / "labels.csv").read_text()


def test_quiet_is_quiet(vectors):
    result = run("fit", vectors[0] / "blobs.csv", "-k", 3, *QUICK, "--out", vectors[0] / "run", "--quiet")
    assert result.output == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-k", 21], "--clusters 21 is more than there are items (n_samples=20); ask for fewer clusters"),
        (["-k", 2, "--network", "conv"], "needs images"),
        (["-k", 2, "--learning-rate", "1e30", "--runs", 2, "--jobs", 1], "All 2 "),
        (["-k", 2, "--device", "abacus"], "--device 'abacus'"),
        (["-k", 2, "--sizes", "half,half"], "--sizes 'half,half' is neither 'k-means' nor a list of numbers"),
        (["-k", 3, "--sizes", "2,1"], "--sizes holds 2 sizes for --clusters 3"),
    ],
)
def test_bad_parameters_get_a_sentence(tmp_path, arguments, sentence):
    np.save(tmp_path / "good.npy", np.random.default_rng(0).normal(size=(20, 3)))
    result = run("fit", tmp_path / "good.npy", "--quiet", "--out", tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert sentence in result.output
    assert result.output.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["good.npy"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", 0],
        ["-k", -3],
        ["--learning-rate", -1],
        ["--balance", -1],
        ["--runs", 0],
        ["--seed", -1],
        ["--vote", 0],
    ],
    ids=str,
)
def test_numbers_out_of_range_name_the_option(tmp_path, arguments):
    result = run("fit", "circles", "-k", 2, "--out", tmp_path / "run", *arguments)
    assert result.exit_code == 2
    assert f"Invalid value for '{arguments[0]}" in result.output
    assert list(tmp_path.iterdir()) == []


def test_no_parent_folder_is_left_behind(tmp_path):
    assert run("fit", "circles", "-k", 2000, "--out", tmp_path / "deep" / "er" / "run").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_existing_folder_is_refused_before_any_work(vectors):
    folder, _, _ = vectors
    (folder / "run").mkdir()
    (folder / "run" / "precious").write_text("keep")
    result = run("fit", folder / "blobs.csv", "-k", 3, "--out", folder / "run")
    assert result.exit_code == 2
    assert "exists already" in result.output
    assert os.listdir(folder / "run") == ["precious"]


def test_blocks(vectors):
    folder, X, _ = vectors
    np.save(folder / "X.npy", X)
    result = run("fit", folder / "X.npy", "-k", 3, *QUICK, "--out", folder / "run", "--blocks")
    assert result.exit_code == 0, result.output
    (folder / "X.txt").write_text("one text\nanother text")
    refused = run("fit", folder / "X.txt", "-k", 2, *QUICK, "--out", folder / "other", "--blocks")
    assert "--blocks is for arrays" in refused.output


def test_sparse_data_in_blocks_is_refused(tmp_path):
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.random_array((20, 5), density=0.5, rng=0))
    result = run("fit", tmp_path / "X.npz", "-k", 2, *QUICK, "--out", tmp_path / "run", "--blocks")
    assert "--blocks is for arrays" in result.output


def test_pairs_and_links_on_the_command_line(tmp_path, images):
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "same.csv").write_text("one,other\n0,1\n2,3\n")
    (tmp_path / "apart.csv").write_text("0;35\n")
    out = tmp_path / "run"
    result = run(
        "fit", tmp_path / "images.npy", "-k", 2, *QUICK, "--out", out, "--augment", "affine", "--neighbors", 3,
        "--must-link", tmp_path / "same.csv", "--cannot-link", tmp_path / "apart.csv",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    model = DDC.load(out / "model")
    assert (model.augment, model.neighbors, model.loss) == ("affine", 3, "auto")
    assert {"pairs", "must_link", "cannot_link"} <= model.runs_[0]["terms"].keys()
    # The same in Python.
    alone = DDC(2, augment="affine", neighbors=3, n_init=1, max_iter=20, random_state=0)
    alone.fit(images, must_link=[[0, 1], [2, 3]], cannot_link=[[0, 35]])
    assert np.array_equal(alone.probabilities_, model.probabilities_)


def test_balance_goes_with_pairs(vectors):
    folder, _, _ = vectors
    expected = {
        "default": ([], "auto", True),
        "plain": (["--augment", "none"], None, False),
        "noise": (["--augment", "noise"], "noise", True),
    }
    for name, (options, augment, has_pairs) in expected.items():
        run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--balance", 7, *options, "--out", folder / name)
        model = DDC.load(folder / name / "model")
        assert (set_by_options(model)["balance"], model.augment) == (7, augment)
        assert ("pairs" in model.runs_[0]["terms"]) == has_pairs


@pytest.mark.parametrize(
    ("given", "sizes"), [("50,30,20", (0.5, 0.3, 0.2)), ("k-means", "k-means"), (None, None)]
)
def test_sizes_of_clusters(vectors, given, sizes):
    folder, _, _ = vectors
    options = [] if given is None else ["--sizes", given]
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, *options, "--out", folder / "run")
    assert set_by_options(DDC.load(folder / "run" / "model"))["sizes"] == sizes


def test_links_are_read_again_from_another_folder(vectors, monkeypatch):
    """The files are remembered by their full names; other pairs are another fit."""
    folder, _, _ = vectors
    monkeypatch.chdir(folder)
    Path("same.csv").write_text("0,1\n")
    arguments = ["fit", "blobs.csv", "-k", 3, *QUICK, "--must-link", "same.csv", "--out", "run"]
    assert run(*arguments).exit_code == 0
    options = json.loads(Path("run/run.json").read_text())["options"]
    assert options["must_link"] == str((folder / "same.csv").resolve())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("0,1,2\n", "must have two columns of items, but it has 3"),
        ("0,1\n2,150\n", "line 2: There is no item '150'; the first of the 150 items is called '0'"),
        ("0,no\n", "line 1: There is no item 'no'"),
        ("0,1\n1,2\n", "cannot_link separates items '0' and '2', but must_link joins them: '0' - '1' - '2'"),
        ("", "is empty"),
    ],
)
def test_wrong_links_get_a_sentence(vectors, content, sentence):
    folder, _, _ = vectors
    (folder / "same.csv").write_text(content)
    (folder / "apart.csv").write_text("0,2\n")
    result = run(
        "fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run",
        "--must-link", folder / "same.csv", "--cannot-link", folder / "apart.csv",
    )  # fmt: skip
    assert result.exit_code == 2
    assert sentence in result.output
    assert not (folder / "run").exists()


def test_items_of_unknown_class_do_not_count(vectors):
    folder, X, y = vectors
    known = y.astype(float)
    known[:40] = np.nan
    np.savez(folder / "some.npz", X=X, y=known)
    fitted = run("fit", folder / "some.npz", "-k", 3, *QUICK, "--out", folder / "run")
    assert fitted.exit_code == 0, fitted.output
    np.save(folder / "labels.npy", np.where(np.arange(150) < 40, 0, y))
    np.save(folder / "truth.npy", np.where(np.arange(150) < 40, -1, y))
    assert "1.000  1.000" in run("evaluate", folder / "labels.npy", folder / "truth.npy").output
