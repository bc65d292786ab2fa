"""The rows of the table: which fit is chosen with and without known classes, and what is said of it."""

import json

import numpy as np
import pytest

from ddclust.compare.comparison import COMPARISON
from ddclust.compare.job import Result
from ddclust.compare.table import (
    COMPARISON_FILE,
    ComparisonError,
    Fit,
    chosen_without_labels,
    row,
    table_row,
    write_tables,
)
from ddclust.storage.workspace import Workspace
from helpers import edit_json


def fit(labels, objective=None, **params):
    return Fit(params, Result(seconds=1.0, objective=objective, peak_mb=2.0), np.array(labels))


def test_of_equal_parameters_the_lowest_objective_is_chosen():
    fits = [fit([0, 1, 1], 3.0), fit([0, 0, 1], 1.0), fit([1, 0, 1], 2.0)]
    assert chosen_without_labels(fits, 2) is fits[1]


def test_of_different_parameters_the_one_that_the_others_agree_with_is_chosen():
    fits = [
        fit([0, 1, 0, 1, 0, 1], a=1),
        fit([0, 0, 0, 1, 1, 1], a=2),
        fit([1, 1, 1, 0, 0, 0], a=3),
    ]
    assert chosen_without_labels(fits, 2) is fits[1]


def test_empty_clusters_come_last():
    fits = [fit([0, 0, 0], 0.0, a=1), fit([0, 0, 0], 0.0, a=2), fit([0, 0, 1], 9.0, a=3)]
    assert chosen_without_labels(fits, 2) is fits[2]


def test_row_gives_the_label_free_choice_and_the_best():
    truth = np.array([0, 0, 1, 1])
    fits = [fit([0, 1, 0, 1], 1.0), fit([1, 1, 0, 0], 2.0)]
    failures = [{"params": {}, "error": "It took more than 1 minutes."}]
    entry = row("method", fits, failures, fits[0], truth)
    assert entry["label_free"]["ACC"] == 0.5
    assert entry["best"]["ACC"] == 1.0
    assert (entry["ACC_mean"], entry["fits"], len(entry["failures"])) == (0.75, 2, 1)
    assert table_row(entry)[3:7] == ("1.000", "1.000", "2", "1")


def test_items_of_unknown_class_do_not_count():
    fits = [fit([1, 1, 0, 1, 0])]
    entry = row("method", fits, [], fits[0], np.array([0, 0, 1, -1, -1]))
    assert entry["label_free"]["ACC"] == 1.0


def test_without_known_classes_nothing_is_scored():
    fits = [fit([0, 1])]
    entry = row("method", fits, [], fits[0], None)
    assert entry.keys() == {
        "method",
        "fits",
        "failures",
        "warnings",
        "seconds",
        "total_seconds",
        "peak_mb",
        "label_free",
    }
    assert entry["label_free"] == {"params": {}, "seconds": 1.0, "clusters_used": 2}


def test_labels_that_were_chosen_before_are_read_with_their_digest(tmp_path):
    entry = {"method": "SEC", "fits": 1, "failures": [], "warnings": [], "label_free": {}}
    write_tables(tmp_path, {"rows": []}, [entry], {"SEC": np.array([0, 1])}, None)
    before = json.loads((tmp_path / COMPARISON_FILE).read_text())
    write_tables(tmp_path, before, [], {}, None)
    np.save(tmp_path / "labels" / "SEC.npy", np.array([1, 1]))
    with pytest.raises(ComparisonError, match=r"SEC\.npy' is damaged or missing; compare again with SEC"):
        write_tables(tmp_path, before, [], {}, None)
    (tmp_path / "labels" / "SEC.npy").unlink()
    with pytest.raises(ComparisonError, match=r"SEC\.npy' is damaged or missing; compare again with SEC"):
        write_tables(tmp_path, before, [], {}, None)


@pytest.mark.parametrize(
    "rows", [5, [5], [{"method": "SEC"}], [{"method": 1, "fits": 1, "failures": [], "warnings": []}]]
)
def test_rows_of_other_types_are_refused(tmp_path, rows):
    workspace = Workspace(tmp_path, COMPARISON)
    with workspace.claimed({}, rows=[]):
        assert workspace.read()["rows"] == []
    edit_json(tmp_path / COMPARISON_FILE, rows=rows)
    with pytest.raises(
        ComparisonError, match=r"comparison\.json' does not hold what it should .* delete the folder"
    ):
        workspace.read()
