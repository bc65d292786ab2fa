"""The runner of experiments: cells, their state, killing and going on, the page and the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.utils import Bunch

from ddclust import DDC, DDCLoss
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.cli.main import main
from ddclust.datasets import load
from ddclust.networks import ConvNet
from ddclust.objective.augment import Affine
from lab import (
    BUDGETS,
    EXPERIMENTS,
    BusyError,
    Cell,
    Fits,
    Place,
    Rival,
    declared,
    figures,
    page,
    paper,
    run_cell,
    state,
)
from lab import declared as declarations
from lab.beyond import Halves, RandomLinks, TitlesAndBodies
from lab.cells import Picture

SMALL = {"n_init": 3, "n_vote": 3, "max_iter": 60, "patience": None, "n_jobs": 1}


def ring(work=None, name="ring"):
    return Cell("table2", "circles", name, 2, work or Fits(SMALL, repetitions=2), "quick")


def test_every_experiment_declares_cells_of_different_names():
    for budget in BUDGETS:
        cells = [cell for name in EXPERIMENTS for cell in declared(name, budget)]
        assert len({cell.key for cell in cells}) == len(cells) > 60
        assert all(cell.protocol() == json.loads(json.dumps(cell.protocol())) for cell in cells)


def test_table1_has_every_method_on_every_data_set_and_the_paper_s_size():
    cells = declared("table1", "paper")
    methods = {"ddc", "k-means", "sec", "ldmgi", "dec", "itc-parzen", "itc-knn"}
    for data in ("mnist", "seals-3", "seals-2", "reuters", "agnews", "rcv1-subset"):
        assert {cell.name for cell in cells if cell.data == data} == methods
    ddc = next(cell for cell in cells if cell.name == "ddc").protocol()
    assert (ddc["params"]["n_init"], ddc["params"]["max_iter"]) == (20, 70_000)
    assert not ddc["params"]["early_elimination"]


def test_table2_has_the_seven_subsets():
    losses = [
        cell.protocol()["params"]["loss"] for cell in declared("table2", "paper") if cell.data == "mnist"
    ]
    assert len({tuple(loss["DDCLoss"]["terms"]) for loss in losses}) == 7


def test_a_cell_leaves_a_result_that_can_be_checked(tmp_path):
    cell, place = ring(), Place(tmp_path)
    assert state(cell, place) == "waiting"
    run_cell(cell, place)
    assert state(cell, place) == "done"
    result = json.loads(place.result(cell).read_text())

    circles = load("circles")
    for number, repetition in enumerate(result["repetitions"]):
        model = DDC(2, augment=None, **SMALL, random_state=number).fit(circles.data)
        expected = [clustering_accuracy(circles.target, labels) for labels in model.member_labels_]
        by_run = [repetition["runs"][run]["ACC"] for run in model.voters_]
        assert by_run == pytest.approx(expected, abs=1e-4)
        assert repetition["chosen"]["ACC"] == pytest.approx(expected[0], abs=1e-4)
        lowest = min(repetition["runs"], key=lambda run: (run["clusters_used"] < 2, run["loss"]))
        assert repetition["chosen"]["ACC"] == lowest["ACC"]
        assert repetition["vote"]["ACC"] == pytest.approx(
            clustering_accuracy(circles.target, model.labels_), abs=1e-4
        )
    chosen = [repetition["chosen"]["ACC"] for repetition in result["repetitions"]]
    assert result["summary"]["chosen"]["ACC"]["mean"] == pytest.approx(np.mean(chosen), abs=1e-4)
    assert result["summary"]["chosen"]["ACC"]["sd"] == pytest.approx(np.std(chosen, ddof=1), abs=1e-4)
    assert result["summary"]["runs"]["n"] == 6
    assert len(result["data"]["sha256"]) == 64
    assert result["data"]["classes"] == np.bincount(circles.target).tolist()
    assert result["provenance"]["versions"]["torch"]
    assert result["provenance"]["machine"]["cores"] == os.cpu_count()
    assert result["command"] == "ddclust reproduce table2 --data circles --cell ring --budget quick"


def test_another_protocol_is_noticed(tmp_path):
    cell, place = ring(), Place(tmp_path)
    run_cell(cell, place)
    longer = replace(cell, work=Fits(SMALL | {"max_iter": 80}, repetitions=2))
    assert state(longer, place) == "outdated"
    run_cell(longer, place)
    assert state(longer, place) == "done"
    assert state(cell, place) == "outdated"


def test_the_same_fits_are_made_once(tmp_path):
    place = Place(tmp_path)
    fits = Fits(SMALL)
    run_cell(ring(fits), place)
    models = list(tmp_path.glob("experiments/work/fits/*/*/model"))
    written = [model.stat().st_mtime_ns for model in models]
    result = run_cell(
        Cell("figures", "circles", "drawn", 2, Picture(figures.ring_and_disc, fits), "quick"), place
    )
    assert list(tmp_path.glob("experiments/work/fits/*/*/model")) == models
    assert [model.stat().st_mtime_ns for model in models] == written
    assert (tmp_path / result["picture"]).read_bytes().startswith(b"\x89PNG")


def test_two_processes_do_not_make_the_same_cell(tmp_path):
    from ddclust.storage.atomic import locked

    cell, place = ring(), Place(tmp_path)
    folder = place.work("quick/table2/circles/ring")
    folder.mkdir(parents=True)
    with locked(folder / "lock"), pytest.raises(BusyError, match="table2/circles/ring"):
        run_cell(cell, place)
    run_cell(cell, place)


LONG = {"n_init": 2, "n_vote": 2, "max_iter": 1500, "patience": None, "n_jobs": 1}
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_experiments import LONG, ring
from lab import Fits, Place, run_cell
run_cell(ring(Fits(LONG)), Place(Path(sys.argv[1])))
"""


def test_a_killed_cell_goes_on_and_ends_the_same(tmp_path):
    killed, undisturbed = Place(tmp_path / "killed"), Place(tmp_path / "undisturbed")
    cell = ring(Fits(LONG))
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, killed.folder, os.path.dirname(__file__)], start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(killed.folder.glob("experiments/work/fits/*/0/checkpoints/run-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert state(cell, killed) == "begun"
    again, once = run_cell(cell, killed), run_cell(cell, undisturbed)
    losses = [[run["loss"] for run in result["repetitions"][0]["runs"]] for result in (again, once)]
    assert losses[0] == losses[1]
    assert again["summary"] == once["summary"]


def test_a_rival_s_cell(tmp_path):
    cell, place = ring(Rival("k-means", runs=3, choices=1)), Place(tmp_path)
    result = run_cell(cell, place)
    row = result["rows"][0]
    assert (row["method"], row["fits"]) == ("k-means", 3)
    assert row["label_free"]["ACC"] <= row["best"]["ACC"]
    assert state(cell, place) == "done"


def test_the_page_shows_both_figures_and_links_to_every_file(tmp_path, monkeypatch):
    place = Place(tmp_path)
    cells = [
        replace(ring(Fits(SMALL), "ddc"), experiment="table1", data="circles"),
        replace(ring(Rival("k-means", 2, 1), "k-means"), experiment="table1"),
    ]
    monkeypatch.setitem(EXPERIMENTS, "table1", lambda budget: cells if budget == "quick" else [])
    monkeypatch.setitem(page.CLUSTERS, "circles", 2)
    monkeypatch.setitem(paper.TABLE_1, "circles", {"DDC": paper.Printed(0.83, 86.58)})
    results = [run_cell(cell, place) for cell in cells]
    page.write_page(place)
    page = place.page.read_text()
    ddc, k_means = results
    chosen = ddc["repetitions"][0]["chosen"]
    assert f"| DDC | 0.83, 86.58 | {chosen['NMI']:.3f}, {100 * chosen['ACC']:.1f} |" in page
    assert f"| DDC-VOTE | - | {ddc['repetitions'][0]['vote']['NMI']:.3f}," in page
    assert f"{100 * k_means['rows'][0]['best']['ACC']:.1f}" in page
    for cell in cells:
        assert f"({place.result(cell).relative_to(tmp_path).as_posix()})" in page


def test_supervised_training_watches_the_loss_without_minimising_it():
    digits = load("digits")
    history, (epochs, accuracy) = figures.train_supervised(digits.data, digits.target, 12)
    assert accuracy[-1] > 0.9
    assert history[-1]["cross_entropy"] < history[0]["cross_entropy"] / 2
    assert epochs[-1] == history[-1]["epoch"] == 12
    terms = ("divergence", "orthogonality", "corners")
    assert all(record["loss"] == pytest.approx(sum(record[t] for t in terms)) for record in history)


def test_only_cross_entropy_has_a_gradient():
    import torch

    digits = load("digits")
    source = figures.BatchSource(digits.data, figures.Scaling.of(digits.data))
    torch.manual_seed(0)
    module = ConvNet((1, 8, 8), 10)
    x, classes = source.batch(slice(0, 50)), torch.from_numpy(digits.target[:50])
    terms = figures.monitored(module, x, classes)
    total = torch.autograd.grad(torch.stack(list(terms)).sum(), module.head.output.weight)[0]
    torch.manual_seed(0)
    module = ConvNet((1, 8, 8), 10)
    alone = torch.nn.functional.cross_entropy(module(x)[1], classes)
    expected = torch.autograd.grad(alone, module.head.output.weight)[0]
    torch.testing.assert_close(total, expected)


@pytest.mark.parametrize("name", ["conv_norm_first", "conv_symmetric_input", "conv_standardised_input"])
def test_readings_networks_return_hidden_and_logits(name):
    import torch

    hidden, logits = getattr(declarations, name)((1, 28, 28), 10)(torch.rand(5, 1, 28, 28))
    assert hidden.shape == (5, 100)
    assert logits.shape == (5, 10)
    assert (name == "conv_norm_first") == bool((hidden >= 0).all())


def test_committed_results_are_of_the_protocols_that_are_declared():
    checkout = Place(Path(__file__).parents[2])
    cells = {
        checkout.result(c): c for budget in BUDGETS for name in EXPERIMENTS for c in declared(name, budget)
    }
    committed = [
        file for b in BUDGETS for file in (checkout.folder / "experiments/results" / b).rglob("*.json")
    ]
    assert committed
    for file in committed:
        assert file in cells, f"{file} belongs to no declared cell"
        assert state(cells[file], checkout) == "done", file


def test_command_line(tmp_path):
    runner = CliRunner()

    def run(*arguments):
        return runner.invoke(main, ["reproduce", *arguments, "--out", str(tmp_path)])

    before = run("status", "figures", "--data", "circles")
    assert before.exit_code == 0
    assert "waiting" in before.output
    made = run("figures", "--cell", "ring-and-disc", "-q")
    assert made.exit_code == 0, made.output
    assert "figures/circles/ring-and-disc" in made.output
    assert "experiments/figures/quick/ring-and-disc.png" in (tmp_path / "RESULTS.md").read_text()
    again = run("figures", "--cell", "ring-and-disc", "-q")
    assert "ring-and-disc: done" in again.output
    assert "done" in run("status", "figures", "--data", "circles").output
    for wrong, word in (
        (("table7",), "experiment"),
        (("table1", "--data", "x"), "data set"),
        (("table1", "--cell", "x"), "cell"),
    ):
        refused = run(*wrong)
        assert refused.exit_code == 2
        assert f"There is no {word}" in refused.output


def test_the_preset_is_what_table_1_uses():
    preset = DDC.paper(10)
    assert preset.loss == DDCLoss.paper()
    fits = [cell.work for cell in declared("table1", "paper") if isinstance(cell.work, Fits)]
    assert fits
    for fit in fits:
        model = fit.model(10)
        assert (model.loss, model.init, model.max_iter) == (preset.loss, preset.init, preset.max_iter)
        assert model.augment is model.neighbors is None


def test_random_links_tell_the_truth():
    digits = load("digits")
    data, links = RandomLinks(200)(digits, 3)
    assert data is digits.data
    must, cannot = (digits.target[links[name]] for name in ("must_link", "cannot_link"))
    assert len(must) + len(cannot) > 190
    assert (must[:, 0] == must[:, 1]).all()
    assert (cannot[:, 0] != cannot[:, 1]).all()
    assert np.array_equal(RandomLinks(200)(digits, 3)[1]["cannot_link"], links["cannot_link"])
    assert not np.array_equal(RandomLinks(200)(digits, 4)[1]["cannot_link"], links["cannot_link"])


def test_halves_of_images_are_two_views():
    digits = load("digits")
    (upper, lower), arguments = Halves()(digits, 0)
    assert arguments == {}
    assert np.array_equal(np.concatenate([upper, lower], axis=1), digits.data)
    assert np.array_equal(Halves(("lower",))(digits, 0)[0], lower)


def test_smooth_cells_score_the_same_runs_otherwise(tmp_path):
    place = Place(tmp_path)
    plain, smooth = (
        replace(ring(Fits(SMALL, smooth=smooth), name), experiment="beyond")
        for name, smooth in (("plain", None), ("smooth", 9))
    )
    assert plain.protocol() != smooth.protocol()
    results = [run_cell(cell, place) for cell in (plain, smooth)]
    assert len(list(tmp_path.glob("experiments/work/fits/*"))) == 1
    losses, scores = (
        [[run[name] for run in result["repetitions"][0]["runs"]] for result in results]
        for name in ("loss", "ACC")
    )
    assert losses[0] == losses[1]
    circles = load("circles")
    model = DDC(2, augment=None, **SMALL, random_state=0).fit(circles.data)
    members = model.smooth_member_probabilities(circles.data, 9)
    by_run = dict(zip(model.voters_, members, strict=True))
    expected = [clustering_accuracy(circles.target, by_run[run].argmax(axis=1)) for run in range(3)]
    assert scores[1] == pytest.approx(expected, abs=1e-4)


def test_what_came_later_leaves_earlier_protocols_as_they_were():
    """Else every result of before would count as outdated."""
    protocol = Fits({"augment": Affine()}).protocol(10)
    assert "cut" not in protocol["params"]["augment"]["Affine"]
    assert "balance" not in protocol["params"]
    assert Fits({"augment": Affine(cut=0.2)}).protocol(10) != protocol


@pytest.mark.parametrize(
    ("params", "weights", "start"),
    [
        ({}, (2.25, 5, 2.25), 50),
        ({"balance": 7}, (2.25, 7, 2.25), None),
        ({"cluster_sizes": [1] * 10}, (2.25, 25, 2.25), None),
    ],
)
def test_a_protocol_names_the_loss_that_is_trained(params, weights, start):
    protocol = Fits({"augment": Affine(), **params}).protocol(10)
    loss = protocol["params"]["loss"]["DDCLoss"]
    assert (loss["weights"], loss.get("start_balance")) == (weights, start)


def test_other_starts_are_other_ones():
    cells = {cell.name: cell.protocol() for cell in declared("beyond", "standard") if cell.data == "agnews"}
    first, other = cells["dropout-neighbors"], cells["other-starts"]
    assert first | {"seed": 1} == other


def test_titles_and_bodies_are_two_views():
    stories = Bunch(texts=["GOLD RISES\nGold rose.", "WHEAT FALLS\nWheat fell today."] * 5)
    (titles, bodies), arguments = TitlesAndBodies()(stories, 0)
    assert arguments == {}
    assert titles.shape[0] == bodies.shape[0] == 10
    assert titles.shape[1] == 4  # gold, rise, wheat, fall
    alone, _ = TitlesAndBodies(("bodies",))(stories, 0)
    assert alone.shape == bodies.shape


def test_a_cell_beyond_the_paper(tmp_path):
    place = Place(tmp_path)
    params = SMALL | {"n_init": 4, "n_vote": 4, "learning_rate": 1e-3}
    plain, linked = (
        Cell("beyond", "digits", name, 10, Fits(params, given=given), "quick")
        for name, given in (("plain", None), ("links-500", RandomLinks(500)))
    )
    results = [run_cell(cell, place) for cell in (plain, linked)]
    assert "given" not in results[0]["protocol"]
    assert results[1]["protocol"]["given"] == {"RandomLinks": {"n_pairs": 500}}
    terms = [set(result["repetitions"][0]["runs"][0]["terms"]) for result in results]
    assert terms[1] - terms[0] == {"must_link", "cannot_link"}
    for result in results:
        assert result["summary"]["runs"]["n"] == 4
        assert 0 < result["repetitions"][0]["vote"]["ACC"] < 1  # of the best three
    page.write_page(place)
    page = place.page.read_text()
    assert "| links-500 |" in page
    assert "500 random pairs" in page
