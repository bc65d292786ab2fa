"""The command line: in-process for its many errors, as a real process where the process matters."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner
from PIL import Image

from ddclust import DDC
from ddclust.cli.main import main
from ddclust.datasets import load
from ddclust.training.run import CRITERIA

QUICK = ["--runs", "1", "--max-iter", "20", "--jobs", "1", "--no-report"]
WITH_REPORT = QUICK[:-1]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def process(*arguments, **options):
    command = [Path(sys.executable).parent / "ddclust", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def vectors(blobs, tmp_path):
    """A .csv with a header, an .npz with the truth, and the arrays."""
    X, y = blobs
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    np.savetxt(tmp_path / "blobs.csv", X, delimiter=",", header="mass,age", comments="")
    return tmp_path, X, y


def test_fit_predict_evaluate(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    fitted = run(
        "fit",
        folder / "blobs.npz",
        "-k",
        3,
        "--learning-rate",
        1e-3,
        "--max-iter",
        200,
        "--runs",
        2,
        "--out",
        out,
    )
    assert fitted.exit_code == 0, fitted.output
    assert f"Results: {out}/" in fitted.output
    assert "ACC 1.000, NMI 1.000" in fitted.output
    assert sorted(p.name for p in out.iterdir()) == [
        "history.json",
        "labels.csv",
        "model",
        "report.html",
        "run.json",
    ]

    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    model = DDC.load(out / "model")
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    assert float(rows[7]["confidence"]) == pytest.approx(model.probabilities_[7].max(), abs=1e-4)
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "complete"
    assert record["options"]["clusters"] == 3
    assert record["data"]["shape"] == [150, 2]
    assert len(record["runs"]) == 2
    assert record["versions"]["torch"]
    assert json.loads((out / "history.json").read_text()) == model.history_

    predicted = run("predict", out, folder / "blobs.csv")
    assert predicted.output == (out / "labels.csv").read_text()
    again = run("predict", out / "model", folder / "blobs.csv", "--out", folder / "new.csv")
    assert again.exit_code == 0
    assert (folder / "new.csv").read_text() == predicted.output

    for labels, truth in [
        (out, "blobs.npz"),
        (out / "labels.csv", "blobs.npz"),
        (folder / "new.csv", "blobs.npz"),
    ]:
        scores = run("evaluate", labels, folder / truth)
        assert "1.000  1.000" in scores.output
    both = run("evaluate", out, folder / "blobs.npz", "--kmeans")
    assert "k-means" in both.output


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
    assert (model.n_clusters, model.n_clusters_, model.criterion) == (6, 3, "divergence")
    assert "merged into 3" in (out / "report.html").read_text()
    assert run("predict", out, folder / "blobs.csv").output == (out / "labels.csv").read_text()
    assert run("evaluate", out, folder / "blobs.npz").exit_code == 0
    explained = run("explain", out, folder / "blobs.csv", "--out", folder / "explained")
    assert explained.exit_code == 0, explained.output
    wrong = run("fit", folder / "blobs.csv", "-k", 3, "--merge-into", 4, *QUICK, "--out", folder / "wrong")
    assert wrong.exit_code == 2
    assert "n_final=4 should be <= n_clusters=3" in wrong.output


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


def files(folder):
    """Names of every kind of bad data file, written to a folder."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    np.save(folder / "constant.npy", np.ones((20, 3)))
    np.save(folder / "flat.npy", np.arange(5.0))
    np.save(folder / "empty.npy", np.zeros((0, 3)))
    np.save(folder / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.save(folder / "words.npy", np.array([["a", "b"]]))
    np.save(folder / "five.npy", np.ones((3, 2, 2, 2, 2)) + np.arange(3)[:, None, None, None, None])
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        bad = X.copy()
        bad[7, 2] = value
        np.save(folder / f"{name}.npy", bad)
        np.savetxt(folder / f"{name}.csv", bad, delimiter=",")
    np.save(folder / "good.npy", X)
    (folder / "cut.npy").write_bytes((folder / "good.npy").read_bytes()[:200])
    (folder / "lies.npy").write_text("a,b\n1,2\n")
    (folder / "lies.npz").write_text("not a zip")
    np.savez(folder / "many.npz", a=X, b=X)
    np.savez(folder / "short.npz", X=X, y=np.zeros(3))
    (folder / "words.csv").write_text("a,b\n1,2\n3,four\n")
    (folder / "ragged.csv").write_text("1,2\n3,4\n5\n")
    (folder / "nothing.csv").write_text("")
    (folder / "header.csv").write_text("a,b\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)))
    (folder / "data.xlsx").write_text("hello")
    (folder / "nowhere").mkdir(exist_ok=True)
    (folder / "archive.npy").write_bytes((folder / "many.npz").read_bytes())
    (folder / "array.npz").write_bytes((folder / "good.npy").read_bytes())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent.npy", "neither a file or folder nor a named data set"),
        ("nowhere", "holds no images or texts"),
        ("data.xlsx", "must end in .npy, .npz, .csv"),
        ("constant.npy", "identical"),
        ("flat.npy", "shape (5,)"),
        ("empty.npy", "no data"),
        ("objects.npy", "cannot be read as a .npy file of numbers"),
        ("words.npy", "not numbers"),
        ("five.npy", "shape (3, 2, 2, 2, 2)"),
        ("nan.npy", "NaN in row 7, column 2"),
        ("inf.npy", "inf in row 7, column 2"),
        ("nan.csv", "line 8, column '2' holds NaN"),
        ("inf.csv", "line 8, column '2' holds inf"),
        ("cut.npy", "cannot be read"),
        ("lies.npy", "cannot be read"),
        ("lies.npz", "cannot be read"),
        ("many.npz", "holds the arrays a, b; call the one to cluster X"),
        ("short.npz", "one label for each of the 20 items"),
        ("words.csv", "line 3, column 'b' holds 'four', which is no number"),
        ("ragged.csv", "line 3 has 1 columns, the first one has 2"),
        ("nothing.csv", "is empty"),
        ("header.csv", "no rows below its header"),
        ("binary.csv", "not a text file in UTF-8"),
        ("archive.npy", "it is an .npz archive"),
        ("array.npz", "it is a single .npy array"),
    ],
)
def test_bad_data_gets_a_sentence_and_leaves_nothing(tmp_path, name, sentence):
    files(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    result = run("fit", tmp_path / name, "-k", 2, *QUICK, "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 2, result.output
    assert sentence in result.output
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-k", 21], "n_samples=20 should be >= n_clusters=21"),
        (["-k", 2, "--network", "conv"], "needs images"),
        (["-k", 2, "--learning-rate", "1e30", "--runs", 2, "--jobs", 1], "All 2 restarts failed"),
        (["-k", 2, "--device", "abacus"], "device='abacus'"),
        (["-k", 2, "--sizes", "half,half"], "--sizes 'half,half' is neither 'k-means' nor numbers"),
        (["-k", 3, "--sizes", "2,1"], "cluster_sizes holds 2 sizes for n_clusters=3"),
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


def test_predict_errors(vectors, images):
    folder, _, _ = vectors
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    np.save(folder / "images.npy", images)
    np.save(folder / "wide.npy", np.ones((4, 5)))
    for data, sentence in [
        ("images.npy", "fitted on items of shape (2,)"),
        ("wide.npy", "expecting 2 features"),
    ]:
        result = run("predict", folder / "run", folder / data)
        assert (result.exit_code, sentence in result.output) == (2, True), result.output
    assert "no model folder" in run("predict", folder, folder / "blobs.csv").output
    (folder / "taken.csv").write_text("x")
    assert run("predict", folder / "run", folder / "blobs.csv", "--out", folder / "taken.csv").exit_code == 2
    assert (folder / "taken.csv").read_text() == "x"


def test_evaluate_errors(vectors):
    folder, _, _ = vectors
    np.save(folder / "labels.npy", np.zeros(7, dtype=int))
    assert "one length" in run("evaluate", folder / "labels.npy", folder / "blobs.npz").output
    assert "There is no file" in run("evaluate", folder / "none.csv", folder / "blobs.npz").output
    np.save(folder / "matrix.npy", np.zeros((7, 2)))
    assert "one-dimensional" in run("evaluate", folder / "matrix.npy", folder / "blobs.npz").output


def test_evaluate_reads_truth_of_many_kinds(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 0, 1, 1]))
    (tmp_path / "plain.csv").write_text("cat\ncat\ndog\ndog\n")
    (tmp_path / "named.csv").write_text("file,class\n1.png,cat\n2.png,cat\n3.png,dog\n4.png,dog\n")
    np.save(tmp_path / "truth.npy", np.array([5, 5, 2, 2]))
    for truth in ("plain.csv", "named.csv", "truth.npy"):
        assert "1.000  1.000" in run("evaluate", tmp_path / "labels.npy", tmp_path / truth).output


def test_tables_of_many_kinds(tmp_path):
    body = "1.5,2\n3,4\n5,7\n"
    for text in (
        body,
        "a,b\n" + body,
        "0,1\n" + body,
        "\n\na,b\n" + body,
        "\ufeff" + body,
        '"a","b"\n' + body,
    ):
        (tmp_path / "x.csv").write_text(text, encoding="utf-8")
        np.testing.assert_array_equal(load(tmp_path / "x.csv").data, [[1.5, 2], [3, 4], [5, 7]])


def test_short_row_of_labels_is_named(tmp_path):
    (tmp_path / "short.csv").write_text("item,cluster\na,1\nb\n")
    result = run("evaluate", tmp_path / "short.csv", "circles")
    assert "line 3 has 1 columns" in result.output


def test_help_is_for_people():
    result = run("--help")
    assert "ddclust fit digits -k 10" in result.output
    for command in ("fit", "predict", "evaluate"):
        text = run(command, "--help").output
        assert "DATA" in text or "TRUTH" in text
    assert "Missing option '-k'" in run("fit", "digits").output


def test_help_does_not_wait_for_torch():
    code = "import sys, ddclust.cli.main; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_hostile_description_is_text(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps({"format": "ddclust-model", "format_version": 1}))
    (folder / "tensors.safetensors").write_bytes(b"\x00" * 100)
    result = run("predict", folder, "digits")
    assert result.exit_code == 2
    assert "tensors.safetensors" in result.output


def test_texts_from_the_command_line(tmp_path):
    lines = ["The ship sailed at dawn", "Bakers bake fresh bread"] * 10
    (tmp_path / "docs.txt").write_text("\n".join(lines))
    out = tmp_path / "run"
    fitted = run("fit", tmp_path / "docs.txt", "-k", 2, *QUICK, "--out", out)
    assert fitted.exit_code == 0, fitted.output
    assert "docs: 20 texts" in fitted.output
    (tmp_path / "new.jsonl").write_text('{"id": "n1", "text": "ships sail"}\n{"id": "n2", "text": "bread"}\n')
    predicted = run("predict", out, tmp_path / "new.jsonl")
    assert [row["item"] for row in csv.DictReader(predicted.output.splitlines())] == ["n1", "n2"]
    wrong = run("predict", out, "digits")
    assert wrong.exit_code == 2
    assert "fitted on" in wrong.output or "features" in wrong.output


def test_table_with_names_classes_and_texts(tmp_path):
    rows = [f"n{i},{i % 2},{i},{'ship' if i % 2 else 'bread'}" for i in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(["id,kind,size,words", *rows]))
    plain = run("fit", tmp_path / "table.csv", "-k", 2, *QUICK, "--out", tmp_path / "run")
    assert plain.exit_code == 2
    assert "line 2, column 'words' holds 'bread', which is no number" in plain.output
    fitted = run(
        "fit",
        tmp_path / "table.csv",
        "-k",
        2,
        *QUICK,
        "--out",
        tmp_path / "run",
        "--text",
        "words",
        "--truth",
        "kind",
    )
    assert fitted.exit_code == 0, fitted.output
    assert "The column 'id' names the items" in fitted.output
    assert "ACC" in fitted.output
    assert (tmp_path / "run" / "labels.csv").read_text().splitlines()[1].startswith("n0,")
    scores = run("evaluate", tmp_path / "run", tmp_path / "table.csv", "--column", "kind")
    assert scores.exit_code == 0, scores.output
    assert (
        "has no column 'sort'"
        in run("evaluate", tmp_path / "run", tmp_path / "table.csv", "--column", "sort").output
    )
    resumed = run("resume", tmp_path / "run")
    assert "complete" in resumed.output
    again = run("predict", tmp_path / "run", tmp_path / "table.csv")  # the column is remembered
    assert (tmp_path / "run" / "labels.csv").read_text() in again.output
    (tmp_path / "new.txt").write_text("a ship\n")
    assert run("predict", tmp_path / "run", tmp_path / "new.txt").exit_code == 0


@pytest.fixture
def photos(tmp_path):
    """A folder of images in two classes, one of which is brighter, and one file that is no image."""
    rng = np.random.default_rng(0)
    for i in range(12):
        folder = tmp_path / "photos" / ("bright" if i % 2 else "dark")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, size=(10 + i, 12, 3)) + 150 * (i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    (tmp_path / "photos" / "dark" / "<b>.png").write_text("no image")
    return tmp_path / "photos"


def test_folder_of_images(photos, tmp_path):
    out = tmp_path / "run"
    fitted = run("fit", photos, "-k", 2, *QUICK, "--out", out, "--size", 16)
    assert fitted.exit_code == 0, fitted.output
    assert "12 items of 16 x 16 x 3 values" in fitted.output
    assert "Warning: 1 files cannot be read and are skipped: dark/<b>.png: not an image" in fitted.output
    assert json.loads((out / "run.json").read_text())["data"]["skipped"] == {"dark/<b>.png": "not an image"}
    assert "clusters" in run("evaluate", out, photos, "--kmeans").output
    # A few of them, in another folder: read as the model's were, and compared by name.
    (tmp_path / "few" / "dark").mkdir(parents=True)
    (tmp_path / "few" / "dark" / "0.png").write_bytes((photos / "dark" / "0.png").read_bytes())
    predicted = run("predict", out, tmp_path / "few", "--out", tmp_path / "few.csv")
    assert predicted.exit_code == 0, predicted.output
    row = (tmp_path / "few.csv").read_text().splitlines()[1]
    assert row in (out / "labels.csv").read_text().splitlines()
    assert "1.000" in run("evaluate", tmp_path / "few.csv", photos).output
    (tmp_path / "few" / "dark" / "new.png").write_bytes((photos / "dark" / "0.png").read_bytes())
    run("predict", out, tmp_path / "few", "--out", tmp_path / "more.csv")
    unknown = run("evaluate", tmp_path / "more.csv", photos)
    assert unknown.exit_code == 2
    assert "has other items than those that were clustered, 'dark/new.png' for example" in unknown.output


def test_blocks(vectors):
    folder, X, _ = vectors
    np.save(folder / "X.npy", X)
    result = run("fit", folder / "X.npy", "-k", 3, *QUICK, "--out", folder / "run", "--blocks")
    assert result.exit_code == 0, result.output
    (folder / "X.txt").write_text("one text\nanother text")
    refused = run("fit", folder / "X.txt", "-k", 2, *QUICK, "--out", folder / "other", "--blocks")
    assert "--blocks is for arrays" in refused.output


def test_datasets_are_listed(monkeypatch):
    result = run("datasets")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines() if line}
    assert {
        "circles",
        "digits",
        "mnist",
        "seals-2",
        "reuters",
        "reuters21578",
        "agnews",
        "rcv1-subset",
    } <= set(lines)
    assert "1,797 x 8 x 8" in lines["digits"]
    assert " yes " in lines["digits"]


def test_fit_of_another_version_is_not_resumed(tmp_path):
    run_file = {"status": "running", "options": {"clusters": 3}, "data": {}, "versions": {"ddclust": "0.0.1"}}
    (tmp_path / "run.json").write_text(json.dumps(run_file))
    result = run("resume", tmp_path)
    assert result.exit_code == 2
    assert "was begun by ddclust 0.0.1; start it anew" in result.output


def test_labels_and_truth_are_matched_by_name(tmp_path):
    (tmp_path / "found.csv").write_text("item,cluster\na,0\nb,1\nc,1\n")
    (tmp_path / "truth.csv").write_text("item,class\nc,y\na,x\nb,y\n")
    assert "1.000  1.000" in run("evaluate", tmp_path / "found.csv", tmp_path / "truth.csv").output
    (tmp_path / "unnamed.csv").write_text("class\nx\ny\ny\n")
    assert "1.000  1.000" in run("evaluate", tmp_path / "found.csv", tmp_path / "unnamed.csv").output
    (tmp_path / "twice.csv").write_text("item,class\na,y\na,x\nb,y\nc,y\n")
    assert "not unique" in run("evaluate", tmp_path / "found.csv", tmp_path / "twice.csv").output


def test_predict_finds_columns_by_name(vectors):
    folder, X, _ = vectors
    fitted = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    assert fitted.exit_code == 0, fitted.output
    rows = [f"{age},word,{mass}" for mass, age in X.tolist()]
    (folder / "other.csv").write_text("\n".join(["age,remark,mass", *rows]))
    predicted = run("predict", folder / "run", folder / "other.csv")
    assert predicted.exit_code == 0, predicted.output
    assert predicted.output == (folder / "run" / "labels.csv").read_text()
    (folder / "less.csv").write_text("age\n1\n2\n")
    assert "has no column 'mass'" in run("predict", folder / "run", folder / "less.csv").output


@pytest.mark.parametrize("layout", ["channels last", "channels first", "one channel"])
def test_folder_of_images_for_a_model_of_arrays(photos, layout, tmp_path, rng):
    X = rng.integers(0, 255, size=(20, 16, 12, 3), dtype=np.uint8)
    X = {"channels last": X, "channels first": X.transpose(0, 3, 1, 2), "one channel": X[..., :1]}[layout]
    np.save(tmp_path / "X.npy", X)
    run("fit", tmp_path / "X.npy", "-k", 2, *QUICK, "--out", tmp_path / "run")
    predicted = run("predict", tmp_path / "run", photos, "--out", tmp_path / "new.csv")
    assert predicted.exit_code == 0, predicted.output
    images = load(photos, image_size=(16, 12), colour="grey" if layout == "one channel" else "rgb").data
    shaped = images.transpose(0, 3, 1, 2) if layout == "channels first" else images.reshape(-1, *X.shape[1:])
    labels = DDC.load(tmp_path / "run" / "model").predict(shaped)
    rows = list(csv.DictReader((tmp_path / "new.csv").read_text().splitlines()))
    assert [int(row["cluster"]) for row in rows] == labels.tolist()


def test_predict_warns_in_a_sentence(tmp_path):
    (tmp_path / "docs.txt").write_text("ships sail\nbread bakes\n" * 5)
    run("fit", tmp_path / "docs.txt", "-k", 2, *QUICK, "--out", tmp_path / "run")
    (tmp_path / "new.txt").write_text("zebra\n")
    predicted = run("predict", tmp_path / "run", tmp_path / "new.txt")
    assert "Warning: 1 of 1 texts hold none of the" in predicted.output
    assert ".py" not in predicted.output


def test_names_of_files_that_are_no_utf8(photos, tmp_path):
    os.rename(photos / "dark" / "0.png", os.fsencode(photos / "dark") + b"/\xff\xe9.png")
    fitted = run("fit", photos, "-k", 2, *QUICK, "--out", tmp_path / "run")
    assert fitted.exit_code == 0, fitted.output
    assert "dark/\\udcff\\udce9.png," in (tmp_path / "run" / "labels.csv").read_text()


def test_resume_from_another_folder(tmp_path, monkeypatch, blobs):
    np.savetxt(tmp_path / "blobs.csv", blobs[0], delimiter=",")
    monkeypatch.chdir(tmp_path)
    run("fit", "blobs.csv", "-k", 3, *QUICK, "--out", "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps(record | {"status": "running"}))
    monkeypatch.chdir("/")
    resumed = run("resume", tmp_path / "run")
    assert resumed.exit_code == 0, resumed.output
    assert "Results" in resumed.output


def test_sparse_data_in_blocks_is_refused(tmp_path):
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.random_array((20, 5), density=0.5, rng=0))
    result = run("fit", tmp_path / "X.npz", "-k", 2, *QUICK, "--out", tmp_path / "run", "--blocks")
    assert "--blocks is for arrays" in result.output


def test_a_file_with_the_name_of_a_data_set(tmp_path, monkeypatch):
    (tmp_path / "circles").mkdir()
    monkeypatch.chdir(tmp_path)
    result = run("fit", "circles", "-k", 2, *QUICK, "--out", "run")
    assert "Note: 'circles' is the named data set, not the file; for that say './circles'." in result.output


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not JSON", "holds no names of clusters"),
        ('{"names": {}}', "holds no names of clusters"),
        ('{"format": "ddclust-names", "names": {"7": "x"}}', "names cluster 7, but the model has the clusters 0 to 2"),
        ('{"format": "ddclust-names", "names": {"0": 1}}', "names cluster 0"),
    ],
)  # fmt: skip
def test_wrong_names_are_refused(vectors, content, message):
    folder, _, _ = vectors
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    (folder / "names.json").write_text(content)
    result = run("predict", folder / "run", folder / "blobs.csv", "--names", folder / "names.json")
    assert result.exit_code == 2
    assert message in result.output


def test_a_report_that_fails_loses_nothing(vectors, monkeypatch):
    folder, _, _ = vectors
    from ddclust.show.report import _page

    def fail(*arguments):
        raise ValueError("no paper left")

    monkeypatch.setattr(_page, "_content_of", fail)
    result = run("fit", folder / "blobs.csv", "-k", 3, *WITH_REPORT, "--out", folder / "run")
    assert result.exit_code == 0
    assert "Warning: the report could not be made: no paper left" in result.output
    assert (folder / "run" / "labels.csv").exists()
    assert not (folder / "run" / "report.html").exists()


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


def test_partners_and_links_on_the_command_line(tmp_path, images):
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
    assert {"partners", "must_link", "cannot_link"} <= model.runs_[0]["terms"].keys()
    # The same in Python.
    alone = DDC(2, augment="affine", neighbors=3, n_init=1, max_iter=20, random_state=0)
    alone.fit(images, must_link=[[0, 1], [2, 3]], cannot_link=[[0, 35]])
    assert np.array_equal(alone.probabilities_, model.probabilities_)


def test_balance_goes_with_partners(vectors):
    folder, _, _ = vectors
    expected = {
        "default": ([], "auto", True),
        "plain": (["--augment", "none"], None, False),
        "noise": (["--augment", "noise"], "noise", True),
    }
    for name, (options, augment, has_partners) in expected.items():
        run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--balance", 7, *options, "--out", folder / name)
        model = DDC.load(folder / name / "model")
        assert (model.balance, model.augment) == (7, augment)
        assert ("partners" in model.runs_[0]["terms"]) == has_partners


@pytest.mark.parametrize(
    ("given", "sizes"), [("50,30,20", [50.0, 30.0, 20.0]), ("k-means", "k-means"), (None, None)]
)
def test_sizes_of_clusters(vectors, given, sizes):
    folder, _, _ = vectors
    options = [] if given is None else ["--sizes", given]
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, *options, "--out", folder / "run")
    assert DDC.load(folder / "run" / "model").cluster_sizes == sizes


def test_every_criterion_can_be_named():
    (option,) = [option for option in main.commands["fit"].params if option.name == "criterion"]
    assert tuple(option.type.choices) == CRITERIA


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
        ("0,1,2\n", "must have two columns of items, it has 3"),
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


def test_pairs_of_items_with_one_name(tmp_path):
    from ddclust.datasets import DataError, read_pairs

    (tmp_path / "pairs.csv").write_text("first,second\na,b\nc,a\n")
    assert read_pairs(tmp_path / "pairs.csv", ["a", "b", "c"]).tolist() == [[0, 1], [2, 0]]
    with pytest.raises(DataError, match="line 2 names 'a', but several items are called that"):
        read_pairs(tmp_path / "pairs.csv", ["a", "b", "c", "a"])
