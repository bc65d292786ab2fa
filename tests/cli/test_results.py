"""The result folder of a fit."""

import json

import numpy as np
import pytest

from ddclust.choosing.consensus import Vote
from ddclust.results import (
    ResultFolderError,
    clustering_key,
    data_argument,
    influences_table,
    labels_table,
    open_model,
    read_names,
    refuse_other_data,
)
from ddclust.show.explain import Explanation
from helpers import quick


def test_the_table_of_labels():
    vote = Vote(np.array([1, 0]), np.array([1.0, 0.5]))
    shares = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert labels_table(["a", "b, c"], vote, shares) == (
        'item,cluster,confidence,agreement\na,1,0.7500,1.0000\n"b, c",0,0.5000,0.5000\n'
    )
    named = labels_table(["a", "b"], vote, shares, {1: "ships"}).splitlines()
    assert named[1:] == ["a,1,0.7500,1.0000,ships", "b,0,0.5000,0.5000,"]


def test_cells_are_blank_where_nothing_is_known():
    vote = Vote(np.array([-1, 0]), np.array([np.nan, np.nan]))
    table = labels_table(["a", "b"], vote, np.array([[0.25, 0.75], [0.5, 0.5]]), {0: "ships"})
    assert table.splitlines()[1:] == ["a,-1,,,", "b,0,0.5000,,ships"]


def test_the_table_of_influences():
    words = np.array(["oil", "rain"], dtype=object)
    found = Explanation(np.array([[0.5, -2.0], [1.0, 0.0]], dtype=np.float32), np.array([1, 0]), words)
    assert influences_table(["a", "b"], found) == (
        "item,cluster,feature,influence\na,1,rain,-2\na,1,oil,0.5\nb,0,oil,1\n"
    )


def test_data_is_looked_for_here_then_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = {"data": {"argument": "x.csv", "path": "/there/x.csv"}}
    assert data_argument(run) == "/there/x.csv"
    (tmp_path / "x.csv").write_text("1\n")
    assert data_argument(run) == "x.csv"
    assert data_argument({"data": {"argument": "digits", "path": None}}) == "digits"


def test_other_data(tmp_path):
    run = {"data": {"sha256": "abc"}}
    refuse_other_data(run, "abc", "x.csv", tmp_path)
    with pytest.raises(ResultFolderError, match="'x.csv' is not the data of the fit in"):
        refuse_other_data(run, "abd", "x.csv", tmp_path)


def test_models_open_from_result_and_model_folders(tmp_path, blobs):
    model = quick(3, max_iter=2).fit(blobs[0])
    model.save(tmp_path / "run" / "model")
    for folder in (tmp_path / "run", tmp_path / "run" / "model"):
        assert np.array_equal(open_model(folder).labels_, model.labels_)


def test_names_belong_to_one_clustering(tmp_path):
    labels = np.array([0, 1, 1])
    content = {"format": "ddclust-names", "names": {"1": "ships"}, "key": clustering_key(labels)}
    (tmp_path / "names.json").write_text(json.dumps(content))
    assert read_names(tmp_path / "names.json", labels, 2) == {1: "ships"}
    with pytest.raises(ResultFolderError, match="names the clusters of another fit"):
        read_names(tmp_path / "names.json", labels[::-1], 2)
