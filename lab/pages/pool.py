"""The section of RESULTS.md about the paper's protocol at size."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lab.experiments.pool import READINGS, SEEDS
from lab.pages.markdown import nmi_and_acc, percent, percent_spread, spread_text, table
from lab.paths import Place
from lab.pool import REPETITION, Pool, chance_of, choices, expected_accuracy, pools
from lab.runner import spread
from lab.studies import correlation

BETTER = ("he-after-squared_median", "bfloat16")  # the reading of Table 1, see _verdict
DRAWN = (1, 2, 5, 10, 20)
TARGETS = (0.80, 0.85)
RULE = 10  # the better reading is that with the higher expected ACC of the lowest loss among so many


def pool_section(place: Place) -> Iterable[str]:
    """Distribution, label-free choices and best-of-n of every reading."""
    found = pools(place)
    if not found:
        return
    yield "## The paper's protocol at size: MNIST\n"
    yield (
        "`python -m lab pool`. Single runs of two readings of the paper, by the rules that"
        " [docs/paper-protocol.md](docs/paper-protocol.md) fixed when one run of each had ended. The paper has an ACC of 86.58 for DDC, 88.49"
        " for DDC-VOTE, and 80.8 ± 5.8 for best-of-20 in its Table 2; its runs have 70,000 iterations, these 7,000. Runs"
        " with `changed_since` in their files were made by a changed copy of the library, before it had `precision`. With"
        ' `precision="bfloat16"` the library repeats their training: the losses of the first two epochs of seed 0 of both'
        " readings were equal to the last bit. Those runs were also judged in bfloat16, later ones in float32.\n"
    )
    yield f"Finished: {', '.join(_finished(pool) for pool in found)}.\n"
    yield "### All runs\n"
    header = ("reading", "precision", "n", "ACC, mean ± sd", "lowest", "median", "highest")
    yield table(
        (*header, "NMI, mean ± sd", "runs ≥ 80 %", "≥ 85 %", "Spearman of loss and ACC"),
        [_distribution(pool) for pool in found],
    )
    yield "A Spearman correlation of -1 would mean that the lowest loss is always the most accurate run.\n"
    yield "### Label-free choices\n"
    yield table(
        ("reading", "precision", "among", "choice", "chosen", "NMI, ACC"),
        [row for pool in found for row in _choices(pool, place)],
    )
    items = sorted({result["curve_items"] for pool in found for result in pool.results})
    images = " or ".join(f"{n:,}" for n in items)
    yield f"The loss of an epoch is the mean over its batches, and its ACC is that of {images} images.\n"
    yield "### The lowest loss among n runs\n"
    yield (
        "Expected ACC of the run with the lowest loss among n runs drawn from the pool, and the probability that it has at"
        " least 80 or 85 % (95 % bootstrap interval over the runs).\n"
    )
    yield table(
        ("reading", "precision", "n", "expected ACC", "P(ACC ≥ 80 %)", "P(ACC ≥ 85 %)"),
        [row for pool in found for row in _best_of_n(pool)],
    )
    yield _verdict(found)
    figure = place.figure("paper", "pool")
    if figure.exists():
        yield f"![ACC and NMI against the loss]({place.relative(figure)})\n"
        yield "ACC and NMI against the loss: every run at its end, and every epoch of every run.\n"
    yield "<details><summary>Every run</summary>\n"
    header = ("reading", "precision", "seed", "loss", "divergence", "orthogonality", "corners")
    yield table(
        (*header, "NMI, ACC", "clusters used", "from"), [row for pool in found for row in _runs(pool, place)]
    )
    yield "</details>\n"


def _finished(pool: Pool) -> str:
    planned = SEEDS.get((pool.reading, pool.precision), len(pool.results))
    return f"{len(pool.results)} of {planned} runs of `{pool.reading}` in {pool.precision}"


def _distribution(pool: Pool) -> tuple[str, ...]:
    runs = pool.runs
    accuracy = [run["ACC"] for run in runs]
    summed = spread(runs)
    ranked = correlation(np.array([run["loss"] for run in runs]), accuracy) if len(runs) > 2 else None
    return (
        pool.reading,
        pool.precision,
        str(len(runs)),
        percent_spread(summed["ACC"]),
        percent(min(accuracy)),
        percent(float(np.median(accuracy))),
        percent(max(accuracy)),
        spread_text(summed["NMI"]),
        *(str(sum(value >= target for value in accuracy)) for target in TARGETS),
        "-" if ranked is None else f"{ranked:+.2f}",
    )


def _choices(pool: Pool, place: Place) -> Iterable[tuple[str, ...]]:
    for repetition in pool.repetitions:
        among = f"{len(repetition.results)} runs from seed {repetition.first_seed}"
        for choice in choices(repetition, place):
            seeds = ("seeds " if len(choice.seeds) > 1 else "seed ") + ", ".join(map(str, choice.seeds))
            epoch = "" if choice.epoch is None else f", epoch {choice.epoch}"
            row = (pool.reading, pool.precision, among, choice.rule, f"{seeds}{epoch}")
            yield *row, nmi_and_acc(choice.scores)


def _best_of_n(pool: Pool) -> Iterable[tuple[str, ...]]:
    for n in DRAWN:
        if n <= len(pool.results):
            chances = [chance_of(pool.runs, n, target) for target in TARGETS]
            yield (
                pool.reading,
                pool.precision,
                str(n),
                percent(expected_accuracy(pool.runs, n)),
                *(f"{chance:.2f} ({low:.2f} to {high:.2f})" for chance, low, high in chances),
            )


def _verdict(found: list[Pool]) -> str:
    """Which reading is the better one by the rule, once all runs of both are there."""
    compared = [pool.repetitions[0] for pool in found if pool.precision == "bfloat16"]
    if len(compared) < len(READINGS) or any(len(pool.results) < REPETITION for pool in compared):
        return "Which reading is the better one is decided when all runs are finished.\n"
    expected = {pool.reading: expected_accuracy(pool.runs, RULE) for pool in compared}
    better = max(expected, key=lambda reading: expected[reading])
    return f"By the rule (expected ACC among {RULE}), `{better}` is the better reading.\n"


def _runs(pool: Pool, place: Place) -> Iterable[tuple[str, ...]]:
    for run in pool.runs:
        file = place.relative(place.result(pool.cell(run["seed"])))
        terms = run["terms"]
        yield (
            pool.reading,
            pool.precision,
            str(run["seed"]),
            f"{run['loss']:.4f}",
            *(f"{terms[name]:.4f}" for name in ("divergence", "orthogonality", "corners")),
            nmi_and_acc(run),
            str(run["clusters_used"]),
            f"[paper]({file})",
        )
