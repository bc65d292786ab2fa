"""``ddclust scan``."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.errors import resumable
from ddclust.cli.inputs import folder_for, load_data
from ddclust.cli.options import (
    BALANCE_HELP,
    CHOICE_ROWS,
    CLUSTERS,
    COLUMN_ROWS,
    DATA_HELP,
    IMAGE_ROWS,
    MODEL_TABLE,
    Number,
    Row,
    SectionCommand,
    json_option,
    model_of,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import print_json, print_table, printable, warnings_as_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ddclust.scan import Row as ScanRow
    from ddclust.scan import Scan

_NUMBER = Number(int, at_least=2)
_ROWS = (
    *COLUMN_ROWS,
    *CHOICE_ROWS,
    *IMAGE_ROWS,
    Row(("--from",), None, CLUSTERS, "Smallest number of clusters.", type=_NUMBER, default=2, metavar="N"),
    Row(("--to",), None, CLUSTERS, "Largest number of clusters.", type=_NUMBER, default=20, metavar="N"),
    replace(
        MODEL_TABLE["balance"], help=f"{BALANCE_HELP}  [default: falls from 50 to 5; 1 with --augment none]"
    ),
    MODEL_TABLE["augment"],
    MODEL_TABLE["neighbors"],
    replace(MODEL_TABLE["runs"], help="Runs for each number of clusters.", type=_NUMBER, default=6),
    replace(MODEL_TABLE["max_iter"], default=1000),
    *(MODEL_TABLE[name] for name in ("learning_rate", "jobs", "device", "seed", "language", "encoder")),
)


@click.command(
    cls=SectionCommand,
    short_help="Try numbers of clusters and recommend one.",
    help="Try several numbers of clusters of DATA and recommend one, or say that it is unclear.\n\nA number of clusters"
    " is recommended if several runs find the same clusters, by the adjusted Rand index, and if their borders follow gaps in the"
    " data (openness: about 1 in noise, .3 at most). Known classes are not used. The"
    f" same command goes on with a scan that was stopped.\n\n{DATA_HELP}",
)
@click.argument("data")
@with_rows(*_ROWS)
@out_option("Folder for the results.  [default: DATA-scan]")
@quiet_option("No progress and no table.")
@json_option("the numbers of clusters and the recommendation")
def scan(data: str, out: Path | None, quiet: bool, as_json: bool, **options: Any) -> None:
    """Try numbers of clusters and recommend one."""
    first, last = options["from"], options["to"]
    if first > last:
        raise ValueError(f"--from {first} is larger than --to {last}.")
    bunch = load_data(data, options, quiet=quiet)
    from ddclust.scan import TABLE_COLUMNS, table_row
    from ddclust.scan import scan as scan_numbers

    out = folder_for(data, "scan") if out is None else out
    model = model_of(options, verbose=not quiet)

    def show(row: ScanRow) -> None:
        if not quiet:
            click.echo(f"k = {row['k']}: stability {row['stability']:.3f}", err=True)

    with resumable(out), warnings_as_lines(bunch.feature_names):
        found = scan_numbers(bunch.data, range(first, last + 1), model=model, folder=out, on_row=show)
    if as_json:
        print_json({"rows": found.rows, "recommendation": asdict(found.recommendation)})
    elif not quiet:
        print_table(TABLE_COLUMNS, [table_row(row) for row in found.rows])
        _print_recommendation(found, bunch.target)
        click.echo(f"Results: {printable(out)}/")


def _print_recommendation(found: Scan, truth: NDArray | None) -> None:
    from ddclust.choosing.metrics import known_classes

    advice = found.recommendation
    answer = "Unclear"
    if advice.n_clusters is not None:
        how_sure = (
            "one pair of runs for each number, too few for a confidence"
            if advice.confidence is None
            else f"confidence {advice.confidence:.2f}, by {advice.n_pairs} pairs of runs for each number"
        )
        answer = f"Recommended: {advice.n_clusters} clusters ({how_sure})"
    click.echo(f"\n{answer}: {advice.reason}.")
    if truth is not None:
        click.echo(f"The data has {len(known_classes(truth)[1])} known classes, which were not used.")
