"""What restarts, early elimination and voting are worth: many full runs on one data set, then every choice replayed.

    python experiments/restarts.py digits -k 10 --runs 40 --group 8 --balance 30 --max-iter 1000

All runs train to the end, and their unsupervised loss is recorded at the points where successive halving would judge
them. Any group of them can then be replayed: what the full protocol chooses, what elimination would have chosen and
saved, and what the vote of the best three gives. Labels serve only to score the choices. The fit is resumable: run the
command again after an interruption. Results go to experiments/results/restarts-NAME.json, and docs/restarts.md is
written from all of them (`python experiments/restarts.py report` does that alone).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from ddclust import DDC, DDCLoss, datasets
from ddclust.choosing.consensus import majority_vote
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.data.items import fingerprint
from ddclust.results import versions
from ddclust.training import run as _runs

RESULTS = Path(__file__).parent / "results"
N_VOTE = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("-k", type=int, required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--group", type=int, default=8, help="restarts of one repetition")
    parser.add_argument("--balance", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=1000)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    options = parser.parse_args()
    bunch = datasets.load(options.data)

    # With as many votes as runs nothing is eliminated, but every run is judged at every stage.
    model = DDC(
        options.k,
        loss=DDCLoss(weights=(1, options.balance, 1)),
        n_init=options.runs,
        n_vote=options.runs,
        early_elimination=True,
        max_iter=options.max_iter,
        patience=None,
        random_state=0,
        checkpoint_dir=options.checkpoints / bunch.name,
        verbose=True,
    ).fit(bunch.data)
    probabilities = model.member_probabilities(bunch.data)
    labels = {run: p.argmax(axis=1) for run, p in zip(model.voters_, probabilities, strict=True)}

    order = np.random.default_rng(0)
    disjoint = np.array_split(np.arange(options.runs), options.runs // options.group)
    drawn = [order.choice(options.runs, options.group, replace=False) for _ in range(200)]
    result = {
        "data": {"name": bunch.name, "shape": list(bunch.data.shape), "sha256": fingerprint(bunch.data)},
        "protocol": vars(options) | {"data": bunch.name, "checkpoints": None, "loss": repr(model.loss)},
        "versions": versions(),
        "runs": [
            {
                key: record[key]
                for key in ("seed", "loss", "clusters_used", "outcome", "n_iter", "seconds", "rungs")
            }
            | scores(bunch.target, labels.get(record["run"]))
            for record in model.runs_
        ],
        "disjoint groups": replay(model, labels, bunch.target, disjoint),
        "200 drawn groups": replay(model, labels, bunch.target, drawn),
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"restarts-{bunch.name}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(file)
    write_report()


def scores(truth, labels) -> dict:
    if labels is None:
        return {"ACC": None, "NMI": None}
    return {"ACC": round(clustering_accuracy(truth, labels), 4), "NMI": round(nmi(truth, labels), 4)}


def replay(model, labels, truth, groups) -> dict:
    """Each choice's ACC and NMI, mean and spread over groups of runs, and what elimination saves."""
    rows: dict[str, list] = {
        "mean run": [],
        "best by loss": [],
        "best after elimination": [],
        "vote of three": [],
    }
    saved, same, not_worse = [], [], []
    for group in groups:
        records = [model.runs_[run] for run in group]
        usable = [run for run in group if run in labels]
        ranked = [int(group[i]) for i in _runs.rank_runs(records, model.n_clusters) if group[i] in labels]
        chosen, cost = eliminate(model, [int(run) for run in group])
        each = [scores(truth, labels[run]) for run in usable]
        full, early = scores(truth, labels[ranked[0]]), scores(truth, labels[chosen])
        rows["mean run"].append(
            {name: float(np.mean([score[name] for score in each])) for name in ("ACC", "NMI")}
        )
        rows["best by loss"].append(full)
        rows["best after elimination"].append(early)
        rows["vote of three"].append(scores(truth, majority_vote([labels[run] for run in ranked[:N_VOTE]])))
        saved.append(1 - cost / (model.max_iter * len(group)))
        same.append(chosen == ranked[0])
        not_worse.append(early["ACC"] >= full["ACC"] - 0.01)
    return {
        "groups": len(groups),
        "runs in a group": len(groups[0]),
        **{
            choice: {name: spread([score[name] for score in found]) for name in ("ACC", "NMI")}
            for choice, found in rows.items()
        },
        "iterations saved by elimination": spread(saved),
        "elimination chooses the same run": float(np.mean(same)),
        "elimination's ACC is at most .01 lower": float(np.mean(not_worse)),
        "vote is better than the best by loss": float(
            np.mean(
                [
                    v["ACC"] > b["ACC"]
                    for v, b in zip(rows["vote of three"], rows["best by loss"], strict=True)
                ]
            )
        ),
    }


def eliminate(model, group) -> tuple[int, int]:
    """The run that successive halving chooses from a group, and the iterations that it trains in all."""
    remaining, cost, reached = group, 0, 0
    for until, survivors in _runs.stages(len(group), 1, model.max_iter, eliminate=True):
        if len(remaining) > survivors:
            remaining = sorted(remaining, key=lambda run: model.runs_[run]["rungs"][str(reached)])[:survivors]
        cost += (until - reached) * len(remaining)
        reached = until
    records = [model.runs_[run] for run in remaining]
    return remaining[_runs.rank_runs(records, model.n_clusters)[0]], cost


def spread(values) -> dict:
    return {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values)), 4)}


INTRODUCTION = """# What restarts, elimination and the vote are worth

Written by `experiments/restarts.py` from its results (`experiments/results/restarts-*.json`, with every run's losses,
seeds and versions). All runs of a data set train to the end, and their unsupervised loss is recorded where successive
halving would judge them. Groups of runs are then replayed: what the full protocol chooses (lowest loss), what
`early_elimination` would have chosen, and the vote of the best three (`n_vote=3`). *Disjoint* groups are independent
repetitions; *drawn* ones are 200 random groups from the same runs, so they are not, but show the frequencies better.
Labels serve only to score. Values are mean ± standard deviation over groups.
"""


def write_report() -> None:
    """docs/restarts.md, from all results."""
    text = INTRODUCTION
    for file in sorted(RESULTS.glob("restarts-*.json")):
        result = json.loads(file.read_text())
        protocol = result["protocol"]
        text += (
            f"\n## {result['data']['name']}, {result['data']['shape'][0]:,} items, k = {protocol['k']}\n\n"
        )
        text += (
            f"{protocol['runs']} runs of {protocol['max_iter']:,} iterations each; `{protocol['loss']}`.\n\n"
        )
        kinds = ("disjoint groups", "200 drawn groups")
        names = [f"{result[kind]['groups']} groups of {result[kind]['runs in a group']}" for kind in kinds]
        text += f"| | {names[0]}, disjoint | {names[1]}, drawn |\n| --- | --- | --- |\n"
        for row in result[kinds[0]]:
            if row not in ("groups", "runs in a group"):
                text += f"| {row} | {cell(result[kinds[0]][row])} | {cell(result[kinds[1]][row])} |\n"
    (Path(__file__).parents[1] / "docs" / "restarts.md").write_text(text)


def cell(value) -> str:
    if not isinstance(value, dict):
        return f"{value:.0%}"
    if "mean" in value:
        return f"{value['mean']:.1%} ± {value['sd']:.1%}"
    return ", ".join(f"{name} {v['mean']:.3f} ± {v['sd']:.3f}" for name, v in value.items())


if __name__ == "__main__":
    write_report() if sys.argv[1:] == ["report"] else main()
