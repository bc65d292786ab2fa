"""What the pool of single runs says: its distribution, label-free choices, and the best of n runs drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import comb
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ddclust.choosing.consensus import majority_vote
from ddclust.data.readers.arrays import open_npz
from ddclust.storage.atomic import write_json
from lab.cells import Cell
from lab.data import load_data
from lab.experiments.pool import pool_cell
from lab.paths import Place
from lab.provenance import Clock
from lab.runner import N_VOTE, read_result, run_cell, scores, state, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPETITION = 20  # runs of one best-of-20, by their seeds: 0 to 19, 20 to 39 and so on
LOWEST_LOSS, VOTE = "lowest loss (the paper's rule)", "vote of the three lowest losses"
RESAMPLES = 2000
COVERAGE = 0.95


class Pool(NamedTuple):
    """The finished runs of a reading in one precision, by seed."""

    reading: str
    precision: str
    results: list[dict[str, Any]]

    @property
    def repetitions(self) -> list[Pool]:
        """The runs of each best-of-20, of which the last may be unfinished."""
        blocks: dict[int, list[dict[str, Any]]] = {}
        for result in self.results:
            blocks.setdefault(result["protocol"]["seed"] // REPETITION, []).append(result)
        return [self._replace(results=results) for results in blocks.values()]

    @property
    def first_seed(self) -> int:
        """The first seed of the repetition that the first run belongs to."""
        return self.results[0]["protocol"]["seed"] // REPETITION * REPETITION

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The record of each run at its end, with its seed in the pool."""
        return [{**result["run"], "seed": result["protocol"]["seed"]} for result in self.results]

    def cell(self, seed: int) -> Cell:
        """The cell of a run."""
        return pool_cell(self.reading, seed, self.precision)


class Choice(NamedTuple):
    """What a label-free rule chooses."""

    rule: str
    seeds: list[int]
    scores: dict[str, float]
    epoch: int | None = None


def pools(place: Place) -> list[Pool]:
    """All runs on disk, by reading and precision."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for file in sorted((place.results("paper", "pool") / "mnist").glob("*/*.json")):
        result = read_result(file)
        if result is not None and "run" in result:
            protocol = result["protocol"]
            found.setdefault((protocol["reading"], protocol["precision"]), []).append(result)
    return [Pool(*key, results) for key, results in found.items()]


# --- making runs -----------------------------------------------------------------------------------------------------


def make_runs(cells: Iterable[Cell], place: Place, n_jobs: int, say: Callable[[str], None]) -> None:
    """Make the runs that are missing, one process for each core, each on one thread. Runs that were stopped go on."""
    missing = [cell for cell in cells if state(cell, place) != "done"]
    with ProcessPoolExecutor(
        n_jobs, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as executor:
        under_way = {executor.submit(run_cell, cell, place): cell for cell in missing}
        for done in as_completed(under_way):
            run = done.result()["run"]
            say(f"{under_way[done].key}: loss {run['loss']:.4f}, ACC {100 * run['ACC']:.1f}")


# --- choosing --------------------------------------------------------------------------------------------------------


def choices(pool: Pool, place: Place) -> list[Choice]:
    """The four label-free choices of docs/paper-protocol.md among all runs; the vote only where it has been counted."""
    runs = pool.runs
    by_loss = min(runs, key=lambda run: run["loss"])
    by_divergence = min(runs, key=lambda run: run["terms"]["divergence"])
    found = [
        Choice(LOWEST_LOSS, [by_loss["seed"]], by_loss),
        Choice("lowest divergence term", [by_divergence["seed"]], by_divergence),
        _lowest_epoch(pool),
    ]
    vote = read_result(_vote_file(pool, place))
    if vote is not None and vote["facts"]["seeds"] == lowest(pool, N_VOTE):
        found.append(Choice(VOTE, vote["facts"]["seeds"], vote["facts"]))
    return found


def lowest(pool: Pool, n: int) -> list[int]:
    """The seeds of the runs with the lowest losses, the lowest first."""
    return [run["seed"] for run in sorted(pool.runs, key=lambda run: run["loss"])[:n]]


def _lowest_epoch(pool: Pool) -> Choice:
    """The epoch of any run with the lowest mean loss, scored by the labels at its end."""
    records = [
        (record["loss"], int(record["epoch"]), result)
        for result in pool.results
        for record in result["history"]
    ]
    _, epoch, result = min(records, key=lambda record: record[0])
    point = next(point for point in result["curve"] if point["epoch"] == epoch)
    return Choice("lowest loss of any epoch", [result["protocol"]["seed"]], point, epoch)


def write_votes(place: Place) -> None:
    """Count the vote of the three lowest losses of each best-of-20, where the labels of these runs are at hand."""
    for pool in pools(place):
        for repetition in pool.repetitions:
            _write_vote(repetition, place)


def _write_vote(pool: Pool, place: Place) -> None:
    clock, seeds, file = Clock(), lowest(pool, N_VOTE), _vote_file(pool, place)
    known = read_result(file)
    labels = [place.work(f"paper/{pool.cell(seed).key}") / "labels.npz" for seed in seeds]
    is_counted = known is not None and known["facts"]["seeds"] == seeds
    if is_counted or len(seeds) < N_VOTE or not all(one.exists() for one in labels):
        return
    voted = majority_vote([open_npz(one)["labels"].astype(np.int64) for one in labels])
    result = {
        "cell": f"{pool.cell(seeds[0]).key.rpartition('/')[0]}/{file.stem}",
        "budget": "paper",
        "command": "python -m lab pool",
        "data": pool.results[0]["data"],
        "protocol": {
            "method": "vote",
            "reading": pool.reading,
            "precision": pool.precision,
            "first_seed": pool.first_seed,
        },
        "facts": {"seeds": seeds, **scores(load_data("mnist").target, voted)},
        "provenance": clock.provenance(),
    }
    write_json(file, result)


def _vote_file(pool: Pool, place: Place) -> Path:
    return place.result(pool.cell(0)).with_name(f"vote-{pool.first_seed:03d}.json")


# --- the best of n ---------------------------------------------------------------------------------------------------


def chances_of_being_chosen(n_runs: int, n: int) -> np.ndarray:
    """The probability that the run of each rank has the lowest loss of ``n`` runs drawn without replacement.

    Examples
    --------
    >>> chances_of_being_chosen(4, 2)  # the best of four is among two in half of the draws
    array([0.5       , 0.33333333, 0.16666667, 0.        ])
    """
    return np.array([comb(n_runs - 1 - rank, n - 1) / comb(n_runs, n) for rank in range(n_runs)])


def expected_accuracy(runs: list[dict[str, Any]], n: int) -> float:
    """The expected ACC of the run with the lowest loss among ``n`` drawn from the pool."""
    losses, accuracy = _columns(runs)
    return float(accuracy[losses.argsort()] @ chances_of_being_chosen(len(runs), n))


def chance_of(runs: list[dict[str, Any]], n: int, accuracy: float) -> tuple[float, float, float]:
    """The probability that the lowest loss among ``n`` has at least this ACC, and its 95 % bootstrap interval."""
    losses, values = _columns(runs)
    reaches = values >= accuracy
    weights = chances_of_being_chosen(len(runs), n)
    drawn = np.random.default_rng(0).integers(len(runs), size=(RESAMPLES, len(runs)))
    order = np.take_along_axis(drawn, losses[drawn].argsort(axis=1), axis=1)
    resampled = reaches[order] @ weights
    low, high = np.quantile(resampled, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(reaches[losses.argsort()] @ weights), float(low), float(high)


def _columns(runs: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Losses and accuracies."""
    return np.array([run["loss"] for run in runs]), np.array([run["ACC"] for run in runs])


# --- the figure ------------------------------------------------------------------------------------------------------


def draw_pool(found: list[Pool]) -> Figure:
    """ACC and NMI against the loss: every run at its end (large) and at the end of every epoch (small)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 2, squeeze=False)
    for row, pool in zip(axes, found, strict=True):
        for axis, measure in zip(row, ("ACC", "NMI"), strict=True):
            points = [
                (record["loss"], at_end[record["epoch"]][measure], record["epoch"])
                for result in pool.results
                for at_end in [{point["epoch"]: point for point in result["curve"]}]
                for record in result["history"]
                if record["epoch"] in at_end
            ]
            losses, values, epochs = zip(*points, strict=True)
            drawn = axis.scatter(losses, values, c=epochs, s=9, cmap="viridis", label="end of an epoch")
            runs = pool.runs
            axis.scatter(
                [run["loss"] for run in runs],
                [run[measure] for run in runs],
                s=42,
                facecolors="none",
                edgecolors="#c0392b",
                label="end of a run",
            )
            axis.set(xlabel="loss", ylabel=measure, title=f"{pool.reading}, {pool.precision}", ylim=(0, 1))
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(loc="lower left", frameon=False, fontsize=8)
        figure.colorbar(drawn, ax=row.tolist(), label="epoch")
    return figure


def write_pool_figure(place: Place) -> None:
    """Draw the pool, if there is one."""
    found = pools(place)
    if found:
        write_figure(draw_pool(found), place.figure("paper", "pool"))
