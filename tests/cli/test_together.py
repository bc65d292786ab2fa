"""Several commands, one after the other, as a user runs them."""

import csv
import json

import pytest

from commands import QUICK, run
from ddclust import DDC


@pytest.mark.slow
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
        "--jobs",
        1,
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
        "names.json",
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
    expected = [{**row, "agreement": ""} for row in rows]  # only the best run is kept as a network
    assert list(csv.DictReader(predicted.output.splitlines())) == expected
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


def test_table_with_names_classes_and_texts(tmp_path):
    rows = [f"n{i},{i % 2},{i},{'ship' if i % 2 else 'bread'}" for i in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(["id,kind,size,words", *rows]))
    plain = run("fit", tmp_path / "table.csv", "-k", 2, *QUICK, "--out", tmp_path / "plain")
    assert plain.exit_code == 0, plain.output
    assert "2 levels: bread, ship" in plain.output
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


def test_folder_of_images(photos, tmp_path):
    out = tmp_path / "run"
    fitted = run("fit", photos, "-k", 2, *QUICK, "--out", out, "--size", 16)
    assert fitted.exit_code == 0, fitted.output
    assert "12 items of 16 x 16 x 3 values" in fitted.output
    assert "Warning: 1 file cannot be read and is skipped: dark/<b>.png: not an image" in fitted.output
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
    assert (
        "does not name all items that were clustered: 'dark/new.png' is missing, for example"
        in unknown.output
    )
