"""Data files of every kind, good and bad."""

import os

import numpy as np
import pytest

from commands import QUICK, as_predicted, run
from ddclust import DDC
from ddclust.datasets import load


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
        ("absent.npy", "There is no file, folder or data set"),
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
        ("inf.csv", "holds infinite numbers: column '2' in line 8"),
        ("cut.npy", "cannot be read"),
        ("lies.npy", "cannot be read"),
        ("lies.npz", "cannot be read"),
        ("many.npz", "holds the arrays a, b; call the one to cluster X"),
        ("short.npz", "one label for each of the 20 items"),
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


def test_a_file_with_the_name_of_a_data_set(tmp_path, monkeypatch):
    (tmp_path / "circles").mkdir()
    monkeypatch.chdir(tmp_path)
    result = run("fit", "circles", "-k", 2, *QUICK, "--out", "run")
    assert "Note: 'circles' is the named data set, not the file; for that say './circles'." in result.output


def test_names_of_files_that_are_no_utf8(photos, tmp_path):
    os.rename(photos / "dark" / "0.png", os.fsencode(photos / "dark") + b"/\xff\xe9.png")
    fitted = run("fit", photos, "-k", 2, *QUICK, "--out", tmp_path / "run")
    assert fitted.exit_code == 0, fitted.output
    assert "dark/\\udcff\\udce9.png," in (tmp_path / "run" / "labels.csv").read_text()


def test_pairs_of_items_with_one_name(tmp_path):
    from ddclust.datasets import DataError, read_pairs

    (tmp_path / "pairs.csv").write_text("first,second\na,b\nc,a\n")
    assert read_pairs(tmp_path / "pairs.csv", ["a", "b", "c"]).tolist() == [[0, 1], [2, 0]]
    with pytest.raises(DataError, match="line 2 names 'a', but several items are called that"):
        read_pairs(tmp_path / "pairs.csv", ["a", "b", "c", "a"])


def test_all_columns_with_infinite_numbers_are_named_at_once(tmp_path):
    rows = ["n1,Oslo,1,,3,9", "n2,Bergen,-inf,5,inf,8", "n3,Bodo,,6,4,7", "n4,Oslo,,1,2,6"]
    (tmp_path / "people.csv").write_text("\n".join(["id,city,age,income,height,weight", *rows]))
    result = run("fit", tmp_path / "people.csv", "-k", 2)
    assert result.exit_code == 2
    message = result.output.splitlines()[-1]
    assert "holds infinite numbers: column 'age' in line 3; 'height' in line 3." in message
    assert "leave the column out (--drop)" in message


def test_columns_are_chosen(tmp_path):
    rows = [f"n{i},Oslo,{i % 2},{i},{i % 3}" for i in range(20)]
    (tmp_path / "people.csv").write_text("\n".join(["id,city,age,income,height", *rows]))
    for choice, expected in [
        (["--drop", "city,age"], ["income", "height"]),
        (["--columns", "height,age"], ["height", "age"]),
        (["--columns", "height, age", "--drop", "age"], ["height"]),
    ]:
        out = tmp_path / "-".join(expected)
        result = run("fit", tmp_path / "people.csv", "-k", 2, *choice, *QUICK, "--out", out)
        assert result.exit_code == 0, result.output
        assert DDC.load(out).feature_names_in_.tolist() == expected
        predicted = run("predict", out, tmp_path / "people.csv").output
        assert predicted.endswith(as_predicted(out / "labels.csv"))
        assert run("report", out).exit_code == 0
    wrong = run("fit", tmp_path / "people.csv", "-k", 2, "--drop", "town")
    assert "has no column 'town'; its columns are" in wrong.output
    refused = run("fit", "digits", "-k", 2, "--columns", "a")
    assert "does not apply to the named data set" in refused.output


def test_a_name_that_is_nearly_right_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for given, meant in (("photo", "photos"), ("digit", "digits")):
        assert f"did you mean {meant!r}?" in run("fit", given, "-k", 2).output
