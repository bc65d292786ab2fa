"""docs/restarts.md: what several runs, halving and the vote are worth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.pages.found import Found, largest
from lab.pages.markdown import table, write_page
from lab.paths import Place

INTRODUCTION = """# What several runs, halving and the vote are worth

`python -m lab run restarts` makes the results (`lab/results/*/restarts/`, with the losses and seeds of every run), and this
page is written from them.

All runs of a data set train to the end. Their loss is recorded where successive halving would judge them. Groups of runs are
then replayed:

- **lowest loss**: what the full protocol chooses;
- **lowest loss with halving**: what `selection=Selection(halving=True)` would have chosen;
- **vote of three**: the vote of the three lowest losses (`n_vote=3`).

*Disjoint* groups are independent repetitions. The 200 *drawn* groups share runs, so they are not independent, but they show
frequencies better. Classes serve only to score. Values are mean ± standard deviation over groups.
"""


def write_restarts(place: Place) -> bool:
    """Write docs/restarts.md, if there are results."""
    results = largest("restarts", place).values()
    if results:
        text = "\n".join([INTRODUCTION, *(_section(found) for found in results)])
        write_page(place.study_page("restarts"), text)
    return bool(results)


def _section(found: Found) -> str:
    facts, protocol = found.result["facts"], found.result["protocol"]
    params = protocol["of"]["params"]
    weight = params["loss"]["DDCLoss"]["weights"]["orthogonality"]
    header = ["", *(f"{_groups(facts[kind])}, {kind}" for kind in ("disjoint", "drawn"))]
    rows = zip(*(_column(facts[kind]) for kind in ("disjoint", "drawn")), strict=True)
    return (
        f"## {found.cell.data}, {found.result['data']['shape'][0]:,} items, k = {found.cell.n_clusters}\n\n"
        f"{params['n_init']} runs of {params['max_iter']:,} iterations each; orthogonality weight {weight:g}.\n\n"
        + table(header, [(name, first, second) for (name, first), (_, second) in rows])
    )


def _groups(facts: dict[str, Any]) -> str:
    return f"{facts['groups']} groups of {facts['runs_in_a_group']}"


def _column(facts: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """(row, value) of every row of the table."""
    for choice, scores in facts["choices"].items():
        parts = (f"{name} {score['mean']:.3f} ± {score['sd']:.3f}" for name, score in scores.items())
        yield choice, ", ".join(parts)
    saved = facts["iterations saved by halving"]
    yield "iterations saved by halving", f"{saved['mean']:.1%} ± {saved['sd']:.1%}"
    yield from ((name, f"{share:.0%}") for name, share in facts["shares"].items())
