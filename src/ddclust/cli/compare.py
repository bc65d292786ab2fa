"""``ddclust compare``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.errors import resumable
from ddclust.cli.inputs import folder_for, load_data
from ddclust.cli.options import (
    CHOICE_ROWS,
    COLUMN_ROWS,
    DATA_HELP,
    IMAGE_ROWS,
    MODEL_TABLE,
    TRAINING,
    Number,
    Row,
    SectionCommand,
    json_option,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import print_json, print_table, printable

if TYPE_CHECKING:
    from ddclust.compare.table import Row as TableRow

METHODS = ("k-means", "itc-parzen", "itc-knn", "sec", "ldmgi", "dec", "ddc")
MEMORY_SHARE = 0.8  # of the machine's that a fit may take
_METHOD_ROWS = (
    Row(
        ("--methods",),
        None,
        TRAINING,
        f"Of {', '.join(METHODS)}; ddc stands for DDC and DDC-VOTE.  [default: all]",
        metavar="NAME,...",
    ),
    replace(
        MODEL_TABLE["runs"],
        help="Runs of k-means, ITC, DEC and DDC; 20 in the paper. DDC-VOTE needs at least 3.",
    ),
    Row(
        ("--choices",),
        None,
        TRAINING,
        "Maximum number of hyperparameter settings to try for ITC, SEC and LDMGI; 9 in the paper. With 1 it is the"
        " default.",
        type=Number(int, at_least=1),
        default=9,
        metavar="N",
    ),
    replace(MODEL_TABLE["max_iter"], help="Maximum number of iterations (batches) of a run of DDC."),
    Row(
        ("--minutes",),
        None,
        TRAINING,
        "Stop a fit that takes longer.",
        type=Number(float, above=0),
        metavar="MINUTES",
    ),
    Row(
        ("--memory",),
        None,
        TRAINING,
        "Stop a fit that takes more memory.  [default: 80 % of the machine's]",
        type=Number(float, above=0),
        metavar="GB",
    ),
    replace(MODEL_TABLE["seed"], type=Number(int, at_least=0, at_most=2**31)),
)


@click.command(
    cls=SectionCommand,
    short_help="Compare DDC with the reference methods.",
    help="Cluster DATA by DDC and the reference methods, and tabulate their agreement with the known classes, time and"
    " memory.\n\nTraining never sees the classes. NMI and ACC are those of the fit that is chosen without them; 'best'"
    " is chosen with them, as papers do for reference methods. The same command goes on with a comparison that was"
    f" stopped.\n\n{DATA_HELP}",
)
@click.argument("data")
@with_rows(
    *COLUMN_ROWS, *CHOICE_ROWS, *IMAGE_ROWS, MODEL_TABLE["language"], MODEL_TABLE["clusters"], *_METHOD_ROWS
)
@out_option("Folder for the results.  [default: DATA-comparison]")
@quiet_option("No progress.")
@json_option("the comparison")
def compare(data: str, out: Path | None, quiet: bool, as_json: bool, **options: Any) -> None:
    """Cluster DATA by several methods and tabulate the results."""
    bunch = load_data(data, options, quiet=quiet)
    from ddclust.compare import comparison
    from ddclust.compare.table import TABLE_COLUMNS, table_row
    from ddclust.reading import vectorised

    out = folder_for(data, "comparison") if out is None else out
    methods, minutes, memory = options["methods"], options["minutes"], options["memory"]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with resumable(out):
        rows = comparison.compare(
            vectorised(bunch.data, options["language"]),
            options["clusters"],
            out,
            truth=bunch.target,
            item_names=bunch.item_names,
            methods=METHODS if methods is None else [name.strip() for name in methods.split(",")],
            runs=options["runs"],
            max_choices=options["choices"],
            max_iter=options["max_iter"],
            budget=comparison.Budget(
                seconds=float("inf") if minutes is None else 60 * minutes,
                bytes=MEMORY_SHARE * machine if memory is None else memory * 2**30,
            ),
            seed=options["seed"],
            verbose=not quiet,
        )
    if as_json:
        print_json(rows)
        return
    print_table(TABLE_COLUMNS, [table_row(row) for row in rows])
    _print_failures(rows)
    if bunch.target is not None:
        click.echo(
            "\nNMI and ACC: of the fit chosen without the known classes. best: chosen with them, as in the paper."
        )
    click.echo(f"Results: {printable(out)}/")


def _print_failures(rows: Sequence[TableRow]) -> None:
    """Print which fits failed, and what the others warned of."""
    for row in rows:
        for failure in row["failures"]:
            choice = ", ".join(f"{name}={value}" for name, value in failure["params"].items()) or "default"
            click.echo(f"{row['method']} ({choice}) failed: {failure['error']}", err=True)
        for message in row["warnings"]:
            click.echo(f"{row['method']}: {message}", err=True)
