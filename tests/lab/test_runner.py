"""Making cells: their state, fits that are shared, kills and going on."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from ddclust.choosing.metrics import clustering_accuracy
from ddclust.datasets import load
from ddclust.storage.atomic import locked
from lab import drawing, studies
from lab.cells import Cell, Fits, Picture, Reference, Run, Study
from lab.given import RandomLinks
from lab.parameters import constant, loss, model_of, snapshots
from lab.paths import Place
from lab.runner import BusyError, run_cell, state

SMALL = {"n_init": 3, "n_vote": 3, "max_iter": 60}
LONG = {"n_init": 2, "n_vote": 2, "max_iter": 500}


def ring(work=None, name="ring"):
    return Cell("table2", "circles", name, 2, work or Fits(SMALL, repetitions=2), "quick")


def make(cell, place):
    return run_cell(cell, place, n_jobs=1)


def test_a_cell_leaves_a_result_that_can_be_checked(tmp_path):
    cell, place = ring(), Place(tmp_path)
    assert state(cell, place) == "waiting"
    make(cell, place)
    assert state(cell, place) == "done"
    result = json.loads(place.result(cell).read_text())

    circles = load("circles")
    for number, repetition in enumerate(result["repetitions"]):
        model = model_of(SMALL, 2, random_state=number, n_jobs=1).fit(circles.data)
        expected = [clustering_accuracy(circles.target, labels) for labels in model.member_labels_]
        by_run = [repetition["runs"][run]["ACC"] for run in model.voters_]
        assert by_run == pytest.approx(expected, abs=1e-4)
        assert repetition["chosen"]["ACC"] == pytest.approx(expected[0], abs=1e-4)
        lowest = min(repetition["runs"], key=lambda run: (run["clusters_used"] < 2, run["loss"]))
        assert repetition["chosen"]["ACC"] == lowest["ACC"]
        vote = clustering_accuracy(circles.target, model.labels_)
        assert repetition["vote"]["ACC"] == pytest.approx(vote, abs=1e-4)
    chosen = [repetition["chosen"]["ACC"] for repetition in result["repetitions"]]
    assert result["summary"]["chosen"]["ACC"]["mean"] == pytest.approx(np.mean(chosen), abs=1e-4)
    assert result["summary"]["chosen"]["ACC"]["sd"] == pytest.approx(np.std(chosen, ddof=1), abs=1e-4)
    assert result["summary"]["runs"]["n"] == 6
    assert len(result["data"]["sha256"]) == 64
    assert result["data"]["classes"] == np.bincount(circles.target).tolist()
    assert result["provenance"]["versions"]["torch"]
    assert result["provenance"]["machine"]["cores"] == os.cpu_count()
    assert result["command"] == "python -m lab run table2 --data circles --cell ring --budget quick"


def test_another_protocol_is_noticed(tmp_path):
    cell, place = ring(Fits({"n_init": 1, "max_iter": 5})), Place(tmp_path)
    make(cell, place)
    longer = replace(cell, work=Fits({"n_init": 1, "max_iter": 6}))
    assert state(longer, place) == "outdated"
    make(longer, place)
    assert state(longer, place) == "done"
    assert state(cell, place) == "outdated"


def test_the_same_fits_are_made_once(tmp_path):
    place, fits = Place(tmp_path), Fits(SMALL)
    make(ring(fits), place)
    models = list(place.work("fits").glob("*/*/model"))
    written = [model.stat().st_mtime_ns for model in models]
    drawn = make(Cell("figures", "circles", "drawn", 2, Picture(drawing.ring_and_disc, fits), "quick"), place)
    make(replace(ring(Fits(SMALL, smooth=9), "smooth"), experiment="beyond"), place)
    assert list(place.work("fits").glob("*/*/model")) == models
    assert [model.stat().st_mtime_ns for model in models] == written
    assert (tmp_path / drawn["picture"]).read_bytes().startswith(b"\x89PNG")


def test_smooth_cells_score_the_same_runs_otherwise(tmp_path):
    place = Place(tmp_path)
    results = [make(ring(Fits(SMALL, smooth=smooth), f"smooth-{smooth}"), place) for smooth in (None, 9)]
    losses, scored = (
        [[run[name] for run in result["repetitions"][0]["runs"]] for result in results]
        for name in ("loss", "ACC")
    )
    assert losses[0] == losses[1]
    circles = load("circles")
    model = model_of(SMALL, 2, random_state=0, n_jobs=1).fit(circles.data)
    members = model.smooth_member_probabilities(circles.data, 9)
    by_run = dict(zip(model.voters_, members, strict=True))
    expected = [clustering_accuracy(circles.target, by_run[run].argmax(axis=1)) for run in range(3)]
    assert scored[1] == pytest.approx(expected, abs=1e-4)


def test_two_processes_do_not_make_the_same_cell(tmp_path):
    cell, place = ring(Fits({"n_init": 1, "max_iter": 5})), Place(tmp_path)
    folder = place.work("quick/table2/circles/ring")
    folder.mkdir(parents=True)
    with locked(folder / "lock"), pytest.raises(BusyError, match="table2/circles/ring"):
        make(cell, place)
    make(cell, place)


SCRIPT = f"""
import sys
from pathlib import Path
from lab.cells import Cell, Fits
from lab.paths import Place
from lab.runner import run_cell
cell = Cell("table2", "circles", "ring", 2, Fits({LONG}), "quick")
run_cell(cell, Place(Path(sys.argv[1])), n_jobs=1)
"""


@pytest.mark.slow
def test_a_killed_cell_goes_on_and_ends_the_same(tmp_path):
    killed, undisturbed = Place(tmp_path / "killed"), Place(tmp_path / "undisturbed")
    cell = ring(Fits(LONG))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, killed.folder], start_new_session=True, env=environment
    )
    deadline = time.monotonic() + 200
    while not list(killed.work("fits").glob("*/0/checkpoints/run-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert state(cell, killed) == "begun"
    again, once = make(cell, killed), make(cell, undisturbed)
    losses = [[run["loss"] for run in result["repetitions"][0]["runs"]] for result in (again, once)]
    assert losses[0] == losses[1]
    assert again["summary"] == once["summary"]


def test_a_reference_method_s_cell(tmp_path):
    cell, place = ring(Reference("k-means", runs=2, choices=1)), Place(tmp_path)
    result = make(cell, place)
    row = result["rows"][0]
    assert (row["method"], row["fits"]) == ("k-means", 2)
    assert row["label_free"]["ACC"] <= row["best"]["ACC"]
    assert state(cell, place) == "done"


def test_a_cell_with_links(tmp_path):
    params = {"n_init": 1, "max_iter": 10, "learning_rate": constant(1e-3)}
    cell = Cell("beyond", "digits", "links-500", 10, Fits(params, given=RandomLinks(500)), "quick")
    result = make(cell, Place(tmp_path))
    assert result["protocol"]["given"] == {"RandomLinks": {"n_pairs": 500}}
    terms = set(result["repetitions"][0]["runs"][0]["terms"])
    assert {"divergence", "must_link", "cannot_link"} <= terms


def test_weights_of_0_switch_terms_off(tmp_path):
    params = {"n_init": 1, "max_iter": 5, "loss": loss(weights={"divergence": 0.0})}
    record = make(ring(Fits(params)), Place(tmp_path))["repetitions"][0]["runs"][0]
    assert record["terms"]["divergence"] == 0
    assert record["terms"]["corners"] > 0


def test_a_single_run_leaves_its_curve_and_its_labels(tmp_path):
    params = {"n_init": 1, "max_iter": 30, "callbacks": snapshots(range(4))}
    run = Run("short", params, seed=3)
    cell, place = Cell("pool", "circles", "short/003", 2, run, "paper"), Place(tmp_path)
    result = make(cell, place)
    assert result["protocol"]["precision"] == "float32"
    assert [point["epoch"] for point in result["curve"]] == [0, 1, 2, 3]
    assert result["run"]["n_iter"] == 30
    with np.load(place.work("paper/pool/circles/short/003") / "labels.npz") as kept:
        accuracy = clustering_accuracy(load("circles").target, kept["labels"])
    assert result["run"]["ACC"] == pytest.approx(accuracy, abs=1e-4)
    with pytest.raises(ValueError, match="bfloat16"):
        make(replace(cell, work=replace(run, precision="bfloat16")), place)


def test_a_study_of_restarts(tmp_path):
    fits = Fits({"n_init": 4, "n_vote": 4, "max_iter": 40})
    halving = Fits({**fits.params, "selection": {"Selection": {"criterion": "loss", "halving": True}}})
    study = Study(studies.replays, halving, {"group": 2, "drawn": 5})
    facts = make(Cell("restarts", "circles", "replays", 2, study, "quick"), Place(tmp_path))["facts"]
    assert len(facts["runs"]) == 4
    best = [min(facts["runs"][i : i + 2], key=lambda run: run["loss"])["ACC"] for i in (0, 2)]
    lowest = facts["disjoint"]["choices"]["lowest loss"]["ACC"]["mean"]
    assert lowest == pytest.approx(np.mean(best), abs=1e-4)
    assert facts["drawn"]["groups"] == 5
    assert 0 < facts["drawn"]["iterations saved by halving"]["mean"] < 1


def test_a_study_of_selection(tmp_path):
    study = Study(
        studies.quantities, Fits({"n_init": 4, "n_vote": 4, "max_iter": 40}), {"group": 2, "groups": 9}
    )
    facts = make(Cell("selection", "circles", "quantities", 2, study, "quick"), Place(tmp_path))["facts"]
    assert len(facts["runs"]) + facts["runs_with_empty_clusters"] == 4
    assert {"loss", "divergence", "agreement", "size entropy"} <= set(facts["quantities"])
    best = facts["quantities"]["ACC itself, for comparison"]["ACC of the choice"]["mean"]
    assert all(row["ACC of the choice"]["mean"] <= best for row in facts["quantities"].values())


def test_a_table_of_scikit_learn(tmp_path):
    study = Study(studies.k_means, options={"n_init": 2, "seeds": 2})
    result = make(Cell("defaults", "iris", "k-means", 3, study, "quick"), Place(tmp_path))
    assert result["data"]["classes"] == [50, 50, 50]
    assert all(0.7 < score["ACC"] < 1 for score in result["facts"]["scores"])
