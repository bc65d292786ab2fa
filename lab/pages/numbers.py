"""The sections of RESULTS.md on numbers of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ddclust.scan import recommend
from lab.experiments.numbers import (
    CONSTANT,
    DEVELOPMENT_MANY,
    DEVELOPMENT_NUMBERS,
    GROWING,
    JUDGING_MANY,
    JUDGING_NUMBERS,
    LONGER_NUMBERS,
    SCANNED,
)
from lab.pages.found import Found, largest
from lab.pages.markdown import table
from lab.paths import Place

RIGHT, UNCLEAR, WRONG = "right", "unclear", "wrong"


def numbers_section(place: Place) -> Iterable[str]:
    """What the scan says of data with clusters and of data without."""
    results = largest("numbers", place)
    sets = [data for data in JUDGING_NUMBERS | LONGER_NUMBERS if (data, SCANNED) in results]
    seen = [data for data in DEVELOPMENT_NUMBERS if (data, SCANNED) in results]
    if not sets:
        return
    judged = [verdict(results[data, SCANNED]) for data in sets if data in JUDGING_NUMBERS]
    counted = ", ".join(f"{judged.count(each)} {each}" for each in (RIGHT, UNCLEAR, WRONG))
    yield "## How many clusters\n"
    yield (
        "`python -m lab run numbers`. What a scan says ([the rule](docs/number-of-clusters.md)) of data with clusters and of data"
        " with none: noise, single Gaussians, a skewed cloud and a bent one. Of these it should say *unclear*. *Openness* is that of"
        f" the number with the least; up to .3 counts. Of {len(judged)} sets that judge the rule: {counted}.\n"
    )
    header = (
        "data",
        "items",
        "classes",
        "numbers",
        "runs x iterations",
        "the scan says",
        "",
        "stability",
        "openness",
        "from",
    )
    yield table(header, [_scan_row(results[data, SCANNED], place) for data in sets + seen])


def verdict(found: Found) -> str:
    """Whether the scan is right about the number of classes, wrong, or says that it is unclear."""
    said = recommend(found.result["facts"]["rows"]).n_clusters
    if said is None:
        return UNCLEAR
    return RIGHT if said == found.cell.n_clusters else WRONG


def _scan_row(found: Found, place: Place) -> tuple[str, ...]:
    facts, options = found.result["facts"], found.result["protocol"]["options"]
    said, data, ks = recommend(facts["rows"]).n_clusters, found.cell.data, options["ks"]
    rows = [row for row in facts["rows"] if row["openness"] is not None]
    if said is not None:
        row: dict[str, Any] | None = next(row for row in rows if row["k"] == said)
    else:
        row = min(rows, key=lambda row: float(row["openness"]), default=None)
    judged = verdict(found)
    if judged == UNCLEAR and found.cell.n_clusters == 1:
        judged = RIGHT + ": no clusters"
    return (
        f"{data} (development)" if data in DEVELOPMENT_NUMBERS else data,
        f"{min(found.result['data']['shape'][0], options['items']):,}",
        "none" if found.cell.n_clusters == 1 else str(found.cell.n_clusters),
        f"{ks[0]} to {ks[-1]}",
        f"{options['runs']} x {options['iterations']}",
        UNCLEAR if said is None else str(said),
        judged,
        "" if row is None else f"{row['stability']:.2f}",
        "" if row is None else f"{row['openness']:.2f} at k = {row['k']}",
        found.link(place),
    )


def many_section(place: Place) -> Iterable[str]:
    """Whether fits use as many clusters as are asked for."""
    results = largest("many", place)
    rows = []
    for data, ks in (JUDGING_MANY | DEVELOPMENT_MANY).items():
        for k in ks:
            both = [results.get((data, f"{k}-{name}")) for name in (CONSTANT, GROWING)]
            known = next((one for one in both if one is not None), None)
            if known is not None:
                options = known.result["protocol"]["options"]
                name = f"{data} (development)" if data in DEVELOPMENT_MANY else data
                items = min(known.result["data"]["shape"][0], options["items"])
                links = ", ".join(one.link(place) for one in both if one is not None)
                fits = f"{options['seeds']} x {options['iterations']}"
                rows.append(
                    (name, f"{items:,}", str(k), fits, *(part for one in both for part in _used(one)), links)
                )
    if not rows:
        return
    yield "## Many clusters\n"
    yield (
        "`python -m lab run many`. Clusters that single runs use, without merging. *Constant*: the orthogonality falls from 50 to 5,"
        " whatever the number of clusters. *Growing*: beyond 12 clusters, k, it is (k / 12)^1.5 times as much, as by default. NMI is that with"
        " the few known classes, which many clusters divide further.\n"
    )
    header = (
        "data",
        "items",
        "clusters asked for",
        "seeds x iterations",
        "constant: used",
        "NMI",
        "growing: used",
        "NMI",
        "from",
    )
    yield table(header, rows)


def _used(found: Found | None) -> tuple[str, str]:
    """The clusters used, for each seed, and the mean NMI."""
    if found is None:
        return "", ""
    fits = found.result["facts"]["fits"]
    return ", ".join(str(fit["used"]) for fit in fits), f"{np.mean([fit['NMI'] for fit in fits]):.3f}"
