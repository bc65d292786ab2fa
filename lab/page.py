"""RESULTS.md: the paper's figures and ours side by side, from the results on disk alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ddclust.storage.atomic import write_file
from lab import paper as _paper
from lab.cells import BUDGETS, Cell
from lab.declared import ABLATED, ABOUT, CLUSTERS, TABLE_1_BY_MEDIAN, declared
from lab.runner import Place, read_result, state

METHOD_ORDER = ("k-means", "ITC (parzen)", "ITC (knn)", "SEC", "LDMGI", "DEC", "DDC", "DDC-VOTE")
INTRODUCTION = """# Results

Written by `ddclust reproduce` from the JSON files in `experiments/results/`; no figure of ours is typed by hand. Each
file says by which command, commit, parameters, seeds, library versions and machine it was made, and holds every run.
The paper is Kampffmeyer et al., *Deep Divergence-Based Approach to Clustering*, Neural Networks 113, 2019.

- **Label-free**: what a user without classes gets. Of restarts, the one with the lowest unsupervised objective; of
  different hyperparameters, the one whose clustering agrees most with the others'. **Best** is chosen with the classes,
  as the paper does for its baselines, and only shows what would be possible.
- ACC is the accuracy in percent after the best one-to-one matching of clusters and classes. **Mean ± sd** is over all
  fits (for DDC: over the restarts that trained to the end); n is their number.
- `--budget quick` takes minutes and shows that all works; `standard` about three hours on two cores; `paper` is the
  paper's own size (for DDC 20 restarts of 70,000 iterations each). The largest budget that has been run is shown.
- Data that are not the paper's: its seals are private, and `seals-2`, `seals-3` are other seals (see `ddclust
  datasets`); RCV1 needs a download, so `agnews`, `rcv1-subset` and `reuters21578` stand in for it. Their figures and the
  paper's cannot be compared, only the order of methods.
"""
BEYOND = """`ddclust reproduce beyond`. Partners of items (changed copies, neighbours), links, views and sizes, which the paper
has not, and below each the methods of Table 1. Every run trains from scratch without classes, except that those whose name
ends in `links-500` are told of pairs and `given-sizes` of the sizes of classes. But the augmentation's strength,
the weights of the loss, the numbers of neighbours, of topics and of starts, and the learning rates of partners were chosen
with the classes of MNIST, AG News and the RCV1 subset in sight. Rate and length of texts, the balance on the RCV1 subset, and
that sizes come in during the first third and linked items as changed copies were chosen on starts of another seed than those
of the tables. *n* is the number of runs that use all clusters; others are neither chosen nor scored. At a lower rate (4e-4, 500 iterations) ten starts had given 83.9 on AG News and ten others, `other-starts`,
only 69.9."""


# What a figure leaves unsaid.
CAUTIONS = {
    "numbers-of-clusters": (
        "The number of classes was known when the rule was made: an earlier one, the largest stable number, said 13 in a"
        " scan of 5 to 13. "
    )
}


def write_page(place: Place) -> None:
    """Write RESULTS.md."""
    parts = (_table1, _beyond, _table2, _divergences, _readings, _figures)
    text = "\n".join([INTRODUCTION, *(line for part in parts for line in part(place))])
    write_file(place.page, text.encode())


def largest(experiment: str, place: Place) -> dict[tuple[str, str], tuple[Cell, dict[str, Any]]]:
    """(data, cell) -> the cell and its result, by the largest budget that there is one of."""
    found = {}
    for budget in BUDGETS:
        for cell in declared(experiment, budget):
            result = read_result(place.result(cell))
            if result is not None:
                found[cell.data, cell.name] = (cell, result)
    return found


def _table1(place: Place) -> Iterable[str]:
    results = largest("table1", place)
    yield "## Table 1: every method on every data set\n"
    yield "`ddclust reproduce table1`\n"
    for data in CLUSTERS:
        cells = [(cell, result) for (name, _), (cell, result) in results.items() if name == data]
        if not cells:
            continue
        stands_in = _paper.STANDS_IN_FOR.get(data)
        printed = _paper.TABLE_1[stands_in or data]
        rows = {row[0]: row for cell, result in cells for row in _table1_rows(cell, result, printed, place)}
        yield f"### {data}: {_sizes(cells[0][1])}\n"
        yield _table(
            (
                "method",
                f"paper{' (RCV1)' if stands_in else ''}: NMI, ACC",
                "label-free: NMI, ACC",
                "best: NMI, ACC",
                "mean ± sd: NMI, ACC",
                "n",
                "minutes",
                "from",
            ),
            [rows[method] for method in METHOD_ORDER if method in rows],
        )
        yield f"{_protocol_of_table1(cells)}\n"


def _table1_rows(
    cell: Cell, result: dict[str, Any], printed: dict[str, _paper.Printed], place: Place
) -> Iterable[tuple[str, ...]]:
    link = _link(cell, result, place)
    if "summary" in result:
        repetition, spread = result["repetitions"][0], result["summary"]["runs"]
        runs = [run for run in repetition["runs"] if "ACC" in run]
        minutes = f"{sum(run['seconds'] for run in repetition['runs']) / 60:.1f}"
        ways = {
            "DDC": (
                repetition["chosen"],
                max(runs, key=lambda run: run["ACC"]),
                _means(spread),
                str(spread["n"]),
            )
        }
        if repetition["vote"]:
            ways["DDC-VOTE"] = (repetition["vote"], None, "", "")
        for title, (free, best, means, n) in ways.items():
            yield (
                title,
                _printed(printed.get(title)),
                _pair(free),
                _pair(best),
                means,
                n,
                minutes if title == "DDC" else "",
                link,
            )
        return
    for row in result["rows"]:
        title = row["method"]
        if not row["fits"]:
            reason = row["failures"][0]["error"] if row["failures"] else ""
            yield title, _printed(printed.get(title)), reason, "", "", "0", "", link
            continue
        yield (
            title,
            _printed(printed.get(title)),
            _pair(row["label_free"]) + _collapse(row["label_free"], cell.n_clusters),
            _pair(row["best"]) + _collapse(row["best"], cell.n_clusters),
            _means_of_fits(row),
            str(row["fits"]),
            f"{row['total_seconds'] / 60:.1f}",
            link,
        )


def _protocol_of_table1(cells: Sequence[tuple[Cell, dict[str, Any]]]) -> str:
    """How the figures above were come by, in words."""
    parts = []
    for cell, result in cells:
        protocol = result["protocol"]
        if cell.name == "ddc":
            params = protocol["params"]
            early = ", hopeless ones eliminated early" if params["early_elimination"] else ""
            parts.append(
                f"DDC: {params['n_init']} restarts of {params['max_iter']:,} iterations{early}, output layer started"
                f" {params['init']!r}, bandwidth by the {_bandwidth(params)} (the paper: 20 restarts of 70,000); the vote"
                " is of the best three."
            )
        elif cell.name == "dec":
            given = ", ".join(f"{name} {value}" for name, value in protocol["params"].items())
            fits = "one fit" if protocol["runs"] == 1 else f"{protocol['runs']} fits"
            parts.append(f"DEC: {fits}, {given or 'default schedule'} (the paper: 20).")
        elif cell.name == "k-means":
            parts.append(f"k-means: {protocol['runs']} restarts (the paper: 20).")
        elif protocol["choices"] == 1:
            parts.append(f"{cell.name}: default hyperparameters only (the paper: nine choices).")
    return " ".join(parts)


def _bandwidth(params: dict[str, Any]) -> str:
    """Of which distances the loss takes its bandwidth."""
    rule = params["loss"]["DDCLoss"]["bandwidth_rule"]
    return {"median": "median distance", "squared_median": "median squared distance"}[rule]


def _beyond(place: Place) -> Iterable[str]:
    results = largest("beyond", place)
    if not results:
        return
    yield "## Beyond the paper: what is known about the data\n"
    yield f"{BEYOND}\n"
    rivals = largest("table1", place)
    for data in dict.fromkeys(data for data, _ in results):
        cells = [pair for (name, _), pair in results.items() if name == data]
        rows = [row for cell, result in cells for row in _beyond_rows(cell, result, place)]
        rows += [
            row
            for (name, _), (cell, result) in rivals.items()
            if name == data
            for row in _beyond_rows(cell, result, place)
        ]
        yield f"### {data}: {_sizes(cells[0][1])}\n"
        header = (
            "method",
            "label-free: NMI, ACC",
            "vote of three: NMI, ACC",
            "single runs, mean ± sd: NMI, ACC",
            "best: NMI, ACC",
            "n",
            "minutes a run",
            "from",
        )
        yield _table(header, rows)
        yield (
            "\n".join(f"- {cell.name}: {ABOUT[cell.name]}" for cell, _ in cells if cell.name in ABOUT) + "\n"
        )


def _beyond_rows(cell: Cell, result: dict[str, Any], place: Place) -> Iterable[tuple[str, ...]]:
    link = _link(cell, result, place)
    if "summary" in result:
        repetition, spread = result["repetitions"][0], result["summary"]["runs"]
        runs = [run for run in repetition["runs"] if "ACC" in run]
        yield (
            cell.name if cell.experiment == "beyond" else "DDC as in Table 1",
            _pair(repetition["chosen"]),
            _pair(repetition["vote"]),
            _means(spread),
            _pair(max(runs, key=lambda run: run["ACC"])),
            str(spread["n"]),
            f"{sum(run['seconds'] for run in runs) / len(runs) / 60:.1f}",
            link,
        )
        return
    for row in result["rows"]:
        if row["fits"]:
            yield (
                row["method"],
                _pair(row["label_free"]),
                "",
                _means_of_fits(row),
                _pair(row["best"]),
                str(row["fits"]),
                f"{row['total_seconds'] / row['fits'] / 60:.1f}",
                link,
            )


def _table2(place: Place) -> Iterable[str]:
    results = largest("table2", place)
    yield "## Table 2: the terms of the loss\n"
    yield "`ddclust reproduce table2`. l1: divergence, l2: orthogonality, l3: corners. ACC of the label-free choice.\n"
    for data in ABLATED:
        rows, sizes, protocol = [], "", None
        for (name, subset), (cell, result) in results.items():
            if name != data:
                continue
            sizes, protocol = _sizes(result), result["protocol"]
            stands_in = _paper.STANDS_IN_FOR.get(data, data)
            paper = _paper.TABLE_2[stands_in][subset]
            chosen, runs = result["summary"]["chosen"], result["summary"]["runs"]
            rows.append(
                (
                    subset,
                    f"{paper.mean} ± {paper.sd}",
                    str(paper.max),
                    _mean(chosen["ACC"]),
                    _percent(chosen["ACC"]["max"]),
                    f"{_mean(runs['ACC'])} ({runs['n']})",
                    _link(cell, result, place),
                )
            )
        if protocol is None:
            continue
        of = " (RCV1)" if data in _paper.STANDS_IN_FOR else ""
        yield f"### {data}: {sizes}\n"
        header = (
            "terms",
            f"paper{of}: mean ± sd",
            "max",
            "ours: mean ± sd",
            "max",
            "single runs (n)",
            "from",
        )
        yield _table(header, rows)
        yield (
            f"{protocol['repetitions']} repetitions of the best of {protocol['params']['n_init']} restarts of"
            f" {protocol['params']['max_iter']:,} iterations (the paper: 5, 20, 70,000).\n"
        )


def _divergences(place: Place) -> Iterable[str]:
    rows = []
    for (_, name), (cell, result) in largest("divergences", place).items():
        chosen, runs = result["summary"]["chosen"], result["summary"]["runs"]
        rows.append(
            (
                f"`{name}`",
                f"{_paper.DIVERGENCES[name]}",
                _mean(chosen["ACC"]),
                _percent(chosen["ACC"]["max"]),
                f"{_mean(runs['ACC'])} ({runs['n']})",
                _link(cell, result, place),
            )
        )
    if rows:
        yield "## Divergences, MNIST\n"
        yield "`ddclust reproduce divergences`. The formulas are in `ddclust.objective.loss.kullback_leibler_similarity`.\n"
        header = (
            "`DDCLoss(divergence=...)`",
            "paper: ACC",
            "ours: mean ± sd",
            "max",
            "single runs (n)",
            "from",
        )
        yield _table(header, rows)
        yield "Protocol as in Table 2.\n"


def _readings(place: Place) -> Iterable[str]:
    results = largest("readings", place)
    if results:
        yield "## Readings of the paper\n"
        yield "`ddclust reproduce readings`. What follows from it is in docs/readings.md.\n"
    for data in ABLATED:
        of_data = [
            pair for (name, cell), pair in results.items() if name == data and cell != TABLE_1_BY_MEDIAN
        ]
        if not of_data:
            continue
        of_data.sort(key=lambda pair: -pair[1]["summary"]["runs"]["ACC"]["mean"])
        rows = [
            (
                cell.name,
                _mean(result["summary"]["runs"]["ACC"]),
                _nmi(result["summary"]["runs"]["NMI"]),
                _pair(result["repetitions"][0]["chosen"]),
                str(result["summary"]["runs"]["n"]),
                ", ".join(str(run["clusters_used"]) for run in result["repetitions"][0]["runs"]),
                _link(cell, result, place),
            )
            for cell, result in of_data
        ]
        yield f"### {data}, {of_data[0][1]['protocol']['params']['max_iter']:,} iterations\n"
        header = (
            "reading",
            "ACC, mean ± sd",
            "NMI, mean ± sd",
            "lowest loss: NMI, ACC",
            "n",
            "clusters used",
            "from",
        )
        yield _table(header, rows)
        if (data, TABLE_1_BY_MEDIAN) in results:
            cell, result = results[data, TABLE_1_BY_MEDIAN]
            once = result["repetitions"][0]
            yield (
                f"The median with the protocol of Table 1: NMI, ACC of the lowest loss {_pair(once['chosen'])}; of the"
                f" vote {_pair(once['vote'])}; of all that trained to the end {_means(result['summary']['runs'])}"
                f" ({_link(cell, result, place)}).\n"
            )


def _figures(place: Place) -> Iterable[str]:
    results = largest("figures", place)
    if results:
        yield "## Figures\n"
        yield "`ddclust reproduce figures`\n"
    for cell, result in results.values():
        caption = result["protocol"]["caption"]
        yield f"### {cell.name}\n\n![{cell.name}]({result['picture']})\n"
        facts = _facts(result["facts"]) + CAUTIONS.get(cell.name, "")
        yield f"{caption} {facts}({_link(cell, result, place)})\n"


def _facts(facts: dict[str, Any]) -> str:
    if "said" in facts:
        return f"{facts['said']} "
    accuracy = facts.get("ACC")
    if isinstance(accuracy, float):
        return f"ACC {_percent(accuracy)} %. "
    if isinstance(accuracy, dict):
        return "ACC: " + ", ".join(f"{name} {_percent(value)} %" for name, value in accuracy.items()) + ". "
    if isinstance(accuracy, list):
        return f"ACC at the end: {_percent(accuracy[-1])} %. "
    return ""


def _sizes(result: dict[str, Any]) -> str:
    data = result["data"]
    shape = " x ".join(f"{side:,}" for side in data["shape"])
    return f"{shape}, {len(data['classes'])} classes of {min(data['classes']):,} to {max(data['classes']):,}"


def _link(cell: Cell, result: dict[str, Any], place: Place) -> str:
    file = place.result(cell).relative_to(place.folder).as_posix()
    older = ", other protocol than declared" if state(cell, place) == "outdated" else ""
    return f"[{cell.budget}]({file}){older}"


def _printed(paper: _paper.Printed | None) -> str:
    return "-" if paper is None else f"{paper.NMI:g}, {paper.ACC:g}"


def _pair(scores: dict[str, float] | None) -> str:
    return "" if scores is None else f"{scores['NMI']:.3f}, {_percent(scores['ACC'])}"


def _collapse(scores: dict[str, Any], n_clusters: int) -> str:
    """A word where a fit has left clusters empty."""
    used = scores["clusters_used"]
    return "" if used == n_clusters else f" (uses {used} of {n_clusters} clusters)"


def _means_of_fits(row: dict[str, Any]) -> str:
    """NMI and ACC over the fits of a rival, if there are several."""
    if row["fits"] == 1:
        return ""
    return f"{row['NMI_mean']:.3f} ± {row['NMI_sd']:.3f}, {_percent(row['ACC_mean'])} ± {_percent(row['ACC_sd'])}"


def _means(spread: dict[str, Any]) -> str:
    return f"{_nmi(spread['NMI'])}, {_mean(spread['ACC'])}" if spread["n"] > 1 else ""


def _nmi(spread: dict[str, float | None]) -> str:
    sd = spread["sd"]
    return f"{spread['mean']:.3f}" + ("" if sd is None else f" ± {sd:.3f}")


def _mean(spread: dict[str, Any]) -> str:
    sd = spread["sd"]
    return _percent(spread["mean"]) + ("" if sd is None else f" ± {_percent(sd)}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
