"""What commands print: tables, notes, and warnings as lines."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

    from ddclust.ddc import DDC

SHOWN_SKIPPED = 5


def print_warning(message: object) -> None:
    """Print a warning to standard error."""
    click.echo(f"Warning: {message}", err=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show warnings as lines on standard error, without file names and code."""
    with warnings.catch_warnings():
        # Columns of tables are found by their names when they are read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = lambda message, *_, **__: print_warning(message)
        yield


def print_notes(bunch: Bunch, *, quiet: bool) -> None:
    """Print what the reader of the data decided, unless ``quiet``, and which files it skipped."""
    for note in [] if quiet else bunch.notes:
        click.echo(f"Note: {note}", err=True)
    n_skipped = len(bunch.skipped)
    if n_skipped:
        shown = "; ".join(f"{name}: {reason}" for name, reason in list(bunch.skipped.items())[:SHOWN_SKIPPED])
        more = "; ..." if n_skipped > SHOWN_SKIPPED else ""
        count = (
            "1 file cannot be read and is"
            if n_skipped == 1
            else f"{n_skipped:,} files cannot be read and are"
        )
        print_warning(f"{count} skipped: {shown}{more}")


def description_of(data: Any) -> str:
    """Number and form of the items, in words."""
    if not hasattr(data, "shape"):
        return f"{len(data):,} texts"
    shape = " x ".join(map(str, data.shape[1:]))
    return f"{data.shape[0]:,} items of {shape} values" + (", sparse" if hasattr(data, "indptr") else "")


def print_table(header: Sequence[object], rows: Sequence[Sequence[object]], *, left: bool = False) -> None:
    """Print rows under a header, in columns that are aligned to the right or to the left."""
    table = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    align = str.ljust if left else str.rjust
    for row in table:
        click.echo("  ".join(align(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_runs(records: Sequence[dict[str, Any]], voters: Sequence[int]) -> None:
    """Print a table of the runs of a fit."""
    kept = {run: "best" if place == 0 else "votes" for place, run in enumerate(voters)}
    print_table(
        ("run", "seed", "loss", "clusters", "iterations", "ended", "seconds", ""),
        [
            (
                record["run"] + 1,
                record["seed"],
                "-" if record["loss"] is None else f"{record['loss']:.4f}",
                record["clusters_used"] or "-",
                record["n_iter"],
                record["outcome"],
                f"{record['seconds']:.1f}",
                kept.get(record["run"], ""),
            )
            for record in records
        ],
    )


def print_summary(model: DDC, truth: NDArray | None) -> None:
    """Print the runs and the clusters of a fitted model, and its scores if classes are known."""
    import numpy as np

    print_runs(model.runs_, model.voters_)
    measures = (model.probabilities_.max(axis=1), model.agreement_)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    click.echo()
    print_table(
        ("cluster", "items", "mean confidence", "mean agreement"),
        [
            (i, f"{size:,}", *((f"{x[model.labels_ == i].mean():.3f}" for x in measures) if size else "--"))
            for i, size in enumerate(sizes)
        ],
    )
    if truth is not None:
        accuracy, information = score_cells(truth, model.labels_)
        click.echo(f"\nAgainst the known classes (never used in training): ACC {accuracy}, NMI {information}")


def score_cells(truth: NDArray, labels: NDArray) -> tuple[str, ...]:
    """ACC and NMI as text, "-" if no class is known."""
    from ddclust.choosing.metrics import scores

    return tuple("-" if math.isnan(score) else f"{score:.3f}" for score in scores(truth, labels))
