"""``ddclust predict``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ddclust.cli.inputs import load_model_and_data, refuse_existing
from ddclust.cli.options import (
    COLUMN_ROWS,
    DATA_HELP,
    FOLDER,
    MODEL_TABLE,
    NAMES,
    OUTPUT,
    Number,
    Row,
    SectionCommand,
    json_option,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import json_text, print_data, printable, warnings_as_lines


@click.command(
    cls=SectionCommand,
    short_help="Assign new items to the clusters of a fit.",
    help="Assign each item of DATA to a cluster of the model in FOLDER, a result or model folder. Besides what is listed"
    " here, DATA may be one or several image files or, in quotes, texts.\n\n" + DATA_HELP,
)
@FOLDER
@click.argument("data", nargs=-1, required=True)
@with_rows(
    *COLUMN_ROWS,
    Row(
        ("--reject",),
        "reject",
        OUTPUT,
        "Refuse items that the model does not know: too little confidence, or unlike the items of the fit. Their cluster is"
        " -1. SHARE of items like those of the fit may be refused, such as 0.05.",
        type=Number(float, at_least=0, below=1),
        metavar="SHARE",
    ),
    replace(MODEL_TABLE["device"], section=OUTPUT),
)
@out_option("A .csv file for the result, or a .json file with --json.  [default: standard output]")
@NAMES
@quiet_option("No progress and no notes.")
@json_option("the items")
def predict(
    folder: Path,
    data: tuple[str, ...],
    out: Path | None,
    names: Path | None,
    device: str,
    reject: float | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Assign new items with a fitted model."""
    refuse_existing(out)
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"There is no folder {str(out.parent)!r} for {out.name!r}; make it first.")
    from ddclust.results import labels_columns, labels_table, names_of_clusters
    from ddclust.storage.atomic import write_file

    model, bunch = load_model_and_data(folder, data, options, device, quiet=quiet)
    cluster_names = names_of_clusters(folder, names, model)
    with warnings_as_lines(item_names=bunch.item_names):
        vote, probabilities = model.vote(bunch.data, reject=reject)
    found = (bunch.item_names, vote, probabilities, cluster_names)
    if as_json:
        columns = labels_columns(*found)
        table = json_text(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        )
    else:
        table = labels_table(*found)
    if out is None:
        print_data(table)
    else:
        write_file(out, table.encode())
        n = len(bunch.item_names)
        click.echo(
            f"{printable(out)}: the cluster{'' if n == 1 else 's'} of {n:,} item{'' if n == 1 else 's'}"
        )
