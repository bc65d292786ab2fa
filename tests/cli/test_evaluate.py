"""ddclust evaluate."""

import numpy as np

from commands import run


def test_evaluate_errors(vectors):
    folder, _, _ = vectors
    np.save(folder / "labels.npy", np.zeros(7, dtype=int))
    assert (
        "give labels of the same items" in run("evaluate", folder / "labels.npy", folder / "blobs.npz").output
    )
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


def test_short_row_of_labels_is_named(tmp_path):
    (tmp_path / "short.csv").write_text("item,cluster\na,1\nb\n")
    result = run("evaluate", tmp_path / "short.csv", "circles")
    assert "line 3 has 1 columns" in result.output


def test_labels_and_truth_are_matched_by_name(tmp_path):
    (tmp_path / "found.csv").write_text("item,cluster\na,0\nb,1\nc,1\n")
    (tmp_path / "truth.csv").write_text("item,class\nc,y\na,x\nb,y\n")
    assert "1.000  1.000" in run("evaluate", tmp_path / "found.csv", tmp_path / "truth.csv").output
    (tmp_path / "unnamed.csv").write_text("class\nx\ny\ny\n")
    assert "1.000  1.000" in run("evaluate", tmp_path / "found.csv", tmp_path / "unnamed.csv").output
    (tmp_path / "twice.csv").write_text("item,class\na,y\na,x\nb,y\nc,y\n")
    assert "not unique" in run("evaluate", tmp_path / "found.csv", tmp_path / "twice.csv").output


def test_no_class_is_known(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 1]))
    np.save(tmp_path / "truth.npy", np.array([-1, -1]))
    result = run("evaluate", tmp_path / "labels.npy", tmp_path / "truth.npy")
    assert result.exit_code == 0
    assert result.output.splitlines()[1].split() == ["clusters", "-", "-"]
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    nothing = run("evaluate", tmp_path / "labels.npy", tmp_path / "x.jsonl")
    assert nothing.exit_code == 2
    assert "holds no known classes to compare with; --column names the column" in nothing.output


def test_the_column_that_is_taken_is_named(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 0, 1, 1]))
    (tmp_path / "truth.csv").write_text("age,kind\n1,cat\n2,cat\n3,dog\n4,dog\n")
    guessed = run("evaluate", tmp_path / "labels.npy", tmp_path / "truth.csv")
    assert "Note: The known classes are the last column, 'kind'; --column names another." in guessed.output
    named = run("evaluate", tmp_path / "labels.npy", tmp_path / "truth.csv", "--column", "kind")
    assert "Note" not in named.output
    assert "1.000  1.000" in named.output


def test_confidence_is_evaluated_and_refused_items_are_left_out(tmp_path):
    (tmp_path / "found.csv").write_text("item,cluster,confidence\na,0,0.9\nb,1,0.9\nc,1,0.9\nd,-1,\n")
    (tmp_path / "truth.csv").write_text("item,class\na,x\nb,y\nc,y\nd,y\n")
    result = run("evaluate", tmp_path / "found.csv", tmp_path / "truth.csv")
    assert "Note: 1 of 4 items were refused and are left out." in result.output
    header, row = (line.split() for line in result.output.splitlines()[-2:])
    assert header == ["ACC", "NMI", "ECE"]
    assert row == ["clusters", "1.000", "1.000", "0.100"]
