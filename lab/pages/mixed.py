"""The section of RESULTS.md on tables of mixed kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lab.experiments.mixed import DEVELOPMENT_MIXED
from lab.pages.found import Found, largest
from lab.pages.markdown import percent_spread, table
from lab.paths import Place
from lab.runner import spread


def mixed_section(place: Place) -> Iterable[str]:
    """DDC and simple methods on the vectors of mixed tables."""
    results = largest("mixed", place)
    if not results:
        return
    options = next(iter(results.values())).result["protocol"]["options"]
    yield "## Tables of mixed kinds\n"
    yield (
        "`python -m lab run mixed`. Tables of R, of vega-datasets and one that is made (`orders`), as they are and with no option"
        f" but the number of clusters, in single runs of {options['iterations']} iterations, {options['seeds']} seeds. *k-means* has ten"
        " starts on the same vectors, the *mixture* by BIC three. *Learnt* is the simple method whose clusters the network learns, if"
        " any ([the rule](docs/defaults.md)). The classes, a column that is left out, only score; few of these tables were made to be"
        " divided by them.\n"
    )
    header = (
        "table",
        "rows",
        "columns",
        "gaps",
        "DDC: ACC, mean ± sd",
        "k-means",
        "mixture",
        "learnt",
        "from",
    )
    yield table(header, [_row(found, place) for found in results.values()])


def _row(found: Found, place: Place) -> tuple[str, ...]:
    facts = found.result["facts"]
    kinds = Counter(row[1] for row in facts["columns"])
    ways = (facts.get(name) for name in ("ddc", "k-means", "mixture"))
    development = ", development" if found.cell.data in DEVELOPMENT_MIXED else ""
    return (
        f"{found.cell.data}, {found.cell.n_clusters} classes{development}",
        f"{found.result['data']['shape'][0]:,}",
        ", ".join(f"{n} {kind}" for kind, n in kinds.items()),
        f"{facts['gaps']:,}",
        *(percent_spread(spread(scored)["ACC"]) if scored else "" for scored in ways),
        ", ".join(sorted({kind or "nothing" for kind in facts["anchors"]})),
        found.link(place),
    )
