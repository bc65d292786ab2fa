"""What experiments declare, and that the committed results are of these declarations."""

import json

import numpy as np
import pytest
from sklearn.utils import Bunch

from ddclust.datasets import load
from ddclust.objective.augment import Affine
from lab import networks
from lab.cells import BUDGETS, Fits, fits_key
from lab.experiments import EXPERIMENTS, declared
from lab.given import Halves, RandomLinks, TitlesAndBodies
from lab.parameters import BASE, augmentation, in_full, loss, loss_with_pairs, model_of
from lab.paths import Place
from lab.runner import read_result, state

CHECKOUT = Place()


def test_every_experiment_declares_cells_of_different_names():
    for budget in BUDGETS:
        cells = [cell for name in EXPERIMENTS for cell in declared(name, budget)]
        assert len({cell.key for cell in cells}) == len(cells) > 60
        assert all(cell.protocol() == json.loads(json.dumps(cell.protocol())) for cell in cells)


def test_every_declared_fit_is_one_that_the_estimator_takes():
    for budget in BUDGETS:
        for cell in (cell for name in EXPERIMENTS for cell in declared(name, budget)):
            fits = getattr(cell.work, "of", cell.work)
            if isinstance(fits, Fits):
                model_of(fits.params, cell.n_clusters)._validate_params()


def test_table1_has_every_method_on_every_data_set_and_the_paper_s_size():
    cells = declared("table1", "paper")
    methods = {"ddc", "k-means", "sec", "ldmgi", "dec", "itc-parzen", "itc-knn"}
    for data in ("mnist", "seals-3", "seals-2", "reuters", "agnews", "rcv1-subset"):
        assert {cell.name for cell in cells if cell.data == data} == methods
    params = next(cell for cell in cells if cell.name == "ddc").protocol()["params"]
    assert (params["n_init"], params["max_iter"]) == (20, 70_000)
    assert not params["selection"]["Selection"]["halving"]
    assert params["augment"] is params["neighbors"] is None


def test_table2_has_the_seven_subsets():
    texts = [cell for cell in declared("ablation", "paper") if cell.data == "rcv1-subset-balanced"]
    protocols = [cell.protocol() for cell in texts]
    weights = [tuple(p["params"]["loss"]["DDCLoss"]["weights"].values())[:3] for p in protocols]
    assert len(set(weights)) == 7
    assert all(set(subset) <= {0.0, 1.0} for subset in weights)


def test_a_protocol_names_every_parameter():
    assert set(Fits({}).protocol()["params"]) == set(BASE)
    with pytest.raises(ValueError, match="balance"):
        in_full({"balance": 3})


def test_what_a_fit_does_not_depend_on_leaves_its_folder_alone():
    key = fits_key("digits", 10, Fits({}))
    assert fits_key("digits", 10, Fits({}, smooth=5)) == key
    for other in (Fits({"max_iter": 7}), Fits({}, seed=1), Fits({}, given=RandomLinks(5))):
        assert fits_key("digits", 10, other) != key


def test_loss_with_pairs_is_written_out():
    fields = loss_with_pairs(10)["DDCLoss"]
    assert (fields["weights"]["divergence"], fields["weights"]["orthogonality"]) == (2.25, 5)
    assert fields["start_weights"] == fields["weights"] | {"orthogonality": 50}
    alone = loss()["DDCLoss"]
    assert alone["weights"] == alone["start_weights"] == dict.fromkeys(alone["weights"], 1)


def test_augmentations_are_written_out():
    assert augmentation(Affine(cut=0.2))["Affine"]["cut"] == 0.2
    assert augmentation(Affine())["Affine"]["cut"] == 0


def test_committed_results_are_of_the_protocols_that_are_declared():
    cells = {
        CHECKOUT.result(cell): cell
        for budget in BUDGETS
        for name in EXPERIMENTS
        for cell in declared(name, budget)
    }
    folder = CHECKOUT.folder / "lab" / "results"
    committed = [file for b in BUDGETS for file in (folder / b).rglob("*.json") if "vote" not in file.stem]
    assert committed
    for file in committed:
        assert file in cells, f"{file} belongs to no declared cell"
        assert state(cells[file], CHECKOUT) == "done", file
        assert read_result(file)["command"] == cells[file].command


def test_all_results_have_one_format():
    folder = CHECKOUT.folder / "lab" / "results"
    head = ["cell", "budget", "command", "data", "protocol"]
    contents = [{"summary", "repetitions"}, {"rows", "fits_made"}, {"picture", "facts"}, {"facts"}]
    contents.append({"run", "history", "curve", "curve_items"})
    for file in (file for budget in BUDGETS for file in (folder / budget).rglob("*.json")):
        result = read_result(file)
        assert list(result)[:5] == head, file
        assert set(result) - set(head) - {"provenance"} in contents, file
        assert {"commit", "versions", "machine", "seconds"} <= set(result["provenance"]), file
    for file in (folder / "benchmarks").glob("*.json"):
        assert list(read_result(file)) == ["name", "command", "figures", "provenance"]


def test_other_seeds_are_other_ones():
    cells = {cell.name: cell.protocol() for cell in declared("beyond", "standard") if cell.data == "agnews"}
    first, other = cells["dropout-neighbors"], cells["other-seeds"]
    assert first | {"seed": 1} == other


@pytest.mark.parametrize("name", list(networks.FACTORIES))
def test_readings_networks_return_hidden_and_logits(name):
    import torch

    hidden, logits = networks.FACTORIES[name]((1, 28, 28), 10)(torch.rand(5, 1, 28, 28))
    assert hidden.shape == (5, 100)
    assert logits.shape == (5, 10)


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


def test_titles_and_bodies_are_two_views():
    stories = Bunch(texts=["GOLD RISES\nGold rose.", "WHEAT FALLS\nWheat fell today."] * 5)
    (titles, bodies), arguments = TitlesAndBodies()(stories, 0)
    assert arguments == {}
    assert titles.shape[0] == bodies.shape[0] == 10
    assert titles.shape[1] == 4  # gold, rise, wheat, fall
    alone, _ = TitlesAndBodies(("bodies",))(stories, 0)
    assert alone.shape == bodies.shape
