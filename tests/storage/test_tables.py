"""CSV: every name survives, and no spreadsheet finds a formula in it."""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import QUICK, run
from ddclust.choosing.consensus import Vote
from ddclust.data.readers.links import ItemPlaces
from ddclust.datasets import read_labels
from ddclust.results import labels_table
from ddclust.storage.tables import csv_text, name_in

# Of the characters that matter, and of any others.
NAMES = st.text(st.sampled_from("=+-@'\"\t\r\n;, a1.e\uff1d\uff0d")) | st.text(
    st.characters(exclude_categories=["Cs"])
)
FORMULA = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", re.IGNORECASE)


@settings(deadline=None)
@given(names=st.lists(NAMES, min_size=2))
def test_every_name_survives(names, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables", numbered=True) / "labels.csv"
    votes = Vote(np.arange(len(names)), np.ones(len(names)))
    path.write_bytes(labels_table(names, votes, np.ones((len(names), 1))).encode())
    assert read_labels(path).item_names == names


@settings(deadline=None)
@given(rows=st.lists(st.tuples(NAMES, st.integers(), NAMES)))
@example(rows=[("-1", 0, "")])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_is_a_formula_wherever_the_table_is_opened(rows, delimiter):
    text = csv_text(("item", "cluster", "name"), rows)
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        for cell in row:
            assert not FORMULA.match(cell) or NUMBER.fullmatch(cell), text


@settings(deadline=None)
@given(name=NAMES)
def test_a_table_is_read_by_others_as_it_is(name):
    cells = list(csv.reader(io.StringIO(csv_text(("item", "n"), [(name, 0)]), newline="")))
    assert len(cells) == 2
    assert name_in(cells[1][0]) == name


def test_numbers_stay_numbers():
    text = csv_text(("feature", "influence", "cluster"), [("@x", "-1.5e-05", -1), ("1", "+0.25", 0)])
    assert text == "feature,influence,cluster\n'@x,-1.5e-05,-1\n1,+0.25,0\n"


def test_items_are_found_by_their_names_and_as_labels_csv_has_them():
    places = ItemPlaces(["=cmd()", "'=cmd()", "plain"])
    assert [places[name] for name in ("=cmd()", "'=cmd()", "''=cmd()", "plain")] == [0, 1, 1, 2]


def test_the_command_line_evaluates_names_that_are_formulas(tmp_path):
    names = [f"=cmd|'/C calc'!A{i}" for i in range(40)]
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "a", "b", "class"), *((n, i % 2, i, i % 2) for i, n in enumerate(names))]
        )
    done = run("fit", tmp_path / "x.csv", "-k", "2", *QUICK, "--truth", "class", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert all(line.startswith("'=cmd|'/C calc'!A") for line in lines[1:])
    # The items are matched by their names, so another order does not matter.
    rows = (tmp_path / "x.csv").read_text().splitlines()
    (tmp_path / "truth.csv").write_text("\n".join([rows[0], *reversed(rows[1:])]))
    scores = [
        run("evaluate", tmp_path / "out", tmp_path / name, "--column", "class").output
        for name in ("x.csv", "truth.csv")
    ]
    assert "clusters" in scores[0]
    assert scores[0] == scores[1]
