"""Which quantities that need no labels rank restarts as accuracy does.

    python experiments/selection.py digits -k 10 --runs 40 --balance 30 --max-iter 1000
    python experiments/selection.py rcv1-subset -k 4 --runs 24 --balance 2 --max-iter 2000 --learning-rate 1e-4

All runs train to the end. Of each the unsupervised quantities are recorded, and then its accuracy: labels serve only to
score. Spearman's rank correlation says which quantity orders the runs best; what it is worth is shown by replaying
groups of runs: the accuracy of the run that the quantity chooses. The fit is resumable. Results go to
experiments/results/selection-NAME.json, and docs/selection.md is written from all of them
(`python experiments/selection.py report` does that alone).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from ddclust import DDC, DDCLoss, datasets
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.choosing.selection import agreement, balance, steadiness
from ddclust.data.items import fingerprint
from ddclust.results import versions
from ddclust.training.run import rank_runs

RESULTS = Path(__file__).parent / "results"
GROUPS = 400
# Each quantity, and whether a small value (-1) or a large one (+1) is taken for good.
SIGNS = {
    "loss": -1,
    "divergence": -1,
    "orthogonality": -1,
    "corners": -1,
    "partners": -1,
    "agreement": 1,
    "agreement by NMI": 1,
    "steadiness": 1,
    "confidence": 1,
    "balance": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("-k", type=int, required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--group", type=int, default=8, help="restarts of one replayed fit")
    parser.add_argument("--balance", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=None)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    options = parser.parse_args()
    bunch = datasets.load(options.data)
    model = DDC(
        options.k,
        loss=DDCLoss(weights=(1, options.balance, 1)),
        n_init=options.runs,
        n_vote=options.runs,
        max_iter=options.max_iter,
        learning_rate="auto" if options.learning_rate is None else options.learning_rate,
        patience=None,
        n_jobs=options.jobs,
        random_state=0,
        checkpoint_dir=options.checkpoints / f"selection-{bunch.name}",
        verbose=True,
    ).fit(bunch.data)
    runs = described_runs(model, bunch)
    protocol = vars(options) | {
        "data": bunch.name,
        "checkpoints": None,
        "jobs": None,
        "loss": repr(model.loss),
    }
    result = {
        "data": {"name": bunch.name, "shape": list(bunch.data.shape), "sha256": fingerprint(bunch.data)},
        "protocol": protocol,
        "versions": versions(),
        "restarts that leave clusters empty": options.runs - len(runs),
        "quantities": judged(runs, options.group),
        "any run": spread([run["ACC"] for run in runs]),
        "runs": runs,
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"selection-{bunch.name}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(file)
    write_report()


def described_runs(model: DDC, bunch) -> list[dict]:
    """Every quantity of every run that was kept, and then ACC and NMI."""
    source = model._source(bunch.data)
    probabilities = model.member_probabilities(bunch.data)
    labels = [p.argmax(axis=1) for p in probabilities]
    by_rand = agreement(labels)
    by_nmi = [
        np.mean([nmi(own, other) for other in labels if other is not own]) if len(labels) > 1 else 1.0
        for own in labels
    ]
    runs = []
    for place, run in enumerate(model.voters_):
        record = model.runs_[run]
        quantities = {
            "loss": record["loss"],
            **record["terms"],
            "agreement": by_rand[place],
            "agreement by NMI": by_nmi[place],
            "steadiness": steadiness(model.modules_[place], source),
            "confidence": probabilities[place].max(axis=1).mean(),
            "balance": balance(labels[place], model.n_clusters),
        }
        runs.append(
            {"run": run, "seed": record["seed"]}
            | {name: round(float(value), 5) for name, value in quantities.items()}
            | {
                "ACC": round(clustering_accuracy(bunch.target, labels[place]), 4),
                "NMI": round(nmi(bunch.target, labels[place]), 4),
            }
        )
    return sorted(runs, key=lambda run: run["run"])


def judged(runs: list[dict], group: int) -> dict:
    """For each quantity its rank correlation with ACC and NMI, and the accuracy of what it chooses from groups of runs."""
    rng = np.random.default_rng(0)
    groups = [rng.choice(len(runs), min(group, len(runs)), replace=False) for _ in range(GROUPS)]
    accuracy = np.array([run["ACC"] for run in runs])
    table = {}
    for name, sign in SIGNS.items():
        if name not in runs[0]:
            continue  # runs without partners
        value = sign * np.array([run[name] for run in runs])
        table[name] = {
            "better when": "small" if sign < 0 else "large",
            **{f"Spearman with {m}": correlation(value, [r[m] for r in runs]) for m in ("ACC", "NMI")},
            "ACC of the choice": spread([accuracy[g[value[g].argmax()]] for g in groups]),
        }
    table["ACC itself, for comparison"] = {
        "better when": "large",
        "ACC of the choice": spread([accuracy[g].max() for g in groups]),
    }
    return table


def correlation(value, score) -> float | None:
    """Spearman's, None where the quantity is the same for all runs."""
    found = float(spearmanr(value, score).statistic) if np.ptp(value) > 0 else float("nan")
    return None if np.isnan(found) else round(found, 3)


def spread(values) -> dict:
    return {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values)), 4)}


INTRODUCTION = """# Choosing a restart without labels

Written by `experiments/selection.py` from its results (`experiments/results/selection-*.json`, with every quantity of every
run). Which quantities that need no labels order restarts as accuracy does? All runs of a data set train to the end.
*Spearman* is the rank correlation of a quantity (its sign turned where small is good) with ACC and NMI: 1 if it orders the
runs alike, 0 if it says nothing. *ACC of the choice* replays fits: from groups of runs, drawn at random, the run that the
quantity takes for the best; groups overlap, so the spread is not that of independent repetitions. Labels serve only to
score.

- *loss* and its terms: on the whole data, as in `runs_` (`criterion="loss"`, the default, and `"divergence"`).
- *agreement*: the mean adjusted Rand index with the other runs (`criterion="agreement"`); the same by NMI beside it.
- *steadiness*: the share of items whose cluster stays the same under Gaussian noise of a tenth of the data's deviation.
- *confidence*: the mean largest soft assignment. *balance*: the entropy of the clusters' sizes.

With n runs, a correlation of pure chance has a standard deviation of about 1/sqrt(n - 1).

**What follows.** Without partners, on digits, the divergence and the agreement order runs better than the total loss. With
partners (the last table) the total loss is on average the best of the terms or close to it, and what it chooses is far
above a run taken blindly; so it stays the default, and `criterion` takes the others.
"""


def write_report() -> None:
    """docs/selection.md, from all results."""
    text = INTRODUCTION
    for file in sorted(RESULTS.glob("selection-*.json")):
        result = json.loads(file.read_text())
        protocol, n = result["protocol"], len(result["runs"])
        text += (
            f"\n## {result['data']['name']}, {result['data']['shape'][0]:,} items, k = {protocol['k']}\n\n"
        )
        text += (
            f"{n} runs of {protocol['max_iter']:,} iterations that use all clusters"
            f" ({result['restarts that leave clusters empty']} others do not); weights of the terms 1,"
            f" {protocol['balance']:g}, 1; groups of {protocol['group']}. A run taken blindly has ACC"
            f" {cell(result['any run'])}.\n\n"
        )
        text += "| quantity | better when | Spearman with ACC | with NMI | ACC of the choice |\n| --- | --- | --- | --- | --- |\n"
        for name, row in result["quantities"].items():
            numbers = [row.get(f"Spearman with {measure}") for measure in ("ACC", "NMI")]
            shown = ["" if number is None else f"{number:+.2f}" for number in numbers]
            text += f"| {name} | {row['better when']} | {shown[0]} | {shown[1]} | {cell(row['ACC of the choice'])} |\n"
    text += losses_of_other_experiments() + runs_with_partners()
    (Path(__file__).parents[1] / "docs" / "selection.md").write_text(text)


def losses_of_other_experiments() -> str:
    """What the results of experiments/restarts.py say: they hold the total loss of more runs, but not the rest."""
    text = "\n## The loss alone, of the runs of [restarts.md](restarts.md)\n\n"
    text += "| data | runs | Spearman of the loss with ACC | with NMI |\n| --- | --- | --- | --- |\n"
    for file in sorted(RESULTS.glob("restarts-*.json")):
        result = json.loads(file.read_text())
        runs = [run for run in result["runs"] if run["ACC"] is not None]
        value = -np.array([run["loss"] for run in runs])
        shown = [f"{correlation(value, [run[measure] for run in runs]):+.2f}" for measure in ("ACC", "NMI")]
        text += f"| {result['data']['name']} | {len(runs)} | {shown[0]} | {shown[1]} |\n"
    return text


def runs_with_partners() -> str:
    """What the runs of "Beyond the paper" in RESULTS.md say, whose terms are recorded and, of newer ones, the agreement."""
    columns = ("loss", "divergence", "orthogonality", "corners", "partners", "agreement")
    text = f"""
## Runs with partners, of [RESULTS.md](../RESULTS.md)

Spearman with ACC. *partners* is the term of the loss: how little a network's assignments change from an item to its changed
copies and neighbours, on the whole data (`criterion="partners"`); *agreement* is that of the runs that were kept. A dash:
not recorded, or the same for all runs.

| data, cell | runs | ACC: any run | lowest loss | lowest partners | best | {" | ".join(columns)} |
{"| --- " * (6 + len(columns))}|
"""
    tables = []
    for file in sorted((RESULTS / "standard" / "beyond").glob("*/*.json")):
        result = json.loads(file.read_text())
        runs = [run for entry in result.get("repetitions", ()) for run in entry["runs"] if "ACC" in run]
        if len(runs) < 5 or "partners" not in runs[0]["terms"] or "smooth" in result["protocol"]:
            continue
        accuracy = [run["ACC"] for run in runs]
        chosen = [
            runs[rank_runs(runs, result["protocol"]["n_clusters"], name)[0]]["ACC"]
            for name in ("loss", "partners")
        ]
        row = [np.mean(accuracy), *chosen, max(accuracy)]
        for name in columns:
            values = [{**run, **run["terms"]}.get(name) for run in runs]
            row.append(None if None in values else correlation(SIGNS[name] * np.array(values), accuracy))
        tables.append(row)
        text += f"| {file.parent.name}, {file.stem} | {len(runs)} | {_row(row, np.std(accuracy))}\n"
    means = [
        np.mean([value for value in column if value is not None]) for column in zip(*tables, strict=True)
    ]
    return text + f"| mean of the rows | | {_row(means)}\n"


def _row(values: list[float | None], deviation: float | None = None) -> str:
    """Four accuracies, the first with its deviation, and correlations."""
    first, *others = (f"{value:.3f}" for value in values[:4])
    shown = ["-" if value is None else f"{value:+.2f}" for value in values[4:]]
    return " | ".join([first if deviation is None else f"{first} ± {deviation:.3f}", *others, *shown]) + " |"


def cell(value: dict) -> str:
    return f"{value['mean']:.3f} ± {value['sd']:.3f}"


if __name__ == "__main__":
    write_report() if sys.argv[1:] == ["report"] else main()
