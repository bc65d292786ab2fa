"""ddclust predict."""

import csv
import json

import numpy as np
import pytest

from commands import QUICK, as_predicted, run
from ddclust import DDC
from ddclust.datasets import load


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
    assert "is not a complete model" in run("predict", folder, folder / "blobs.csv").output
    (folder / "taken.csv").write_text("x")
    assert run("predict", folder / "run", folder / "blobs.csv", "--out", folder / "taken.csv").exit_code == 2
    assert (folder / "taken.csv").read_text() == "x"


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


def test_predict_finds_columns_by_name(vectors):
    folder, X, _ = vectors
    fitted = run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    assert fitted.exit_code == 0, fitted.output
    rows = [f"{age},word,{mass}" for mass, age in X.tolist()]
    (folder / "other.csv").write_text("\n".join(["age,remark,mass", *rows]))
    predicted = run("predict", folder / "run", folder / "other.csv")
    assert predicted.exit_code == 0, predicted.output
    assert predicted.output == as_predicted(folder / "run" / "labels.csv")
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not JSON", "is not JSON (Expecting value: line 1 column 1 (char 0)); export the names from the report of the fit"),
        ('{"names": {}}', "does not hold what it should (Object missing required field format)"),
        ('{"format": "ddclust-names", "names": {"7": "x"}}', "names cluster 7, but the model has the clusters 0 to 2"),
        ('{"format": "ddclust-names", "names": {"0": 1}}', "does not hold what it should (Expected str, got int at names[...])"),
    ],
)  # fmt: skip
def test_wrong_names_are_refused(vectors, content, message):
    folder, _, _ = vectors
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    (folder / "names.json").write_text(content)
    result = run("predict", folder / "run", folder / "blobs.csv", "--names", folder / "names.json")
    assert result.exit_code == 2
    assert message in result.output


def test_single_images(photos, tmp_path):
    out = tmp_path / "run"
    assert run("fit", photos, "-k", 2, *QUICK, "--out", out).exit_code == 0
    fitted = {row["item"]: row for row in csv.DictReader((out / "labels.csv").read_text().splitlines())}
    one = run("predict", out, photos / "bright" / "1.png")
    assert one.exit_code == 0, one.output
    (row,) = csv.DictReader(one.output.splitlines())
    assert row == fitted["bright/1.png"] | {"item": "1.png"}
    several = run("predict", out, photos / "bright" / "1.png", photos / "dark" / "2.png")
    rows = list(csv.DictReader(several.output.splitlines()))
    assert [row["item"] for row in rows] == ["1.png", "2.png"]
    assert rows[1]["cluster"] == fitted["dark/2.png"]["cluster"]
    broken = run("predict", out, photos / "dark" / "<b>.png")
    assert (broken.exit_code, "cannot be read as an image: not an image" in broken.output) == (2, True)
    missing = run("predict", out, "none.jpg")
    assert (missing.exit_code, "There is no file 'none.jpg'" in missing.output) == (2, True)
    mixed = run("predict", out, photos / "dark" / "2.png", photos)
    assert (mixed.exit_code, "are not both image files" in mixed.output) == (2, True)
    assert "is a single image; give a folder" in run("fit", photos / "dark" / "2.png", "-k", 2).output


def test_a_text_in_quotes(tmp_path):
    (tmp_path / "docs.txt").write_text("the ship sails the sea\nfresh bread bakes\n" * 10)
    run("fit", tmp_path / "docs.txt", "-k", 2, *QUICK, "--out", tmp_path / "run")
    rows = []
    for texts in (["a ship at sea"], ["a ship at sea", "bake some bread"]):
        predicted = run("predict", tmp_path / "run", *texts)
        assert predicted.exit_code == 0, predicted.output
        rows.append(list(csv.DictReader(predicted.output.splitlines())))
    assert [row["item"] for row in rows[0]] == ["text"]
    assert [row["item"] for row in rows[1]] == ["text 1", "text 2"]
    assert rows[0][0]["cluster"] == rows[1][0]["cluster"]
    assert "There is no file, folder or data set" in run("predict", tmp_path / "run", "new.tx").output
    assert "fitted on texts" in run("predict", tmp_path / "run", "a.png").output


def test_unknown_items_are_refused(vectors):
    folder, X, _ = vectors
    run("fit", folder / "blobs.csv", "-k", 3, *QUICK, "--out", folder / "run")
    np.save(folder / "new.npy", np.array([X[0], [1e4, -1e4]]))
    usual = list(csv.DictReader(run("predict", folder / "run", folder / "new.npy").output.splitlines()))
    assert all(int(row["cluster"]) >= 0 and row["confidence"] and not row["agreement"] for row in usual)
    result = run("predict", folder / "run", folder / "new.npy", "--reject", 0.01)
    rows = list(csv.DictReader(result.output.splitlines()))
    assert (rows[1]["cluster"], rows[1]["confidence"]) == ("-1", "")
    assert "--reject" in run("predict", folder / "run", folder / "new.npy", "--reject", 1).output
