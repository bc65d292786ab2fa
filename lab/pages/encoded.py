"""The section of RESULTS.md on pretrained features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.cells import Cell
from lab.data import BY
from lab.experiments.encoded import AIMS, DEFAULT, DEVELOPMENT, K_MEANS, UMAP
from lab.pages.found import Found, largest
from lab.pages.markdown import nmi_and_acc, nmi_and_acc_spread, sizes, table
from lab.paths import Place
from lab.runner import spread

METHODS = {DEFAULT: "DDC by default", K_MEANS: "k-means", UMAP: "UMAP + Gaussian mixture"}
ABOUT = """`python -m lab run encoded`. **These are not results from scratch**: the encoders were trained on other data, with the
meaning of words or with the classes of photographs. They are kept apart from all tables above, and every method below gets the
same features, rows of unit length.

- *DDC by default* is what `DDC(n_clusters, encoder=...)` does, but in {runs} runs of {iterations:,} iterations (the default is 4
  of 3,500); label-free is the run with the lowest loss.
- *k-means* has ten starts for each seed; label-free is the lowest inertia.
- The defaults for features were chosen on {development}, with classes in sight;
  [docs/defaults.md](docs/defaults.md) says how.
- *Aim* is the ACC that was aimed at before these runs, in the mean and for the label-free choice.
"""
ABOUT_UMAP = """- *UMAP + Gaussian mixture* reduces to as many dimensions as there are classes ({n_neighbors} neighbours, no least distance),
  with a mixture of full covariances; label-free is the clustering that agrees most with the others.
"""


def encoded_section(place: Place) -> Iterable[str]:
    """DDC, k-means and UMAP on the features of encoders."""
    results = largest("encoded", place)
    fits = next((one.result for (_, name), one in results.items() if name == DEFAULT), None)
    if fits is None:
        return
    maps = next((one.result for (_, name), one in results.items() if name == UMAP), None)
    yield "## On pretrained features\n"
    yield ABOUT.format(
        runs=fits["protocol"]["params"]["n_init"],
        iterations=max(run["n_iter"] for run in fits["repetitions"][0]["runs"]),
        development=", ".join(_in_words(data) for data in DEVELOPMENT),
    )
    if maps is not None:
        yield ABOUT_UMAP.format(**maps["protocol"]["options"])
    header = (
        "data and features",
        "method",
        "label-free: NMI, ACC",
        "mean ± sd: NMI, ACC",
        "n",
        "aim",
        "from",
    )
    yield table(header, [_row(one, place) for one in results.values()])


def _row(found: Found, place: Place) -> tuple[str, ...]:
    result = found.result
    chosen, every = _scores(result)
    return (
        f"{_in_words(found.cell.data)}: {sizes(result)}",
        METHODS[found.cell.name],
        nmi_and_acc(chosen),
        nmi_and_acc_spread(every),
        str(every["n"]),
        _aim(found.cell, chosen["ACC"], every["ACC"]["mean"]),
        found.link(place),
    )


def _aim(cell: Cell, chosen: float, mean: float) -> str:
    """What DDC was to reach, and whether it did."""
    aim = AIMS.get(cell.data)
    if aim is None or cell.name != DEFAULT:
        return ""
    return f"{aim:.2f}: {'met' if min(chosen, mean) >= aim else 'missed'}"


def _scores(result: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Of the label-free choice, and over all seeds."""
    if "summary" in result:
        return result["repetitions"][0]["chosen"], result["summary"]["runs"]
    return result["facts"]["chosen"], spread(result["facts"]["scores"])


def _in_words(data: str) -> str:
    name, _, encoder = data.partition(BY)
    return f"{name} by {encoder}"
