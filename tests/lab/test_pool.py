"""The pool of single runs: choices, the best of n, and the section of the page."""

from itertools import combinations

import numpy as np
import pytest

from ddclust.storage.atomic import write_json
from lab import pool as _pool
from lab.cells import Cell, Run
from lab.experiments.pool import pool_cell
from lab.pages.pool import pool_section
from lab.parameters import snapshots
from lab.paths import Place

RUNS = [
    {"seed": seed, "loss": loss, "terms": {"divergence": divergence}, "ACC": accuracy}
    for seed, (loss, divergence, accuracy) in enumerate(
        [(0.7, 0.05, 0.6), (0.5, 0.07, 0.82), (0.9, 0.04, 0.9), (0.6, 0.06, 0.55), (0.8, 0.08, 0.86)]
    )
]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_best_of_n_is_exact(n):
    groups = list(combinations(RUNS, n))
    chosen = [min(group, key=lambda run: run["loss"])["ACC"] for group in groups]
    assert _pool.expected_accuracy(RUNS, n) == pytest.approx(np.mean(chosen))
    chance, low, high = _pool.chance_of(RUNS, n, 0.8)
    assert chance == pytest.approx(np.mean(np.array(chosen) >= 0.8))
    assert low <= chance <= high


def result_of(run, reading="he-before-median"):
    cell = pool_cell(reading, run["seed"], "bfloat16")
    terms = run["terms"] | {"orthogonality": 0.1, "corners": 0.5}
    history = [{"epoch": 1.0, "loss": run["loss"] + 0.1}, {"epoch": 2.0, "loss": run["loss"] + 0.05}]
    history[0]["loss"] -= 0.5 * (run["seed"] == 4)  # the lowest epoch is no run's last
    return cell, {
        "cell": cell.key,
        "data": {"name": "mnist"},
        "protocol": cell.protocol(),
        "run": run | {"terms": terms, "NMI": run["ACC"], "clusters_used": 10},
        "history": history,
        "curve": [{"epoch": e, "ACC": run["ACC"] - 0.1 * (2 - e), "NMI": 0.5} for e in range(3)],
        "curve_items": 10_000,
    }


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    for run in RUNS:
        cell, result = result_of(run)
        found.result(cell).parent.mkdir(parents=True, exist_ok=True)
        write_json(found.result(cell), result)
    return found


def test_label_free_choices(place):
    (pool,) = _pool.pools(place)
    chosen = {choice.rule: choice for choice in _pool.choices(pool, place)}
    assert chosen["lowest loss (the paper's rule)"].seeds == [1]
    assert chosen["lowest divergence term"].seeds == [2]
    by_epoch = chosen["lowest loss of any epoch"]
    assert (by_epoch.seeds, by_epoch.epoch) == ([4], 1)
    assert by_epoch.scores["ACC"] == pytest.approx(0.76)
    assert len(chosen) == 3  # no labels, so no vote


def test_the_vote_is_counted_where_labels_are_at_hand(place, monkeypatch):
    (pool,) = _pool.pools(place)
    seeds = _pool.lowest(pool, 3)
    assert seeds == [1, 3, 0]
    truth = np.array([0, 0, 1, 1, 2, 2] * 5)
    for seed, wrong in zip(seeds, (0, 1, 2), strict=True):
        labels = truth.copy()
        labels[wrong] = (labels[wrong] + 1) % 3
        folder = place.work(f"paper/{pool.cell(seed).key}")
        folder.mkdir(parents=True)
        np.savez(folder / "labels.npz", labels=labels)
    monkeypatch.setattr(_pool, "load_data", lambda name: type("Data", (), {"target": truth}))
    _pool.write_votes(place)
    vote = _pool.choices(pool, place)[-1]
    assert (vote.seeds, vote.scores["ACC"]) == (seeds, 1.0)


def test_the_section_and_the_figure(place):
    _pool.write_pool_figure(place)
    text = "\n".join(pool_section(place))
    assert "5 of 20 runs of `he-before-median` in bfloat16" in text
    assert "| he-before-median | bfloat16 | 5 | 82.0 |" in text  # all five: the lowest loss
    assert "lab/figures/paper/pool.png" in text
    assert place.figure("paper", "pool").read_bytes().startswith(b"\x89PNG")


def test_further_seeds_are_another_repetition(place):
    cell, result = result_of({**RUNS[0], "seed": 20, "loss": 0.1})
    write_json(place.result(cell), result)
    (pool,) = _pool.pools(place)
    first, second = pool.repetitions
    assert (len(first.results), second.first_seed) == (5, 20)
    assert _pool.lowest(first, 1) == [1]
    assert _pool.lowest(second, 1) == [20]


def test_there_is_no_section_without_runs(tmp_path):
    assert not list(pool_section(Place(tmp_path)))


def test_missing_runs_are_made_in_other_processes(tmp_path):
    params = {"n_init": 1, "max_iter": 20, "callbacks": snapshots([0, 1])}
    cells = [
        Cell("pool", "circles", f"short/{seed:03d}", 2, Run("short", params, seed), "paper")
        for seed in (0, 1)
    ]
    place, said = Place(tmp_path), []
    _pool.make_runs(cells, place, 1, said.append)
    assert len(said) == 2
    _pool.make_runs(cells, place, 1, said.append)
    assert len(said) == 2  # both were done
    assert all(place.result(cell).exists() for cell in cells)
