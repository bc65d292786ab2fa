"""ddclust explain; tests/show has more."""

import csv

from commands import QUICK, run


def test_the_data_of_the_fit_is_explained_by_default(vectors, monkeypatch):
    folder, _, _ = vectors
    monkeypatch.chdir(folder)
    assert run("fit", "blobs.csv", "-k", 3, *QUICK, "--out", "run").exit_code == 0
    result = run("explain", "run")
    assert result.exit_code == 0, result.output
    assert result.output == "run-explanation/explanation.csv: the most influential features of 15 items\n"
    rows = list(csv.DictReader((folder / "run-explanation" / "explanation.csv").read_text().splitlines()))
    assert {row["feature"] for row in rows} == {"mass", "age"}
    assert len({row["item"] for row in rows}) <= 15


def test_the_text_column_of_the_fit_is_remembered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"n{i},{'a ship sails' if i % 2 else 'bread'}" for i in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(["id,words", *rows]))
    assert run("fit", "table.csv", "-k", 2, *QUICK, "--text", "words", "--out", "run").exit_code == 0
    for data in ([], ["table.csv"]):
        result = run("explain", "run", *data, "--items", "n0,n1")
        assert result.exit_code == 0, result.output
