"""RESULTS.md: the paper's figures and ours side by side, from the results on disk alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lab import printed
from lab.data import BETWEEN, SEALS
from lab.experiments.beyond import ABOUT
from lab.experiments.sizes import CLUSTERS, READ
from lab.pages.benchmark import benchmark_section
from lab.pages.encoded import encoded_section
from lab.pages.found import Found, largest, of_data
from lab.pages.markdown import (
    nmi_and_acc,
    nmi_and_acc_spread,
    percent,
    percent_spread,
    sizes,
    spread_text,
    table,
    write_page,
)
from lab.pages.mixed import mixed_section
from lab.pages.numbers import many_section, numbers_section
from lab.pages.pool import BETTER, pool_section
from lab.paths import Place
from lab.pool import LOWEST_LOSS, VOTE, choices, pools
from lab.runner import spread

METHOD_ORDER = ("k-means", "ITC (parzen)", "ITC (knn)", "SEC", "LDMGI", "DEC", "DDC", "DDC-VOTE")
STARTS = {  # of the output layer
    "auto": "He's start of the output layer for images, a soft one for texts",
    "he": "He's start of the output layer",
    "soft": "a soft start of the output layer",
}
INTRODUCTION = """# Results

`python -m lab` writes this page from the JSON files in `lab/results/`; no figure of ours is typed by hand. Each file
names its command, commit, parameters, seeds, library versions and machine, and holds every run. The paper is
Kampffmeyer et al., *Deep Divergence-Based Approach to Clustering*, Neural Networks 113, 2019.

- **Label-free** is what a user without classes gets: the run with the lowest unsupervised objective or, among several
  hyperparameters, the clustering that agrees most with the others.
- **Best** is chosen with the classes, as the paper does for its reference methods. It only shows what is possible.
- **ACC** is the accuracy in percent after the best one-to-one matching of clusters and classes.
- **Mean ± sd** is over all fits (for DDC: over the runs whose networks are kept, in Table 1 the three with the lowest loss), and **n** is their number.
- **Budgets**: `quick` takes minutes and shows that everything works; `standard` takes about three hours on two cores;
  `paper` is the paper's own size (20 runs of 70,000 iterations for DDC). The largest budget that has been run is shown.
- **Data**: the paper's seals are private, so `seals-2` and `seals-3` show other seals. RCV1 needs a download, so
  `agnews`, `rcv1-subset` and `reuters21578` stand in for it. On these data only the order of the methods can be compared
  with the paper. `ddclust datasets` has more about them.
"""
POOLED = (
    "DDC: means over three times 20 runs of 7,000 iterations (the paper: 20 of 70,000), none stopped early; see *The"
    " paper's protocol at size*."
)
BEYOND = """`python -m lab run beyond`. The paper has no pairs (augmented copies, neighbours), links, views or sizes. The
methods of Table 1 follow below them.

- Every run trains from scratch and without classes, with two exceptions: cells whose name ends in `links-500` know 500
  links, and `given-sizes` knows the sizes of the classes.
- **Chosen with classes in sight** (of MNIST, AG News and the RCV1 subset): the strength of the augmentation, the weights of
  the loss, the numbers of neighbours, topics and runs, and the learning rates.
- **Chosen on other seeds than those shown**: the learning rate and the iterations of texts, the orthogonality weight on the
  RCV1 subset, that sizes come in during the first third of training, and that linked items are augmented.
- *n* counts the runs that use all clusters. Other runs are neither chosen nor scored.
- At a lower learning rate (4e-4, 500 iterations) ten runs had given 83.9 on AG News, and ten runs with other seeds only
  69.9."""


def write_results(place: Place) -> None:
    """Write RESULTS.md."""
    from_scratch = (pool_section, _table1, _beyond, _seals, _ablation, _readings)
    parts = (
        *from_scratch,
        numbers_section,
        many_section,
        mixed_section,
        benchmark_section,
        encoded_section,
        _figures,
    )
    text = "\n".join([INTRODUCTION, *(line for part in parts for line in part(place))])
    write_page(place.results_page, text)


# --- Table 1 ---------------------------------------------------------------------------------------------------------


def _table1(place: Place) -> Iterable[str]:
    results = largest("table1", place)
    yield "## Table 1: every method on every data set\n"
    yield "`python -m lab run table1`\n"
    for data in CLUSTERS:
        found = of_data(results, data)
        if not found:
            continue
        stands_in = printed.STANDS_IN_FOR.get(data)
        paper = printed.TABLE_1[stands_in or data]
        rows = {row[0]: row for one in found for row in _table1_rows(one, paper, place)}
        pooled = {row[0]: row for row in _pool_rows(paper, place)} if data == "mnist" else {}
        yield f"### {data}: {sizes(found[0].result)}\n"
        header = (
            "method",
            f"paper{' (RCV1)' if stands_in else ''}: NMI, ACC",
            "label-free: NMI, ACC",
            "best: NMI, ACC",
            "mean ± sd: NMI, ACC",
            "n",
            "minutes",
            "from",
        )
        is_pooled = "DDC" not in rows and bool(pooled)
        rows = pooled | rows
        yield table(header, [rows[method] for method in METHOD_ORDER if method in rows])
        protocols = [*_protocols(found), *([POOLED] if is_pooled else [])]
        yield "\n".join(f"- {line}" for line in protocols) + "\n"


def _table1_rows(found: Found, paper: dict[str, printed.Printed], place: Place) -> Iterable[tuple[str, ...]]:
    if "summary" in found.result:
        yield from _ddc_rows(found, paper, place)
    for row in found.result.get("rows", ()):
        title, link = row["method"], found.link(place)
        if not row["fits"]:
            reason = row["failures"][0]["error"] if row["failures"] else ""
            yield title, _printed(paper.get(title)), reason, "", "", "0", "", link
            continue
        k = found.cell.n_clusters
        yield (
            title,
            _printed(paper.get(title)),
            nmi_and_acc(row["label_free"]) + _empty_clusters(row["label_free"], k),
            nmi_and_acc(row["best"]) + _empty_clusters(row["best"], k),
            _means_of_fits(row),
            str(row["fits"]),
            f"{row['total_seconds'] / 60:.1f}",
            link,
        )


def _ddc_rows(found: Found, paper: dict[str, printed.Printed], place: Place) -> Iterable[tuple[str, ...]]:
    repetition, runs = found.result["repetitions"][0], found.result["summary"]["runs"]
    minutes = sum(run["seconds"] for run in repetition["runs"]) / 60
    yield (
        "DDC",
        _printed(paper.get("DDC")),
        nmi_and_acc(repetition["chosen"]),
        nmi_and_acc(_best_run(repetition)),
        nmi_and_acc_spread(runs),
        str(runs["n"]),
        f"{minutes:.1f}",
        found.link(place),
    )
    if repetition["vote"]:
        vote = nmi_and_acc(repetition["vote"])
        yield "DDC-VOTE", _printed(paper.get("DDC-VOTE")), vote, "", "", "", "", found.link(place)


def _pool_rows(paper: dict[str, printed.Printed], place: Place) -> Iterable[tuple[str, ...]]:
    """DDC and DDC-VOTE on MNIST from the pool: means over its repetitions of the best of 20 runs."""
    pool = next((pool for pool in pools(place) if (pool.reading, pool.precision) == BETTER), None)
    if pool is None:
        return
    made: dict[str, list[dict[str, float]]] = {LOWEST_LOSS: [], VOTE: []}
    for repetition in pool.repetitions:
        for choice in choices(repetition, place):
            if choice.rule in made:
                made[choice.rule].append(choice.scores)
    runs, link = pool.runs, "[paper](#the-papers-protocol-at-size-mnist)"
    yield (
        "DDC",
        _printed(paper.get("DDC")),
        nmi_and_acc_spread(spread(made[LOWEST_LOSS])),
        nmi_and_acc(max(runs, key=lambda run: run["ACC"])),
        nmi_and_acc_spread(spread(runs)),
        str(len(runs)),
        f"{sum(run['seconds'] for run in runs) / 60:.1f}",
        link,
    )
    votes = nmi_and_acc_spread(spread(made[VOTE]))
    yield "DDC-VOTE", _printed(paper.get("DDC-VOTE")), votes, "", "", "", "", link


def _best_run(repetition: dict[str, Any]) -> dict[str, Any]:
    return max((run for run in repetition["runs"] if "ACC" in run), key=lambda run: run["ACC"])


def _protocols(found: Sequence[Found]) -> Iterable[str]:
    """The protocols of Table 1 in words, a line for each method that has something to say."""
    defaults_only = []
    for one in found:
        protocol, name = one.result["protocol"], one.cell.name
        if name == "ddc":
            yield _ddc_protocol(protocol["params"])
        elif name == "dec":
            given = ", ".join(f"{key} {value}" for key, value in protocol["params"].items())
            fits = "one fit" if protocol["runs"] == 1 else f"{protocol['runs']} fits"
            yield f"DEC: {fits}, {given or 'default schedule'} (the paper: 20)."
        elif name == "k-means":
            yield f"k-means: {protocol['runs']} runs (the paper: 20)."
        elif protocol["choices"] == 1:
            defaults_only.append(name)
    if defaults_only:
        yield f"{', '.join(defaults_only)}: default hyperparameters only (the paper: nine choices)."


def _ddc_protocol(params: dict[str, Any]) -> str:
    rule = params["loss"]["DDCLoss"]["bandwidth_rule"]
    how = ", convolutions in bfloat16" if params.get("precision") == "bfloat16" else ""
    distance = {"median": "median distance", "squared_median": "median squared distance"}[rule]
    return (
        f"DDC: {params['n_init']} runs of {params['max_iter']:,} iterations{how} (the paper: 20 of 70,000);"
        f" {STARTS[params['network']['Network']['init']]}, bandwidth from the {distance}; the vote is"
        " of the best three."
    )


# --- beyond the paper ------------------------------------------------------------------------------------------------


def _beyond(place: Place) -> Iterable[str]:
    results, references = largest("beyond", place), largest("table1", place)
    if not results:
        return
    yield "## Beyond the paper: pairs, links, views and sizes\n"
    yield f"{BEYOND}\n"
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
    for data in dict.fromkeys(data for data, _ in results):
        found = of_data(results, data)
        yield f"### {data}: {sizes(found[0].result)}\n"
        everything = found + of_data(references, data)
        yield table(header, [row for one in everything for row in _beyond_rows(one, place)])
        lines = [f"- {one.cell.name}: {ABOUT[one.cell.name]}" for one in found if one.cell.name in ABOUT]
        yield "\n".join(lines) + "\n"


def _beyond_rows(found: Found, place: Place) -> Iterable[tuple[str, ...]]:
    if "summary" in found.result:
        repetition, runs = found.result["repetitions"][0], found.result["summary"]["runs"]
        seconds = [run["seconds"] for run in repetition["runs"] if "ACC" in run]
        yield (
            found.cell.name if found.cell.experiment == "beyond" else "DDC as in Table 1",
            nmi_and_acc(repetition["chosen"]),
            nmi_and_acc(repetition["vote"]),
            nmi_and_acc_spread(runs),
            nmi_and_acc(_best_run(repetition)),
            str(runs["n"]),
            f"{sum(seconds) / len(seconds) / 60:.1f}",
            found.link(place),
        )
    for row in found.result.get("rows", ()):
        if row["fits"]:
            yield (
                row["method"],
                nmi_and_acc(row["label_free"]),
                "",
                _means_of_fits(row),
                nmi_and_acc(row["best"]),
                str(row["fits"]),
                f"{row['total_seconds'] / row['fits'] / 60:.1f}",
                found.link(place),
            )


# --- pairs of seals --------------------------------------------------------------------------------------------------


def _seals(place: Place) -> Iterable[str]:
    results = largest("seals", place)
    if not results:
        return
    params = next(iter(results.values())).result["protocol"]["of"]["params"]
    yield "## Two kinds of seals\n"
    yield (
        "`python -m lab run seals`. ACC of every pair of the seals' classes; chance is 50. DDC is the lowest loss of"
        f" {params['n_init']} runs of {params['max_iter']:,} iterations, without pairs of items; ITC uses nearest neighbours;"
        " *brightness* is k-means of the mean brightness alone. *Learnt* is the accuracy of a support vector machine, trained"
        " with labels, on photographs that it has not seen. *By photo* is the NMI of DDC's clusters and the photographs that"
        " the crops come from, beside the NMI of its clusters and the classes. The paper has 72.05 for DDC on its own seals.\n"
    )
    header = (
        "classes",
        "DDC",
        "single runs",
        "k-means",
        "ITC",
        "brightness",
        "learnt",
        "NMI by class, by photo",
        "from",
    )
    yield table(header, [_seals_row(found, place) for found in results.values()])


def _seals_row(found: Found, place: Place) -> tuple[str, ...]:
    facts = found.result["facts"]
    data, _, classes = found.cell.data.partition(BETWEEN)
    scores, runs = facts["scores"], [run["ACC"] for run in facts["runs"]]
    learnt, ddc = facts["learnt"], scores["ddc"]
    return (
        f"{classes.replace('_', ' ').replace('+', ' and ')}, {SEALS[data]} pixels",
        percent(ddc["ACC"]),
        f"{percent(min(runs))} to {percent(max(runs))}",
        *(percent(scores[name]["ACC"]) for name in ("k-means", "itc-knn", "brightness")),
        f"{percent(learnt['mean'])} ± {percent(learnt['sd'])}",
        f"{ddc['NMI']:.3f}, {ddc['by_photo']:.3f}",
        found.link(place),
    )


# --- Table 2 and readings ----------------------------------------------------------------------------------


def _ablation(place: Place) -> Iterable[str]:
    results = largest("ablation", place)
    if not results:
        return
    yield "## Table 2: the terms of the loss, and other divergences\n"
    yield (
        "`python -m lab run ablation`, by the rules of [docs/paper-protocol.md](docs/paper-protocol.md). l1: divergence, l2:"
        " orthogonality, l3: corners. ACC of the label-free choice.\n"
    )
    header = (
        "terms or divergence",
        "paper: mean ± sd",
        "max",
        "ours: mean ± sd",
        "max",
        "single runs (n)",
        "from",
    )
    for data in dict.fromkeys(data for data, _ in results):
        found = of_data(results, data)
        params, repetitions = (
            found[0].result["protocol"]["params"],
            found[0].result["protocol"]["repetitions"],
        )
        rows = [
            (one.cell.name.replace("_", " "), *_printed_ablation(one), *_chosen_and_runs(one, place))
            for one in found
        ]
        yield f"### {data}: {sizes(found[0].result)}\n"
        yield table(header, rows)
        yield (
            f"{repetitions} repetitions of the best of {params['n_init']} runs of {params['max_iter']:,} iterations (the"
            f" paper: 5, 20, 70,000{', on RCV1' if data in printed.STANDS_IN_FOR else ''}).\n"
        )


def _printed_ablation(found: Found) -> tuple[str, str]:
    """What the paper has for a subset of the terms, or for a divergence."""
    name, data = found.cell.name, printed.STANDS_IN_FOR.get(found.cell.data, found.cell.data)
    if name in printed.DIVERGENCES:
        return f"{printed.DIVERGENCES[name]}", ""
    paper = printed.TABLE_2[data][name]
    return f"{paper.mean} ± {paper.sd}", str(paper.max)


def _chosen_and_runs(found: Found, place: Place) -> tuple[str, ...]:
    """ACC of the label-free choice over repetitions, and of all single runs."""
    chosen, runs = found.result["summary"]["chosen"]["ACC"], found.result["summary"]["runs"]
    return (
        percent_spread(chosen),
        percent(chosen["max"]),
        f"{percent_spread(runs['ACC'])} ({runs['n']})",
        found.link(place),
    )


def _readings(place: Place) -> Iterable[str]:
    results = largest("readings", place)
    if results:
        yield "## Readings of the paper\n"
        yield "`python -m lab run readings`. docs/readings.md says what follows from them.\n"
    header = (
        "reading",
        "ACC, mean ± sd",
        "NMI, mean ± sd",
        "lowest loss: NMI, ACC",
        "n",
        "clusters used",
        "from",
    )
    for data in READ:
        found = of_data(results, data)
        if not found:
            continue
        found.sort(key=lambda one: -one.result["summary"]["runs"]["ACC"]["mean"])
        yield f"### {data}, {found[0].result['protocol']['params']['max_iter']:,} iterations\n"
        yield table(header, [_reading_row(one, place) for one in found])


def _reading_row(found: Found, place: Place) -> tuple[str, ...]:
    runs, once = found.result["summary"]["runs"], found.result["repetitions"][0]
    return (
        found.cell.name,
        percent_spread(runs["ACC"]),
        spread_text(runs["NMI"]),
        nmi_and_acc(once["chosen"]),
        str(runs["n"]),
        ", ".join(str(run["clusters_used"]) for run in once["runs"]),
        found.link(place),
    )


# --- figures ---------------------------------------------------------------------------------------------------------


def _figures(place: Place) -> Iterable[str]:
    results = largest("figures", place)
    if results:
        yield "## Figures\n"
        yield "`python -m lab run figures`\n"
    for found in results.values():
        name, picture = found.cell.name, found.cell.work
        yield f"### {name}\n\n![{name}]({found.result['picture']})\n"
        yield f"{picture.caption} {_facts(found.result['facts'])}({found.link(place)})\n"  # type: ignore[union-attr]


def _facts(facts: dict[str, Any]) -> str:
    if "said" in facts:
        return f"{facts['said']} "
    accuracy = facts.get("ACC")
    if isinstance(accuracy, float):
        return f"ACC {percent(accuracy)} %. "
    if isinstance(accuracy, dict):
        return "ACC: " + ", ".join(f"{name} {percent(value)} %" for name, value in accuracy.items()) + ". "
    if isinstance(accuracy, list):
        return f"ACC at the end: {percent(accuracy[-1])} %. "
    return ""


# --- cells of tables -------------------------------------------------------------------------------------------------


def _printed(paper: printed.Printed | None) -> str:
    return "-" if paper is None else f"{paper.NMI:g}, {paper.ACC:g}"


def _empty_clusters(scores: dict[str, Any], n_clusters: int) -> str:
    """A word where a fit has left clusters empty."""
    used = scores["clusters_used"]
    return "" if used == n_clusters else f" (uses {used} of {n_clusters} clusters)"


def _means_of_fits(row: dict[str, Any]) -> str:
    """NMI and ACC over the fits of a reference method, if there are several."""
    if row["fits"] == 1:
        return ""
    return (
        f"{row['NMI_mean']:.3f} ± {row['NMI_sd']:.3f}, {percent(row['ACC_mean'])} ± {percent(row['ACC_sd'])}"
    )
