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
    SectionCommand,
    out_option,
    with_rows,
)
from ddclust.cli.printing import warnings_as_lines


@click.command(
    cls=SectionCommand,
    short_help="Assign new items to the clusters of a fit.",
    help="Assign each item of DATA to a cluster of the model in FOLDER, a result or model folder.\n\n"
    + DATA_HELP,
)
@FOLDER
@click.argument("data")
@with_rows(*COLUMN_ROWS, replace(MODEL_TABLE["device"], section=OUTPUT))
@out_option("A .csv file for the result.  [default: standard output]")
@NAMES
def predict(
    folder: Path, data: str, out: Path | None, names: Path | None, device: str, **options: Any
) -> None:
    """Assign new items with a fitted model."""
    refuse_existing(out)
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"There is no folder {str(out.parent)!r} for {out.name!r}; make it first.")
    from ddclust.results import labels_table, read_names
    from ddclust.storage.atomic import write_file

    model, bunch = load_model_and_data(folder, data, options, device)
    cluster_names = None if names is None else read_names(names, model.labels_, model.n_clusters_)
    with warnings_as_lines():
        vote, probabilities = model.vote(bunch.data)
    table = labels_table(bunch.item_names, vote, probabilities, cluster_names)
    if out is None:
        click.echo(table, nl=False)
    else:
        write_file(out, table.encode())
