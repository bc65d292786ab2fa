"""The rows of the table: which fit is chosen with and without known classes, and what is said of it."""

import numpy as np

from ddclust.compare.job import Result
from ddclust.compare.table import Fit, chosen_without_labels, row, table_row


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
