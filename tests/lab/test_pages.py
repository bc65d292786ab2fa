"""Pages are functions of the files, and the command line makes both."""

import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from lab import bench, printed
from lab.cells import Cell, Fits, Reference
from lab.cli import main
from lab.experiments import EXPERIMENTS
from lab.pages import results as _results
from lab.pages import write_pages
from lab.paths import Place
from lab.runner import read_result, run_cell

SMALL = {"n_init": 3, "n_vote": 3, "max_iter": 60}


def test_committed_pages_are_those_of_the_committed_results(tmp_path):
    checkout, place = Place(), Place(tmp_path)
    for folder in ("lab/results", "lab/figures"):
        shutil.copytree(checkout.folder / folder, tmp_path / folder)
    (tmp_path / "docs").mkdir()
    written = write_pages(place)
    assert len(written) == 5
    for file in written:
        committed = checkout.folder / file.relative_to(tmp_path)
        assert file.read_text() == committed.read_text(), f"python -m lab page would change {committed}"


def test_the_page_shows_both_figures_and_links_to_every_file(tmp_path, monkeypatch):
    place = Place(tmp_path)
    ddc = Cell("table1", "circles", "ddc", 2, Fits(SMALL), "quick")
    cells = [ddc, replace(ddc, name="k-means", work=Reference("k-means", 1, 1))]
    monkeypatch.setitem(EXPERIMENTS, "table1", lambda budget: cells if budget == "quick" else [])
    monkeypatch.setitem(_results.CLUSTERS, "circles", 2)
    monkeypatch.setitem(printed.TABLE_1, "circles", {"DDC": printed.Printed(0.83, 86.58)})
    of_ddc, of_k_means = (run_cell(cell, place, n_jobs=1) for cell in cells)
    write_pages(place)
    text = place.results_page.read_text()
    chosen = of_ddc["repetitions"][0]["chosen"]
    assert f"| DDC | 0.83, 86.58 | {chosen['NMI']:.3f}, {100 * chosen['ACC']:.1f} |" in text
    assert f"| DDC-VOTE | - | {of_ddc['repetitions'][0]['vote']['NMI']:.3f}," in text
    assert f"{100 * of_k_means['rows'][0]['best']['ACC']:.1f}" in text
    for cell in cells:
        assert f"({place.relative(place.result(cell))})" in text


def test_benchmarks_leave_a_file_and_a_table(tmp_path, monkeypatch):
    figure = {"what": "one / two", "target": "< 1", "median": 0.5, "quartiles": [0.4, 0.6], "repeats": 3}
    monkeypatch.setitem(sys.modules, "lab.benchmarks.halves", SimpleNamespace(figures=lambda: [figure]))
    monkeypatch.setitem(sys.modules, "lab.benchmarks.skipped", SimpleNamespace(figures=lambda: None))
    place = Place(tmp_path)
    for name in ("halves", "skipped"):
        bench.run_here(name, place)
    result = read_result(place.benchmark("halves"))
    assert result["command"] == "python -m lab bench halves"
    assert result["figures"] == [figure]
    assert not place.benchmark("skipped").exists()
    write_pages(place)
    assert "| one / two | 0.5 (0.4 to 0.6) | < 1 |" in place.benchmarks_page.read_text()


def test_command_line(tmp_path):
    def lab(*arguments):
        return CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)])

    named = ("defaults", "--data", "iris", "--cell", "k-means")
    before = lab("status", *named)
    assert before.exit_code == 0
    assert "waiting" in before.output
    made = lab("run", *named, "-q")
    assert made.exit_code == 0, made.output
    assert "defaults/iris/k-means" in made.output
    assert "| iris | 150 x 4 |" in (tmp_path / "docs" / "defaults.md").read_text()
    assert "# Results" in (tmp_path / "RESULTS.md").read_text()
    again = lab("run", *named, "-q")
    assert "k-means: done" in again.output
    assert "done" in lab("status", *named).output


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("run", "table7"), "experiment"),
        (("run", "table1", "--data", "x"), "data set"),
        (("status", "table1", "--cell", "x"), "cell"),
        (("bench", "x"), "benchmark"),
    ],
)
def test_unknown_names_are_refused(arguments, word):
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert f"There is no {word}" in refused.output
