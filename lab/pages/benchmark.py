"""The section of RESULTS.md on a public benchmark of tables of numbers."""

from __future__ import annotations

from collections.abc import Iterable

from lab.benchmark import PREFIX, is_development
from lab.experiments.benchmark import DEFAULT, UMAP
from lab.pages.found import Found, largest
from lab.pages.markdown import percent_spread, table
from lab.paths import Place
from lab.runner import spread

AS_GOOD, NEAR = 0.01, 0.02


def benchmark_section(place: Place) -> Iterable[str]:
    """DDC by default, simple methods, and UMAP with a mixture."""
    results = largest("benchmark", place)
    sets = [found for (_, name), found in results.items() if name == DEFAULT]
    if not sets:
        return
    options = sets[0].result["protocol"]["options"]
    yield "## Tables of numbers: a public benchmark\n"
    yield (
        "`python -m lab run benchmark`. Gagolewski's *clustering-data-v1* and pendigits of UCI, with no option but the number of"
        f" clusters, in single runs of {options['iterations']} iterations, {options['seeds']} seeds. *k-means* has ten starts on the same"
        " scaled vectors, the *mixture* by BIC three. *UMAP* is UMAP with 15 neighbours and a mixture on it, for sets of at least"
        " 1,000 items. *Learnt* is the simple method whose clusters the network learns ([the rule](docs/defaults.md)). Half of the"
        " sets served to choose that rule; the others judge it, and were first looked at afterwards. The classes only score; items"
        " of noise are not scored. Many of these sets were drawn to be hard for k-means.\n"
    )
    judging = [found for found in sets if not is_development(found.cell.data)]
    for title, members in (
        ("the sets that judge", judging),
        ("development", [found for found in sets if found not in judging]),
    ):
        yield f"### Benchmark: {title}\n"
        yield _summary(members, results)
        header = ("table", "rows", "DDC", "k-means", "mixture", "UMAP", "learnt", "from")
        yield table(header, [_row(found, results, place) for found in members])


def _accuracy(found: Found, method: str) -> float:
    scored = found.result["facts"][method]
    return sum(score["ACC"] for score in scored) / len(scored)


def _of_umap(found: Found, results: dict[tuple[str, str], Found]) -> list[dict[str, float]]:
    other = results.get((found.cell.data, UMAP))
    return [] if other is None else other.result["facts"]["scores"]


def _summary(members: list[Found], results: dict[tuple[str, str], Found]) -> str:
    """How often DDC is as good as the others, and by how much on average."""
    ours = [_accuracy(found, "ddc") for found in members]
    simple = [[_accuracy(found, method) for method in ("k-means", "mixture")] for found in members]
    as_good = sum(own >= max(both) - AS_GOOD for own, both in zip(ours, simple, strict=True))
    k_means = sum(own >= both[0] - AS_GOOD for own, both in zip(ours, simple, strict=True))
    text = (
        f"Of {len(members)} sets the default is as good as the better of k-means and the mixture, or better, on {as_good} (to within"
        f" {AS_GOOD * 100:.0f} point of ACC), and as k-means on {k_means}. Mean ACC: {_mean(ours)}, k-means"
        f" {_mean([both[0] for both in simple])}, mixture {_mean([both[1] for both in simple])}."
    )
    beside = [(own, _of_umap(found, results)) for own, found in zip(ours, members, strict=True)]
    beside = [(own, scored[0]["ACC"]) for own, scored in beside if scored]
    if not beside:
        return text + "\n"
    near = sum(own >= other - NEAR for own, other in beside)
    return (
        f"{text} Of the {len(beside)} sets with UMAP it is within {NEAR * 100:.0f} points of that, or better, on {near}; mean ACC"
        f" {_mean([own for own, _ in beside])}, UMAP {_mean([other for _, other in beside])}.\n"
    )


def _mean(values: list[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"


def _row(found: Found, results: dict[tuple[str, str], Found], place: Place) -> tuple[str, ...]:
    facts, of_umap = found.result["facts"], _of_umap(found, results)
    return (
        f"{found.cell.data.removeprefix(PREFIX)}, {found.cell.n_clusters} classes",
        f"{found.result['data']['shape'][0]:,} x {found.result['data']['shape'][1]}",
        *(percent_spread(spread(facts[name])["ACC"]) for name in ("ddc", "k-means", "mixture")),
        f"{100 * of_umap[0]['ACC']:.1f}" if of_umap else "",
        ", ".join(sorted({kind or "nothing" for kind in facts["anchors"]})),
        found.link(place),
    )
