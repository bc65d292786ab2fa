"""Several methods on the same data by the paper's protocol, one fit after the other, each in a process of its own.

If a fit fails, or takes too much time or memory, the others are not affected. Results are kept on disk, so a comparison
that was stopped can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ddclust.choosing.metrics import known_classes
from ddclust.compare.job import Job, Result, data_file
from ddclust.compare.methods import METHODS
from ddclust.compare.process import Budget, is_made, make_fit
from ddclust.compare.table import (
    COMPARISON_FILE,
    ComparisonError,
    ComparisonFile,
    Failure,
    Fit,
    Row,
    chosen_without_labels,
    row,
    write_tables,
)
from ddclust.data.items import fingerprint
from ddclust.progress import Bar
from ddclust.results import versions
from ddclust.storage.workspace import Kind, Workspace

DEFAULT_METHODS = tuple(METHODS)


COMPARISON = Kind(
    format="ddclust-comparison",
    file=COMPARISON_FILE,
    content="a comparison",
    work="Another comparison",
    differences={"data": "the data differ", "versions": "the versions of ddclust or its libraries differ"},
    error=ComparisonError,
    schema=ComparisonFile,
)


@dataclass(frozen=True)
class Protocol:
    """How often, and with which parameters, each method is fitted."""

    runs: int = 4
    choices: int = 9
    max_iter: int = 3500
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0

    def jobs(self, methods: Sequence[str], n_clusters: int, data: Path, folder: Path) -> Iterator[Job]:
        """All fits of the methods."""
        for name in methods:
            method = METHODS[name]
            options = {option: getattr(self, option) for option in method.options}
            for number, choice in enumerate(method.choices[: self.choices]):
                params = choice | dict(self.params.get(name, {}))
                for run in range(self.runs if method.restarts else 1):
                    place = (folder / "fits" / f"{name}-{number}-{run}").resolve()
                    yield Job(name, params, n_clusters, self.seed + run, options, str(data), str(place))


def compare(
    data: Any,
    n_clusters: int,
    folder: str | os.PathLike[str],
    *,
    truth: Sequence[Any] | NDArray | None = None,
    item_names: Sequence[str] | None = None,
    methods: Sequence[str] = DEFAULT_METHODS,
    runs: int = 4,
    max_choices: int = 9,
    max_iter: int = 3500,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    seed: int = 0,
    verbose: bool | int = False,
) -> list[Row]:
    """Fit every method to the data and tabulate the results.

    Parameters
    ----------
    data : array, memory map or sparse matrix
        Vectors or images, as :class:`ddclust.DDC` takes them. Methods for vectors get them flattened, in DDC's scaling.
    n_clusters : int
    folder : path-like
        A new folder, or the folder of a comparison on the same data, which is then resumed.
    truth : sequence, optional
        The known classes; None, NaN, "" and -1 are unknown. No fit sees them. They score the results, and choose the
        ``best`` one of each method, as the paper does.
    item_names : sequence of str, optional
    methods : sequence of str
        Names from ``ddclust.compare.methods.METHODS``; by default all of them.
    runs : int, default=4
        Number of runs of methods that start from random seeds. The paper has 20.
    max_choices : int, default=9
        Maximum number of hyperparameter choices per method. The default choice comes first.
    max_iter : int, default=3500
        Maximum number of iterations of DDC.
    params : mapping of method to mapping, optional
        Parameters that are set in every fit of a method, such as ``{"dec": {"finetune_iter": 1000}}``.
    budget : Budget
        Time and memory that a single fit may take.
    seed : int, default=0
        Seed of the first run; further runs count up from it.
    verbose : bool or int, default=False
        Show a progress bar.

    Returns
    -------
    list of Row
        A :class:`~ddclust.compare.table.Row` for each title of each method. The folder holds them as JSON and CSV.
    """
    folder = Path(folder)
    methods = _known_methods(methods)
    codes = None if truth is None else known_classes(truth)[0]
    n = data.shape[0]
    for name, given in (("truth", codes), ("item_names", item_names)):
        if given is not None and len(given) != n:
            raise ValueError(f"{name} has {len(given):,} entries, but there are {n:,} items.")
    if codes is not None and not (codes >= 0).any():
        raise ValueError("truth has no known class; leave it out.")
    protocol = Protocol(runs, max_choices, max_iter, params or {}, seed)
    identity = {"data": fingerprint(data), "n_clusters": n_clusters, "versions": versions()}
    workspace = Workspace(folder, COMPARISON)
    with workspace.claimed(identity, rows=[]):
        with data_file(folder, data) as file:
            jobs = list(protocol.jobs(methods, n_clusters, file, folder))
            with Bar(jobs, unit="fit", disable=not verbose) as bar:
                for job in bar:
                    bar.set_description(job.method)
                    if not is_made(job, budget):
                        make_fit(job, budget, partial(_show, bar))
        rows, labels = [], {}
        for title in (title for method in methods for title in METHODS[method].titles):
            fits, failures = _results(jobs, title)
            chosen = chosen_without_labels(fits, n_clusters) if fits else None
            if chosen is not None:
                labels[title] = chosen.labels
            if fits or failures:
                entry = row(title, fits, failures, chosen, codes)
                entry["protocol"] = asdict(protocol)
                rows.append(entry)
        write_tables(folder, workspace.read(), rows, labels, item_names)
    return rows


def _known_methods(methods: Sequence[str]) -> list[str]:
    """The methods without repetitions; unknown names are refused."""
    unknown = next((method for method in methods if method not in METHODS), None)
    if unknown is not None or not methods:
        raise ValueError(f"There is no method {unknown or ''!r}; choose from {', '.join(METHODS)}.")
    return list(dict.fromkeys(methods))


def _show(bar: Bar, seconds: float, used: int) -> None:
    """Show the time and memory of the fit under way."""
    bar.set_postfix(seconds=int(seconds), MB=used >> 20, refresh=False)
    bar.update(0)


def _results(jobs: Sequence[Job], title: str) -> tuple[list[Fit], list[Failure]]:
    """The fits under a title, and those that failed. A failed fit counts under all titles of its method."""
    fits: list[Fit] = []
    failures: list[Failure] = []
    for job in jobs:
        if title not in METHODS[job.method].titles:
            continue
        result = Result.read(Path(job.folder))
        if result.error is not None:
            failures.append({"params": job.params, "error": result.error})
        elif title in result.titles:
            labels = job.labels(title, result)
            if labels is None:
                raise ComparisonError(
                    f"{str(job.labels_file(title))!r} is damaged or missing; compare again to make it anew."
                )
            fits.append(Fit(job.params, result, labels))
    return fits, failures
