"""``ddclust update``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.inputs import folder_for, load_model_and_data, refuse_existing, unused
from ddclust.cli.options import (
    CLUSTERS,
    COLUMN_ROWS,
    DATA_HELP,
    FOLDER,
    MODEL_TABLE,
    OUTPUT,
    Row,
    SectionCommand,
    SectionOption,
    json_option,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import print_json, print_summary, printable, summary_of, warnings_as_lines
from ddclust.cli.report import write_report
from ddclust.cli.runs import runs_in

if TYPE_CHECKING:
    from ddclust.ddc import DDC


def _number(text: str) -> int | str:
    """What --new-clusters stands for."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--new-clusters {text!r} is neither 'auto' nor a number.") from None


_ROWS = (
    *COLUMN_ROWS,
    Row(
        ("--new-clusters",),
        "new_clusters",
        CLUSTERS,
        "Make a cluster of each new kind of items (auto), or part the items that are unlike those of the fit into N new"
        " clusters.  [default: only say what is new]",
        metavar="auto|N",
        convert=_number,
    ),
    MODEL_TABLE["device"],
    Row(
        ("--report/--no-report",),
        None,
        OUTPUT,
        "Make report.html, a page that shows the new items in their clusters.",
        default=True,
        is_flag=True,
    ),
)


@click.command(
    cls=SectionCommand,
    short_help="Take new items into a fit, and notice new kinds.",
    help="Assign the items of DATA to the clusters of the fit in FOLDER, say whether there are new kinds among them and, with"
    " --new-clusters, add clusters for these. The old data are not needed, and old clusters keep their numbers, names and"
    " items. The results, with the updated model and the labels of the new items, go to a folder of their own.\n\n"
    + DATA_HELP,
)
@FOLDER
@click.argument("data")
@with_rows(*_ROWS)
@out_option("Folder for the results.  [default: DATA-update]")
@click.option(
    "--force",
    is_flag=True,
    cls=SectionOption,
    section=OUTPUT,
    help="Replace the results of an earlier fit or update in the folder; other files in it stay.",
)
@click.option(
    "--in-place",
    is_flag=True,
    cls=SectionOption,
    section=OUTPUT,
    help="Replace the results in FOLDER itself: its model, and the labels of the old items by those of the new.",
)
@quiet_option("No progress, no notes and no summary.")
@json_option("the clusters, and what is new,")
def update(
    folder: Path,
    data: str,
    out: Path | None,
    force: bool,
    in_place: bool,
    quiet: bool,
    as_json: bool,
    device: str,
    report: bool,
    new_clusters: str | None,
    **options: Any,
) -> None:
    """Take new items into a fitted model."""
    from ddclust import results
    from ddclust.naming import proposed_names

    if in_place and out is not None:
        raise ValueError("--in-place writes to the folder of the fit itself; leave out --out.")
    wanted = None if new_clusters is None else _number(new_clusters)
    begun = results.read_run(folder)
    out = folder if in_place else unused(folder_for(data, "update")) if out is None else out
    replaces = out.exists() and force
    if in_place or replaces:
        results.refuse_to_replace(out)
    else:
        refuse_existing(out, ", or replace its results by --force")
    model, bunch = load_model_and_data(folder, data, options, device, quiet=quiet)
    old_names = results.names_of_clusters(folder, None, model) or {}
    stored = {name: value for name, value in begun["options"].items() if name not in ("size", "colour")}
    given = {name: value for name, value in options.items() if value is not None}
    run = results.description(bunch, data, stored | given | _form(model) | {"report": report})
    with warnings_as_lines(bunch.feature_names) as said:
        start = time.perf_counter()
        model.partial_fit(bunch.data, new_clusters=wanted)
        run["seconds"] = {"fit": round(time.perf_counter() - start, 3)}
        run["warnings"] = list(dict.fromkeys(said))
        names = proposed_names(model, bunch.data, bunch.item_names) | old_names
    with results.under_way(out, run, replaces=replaces):
        results.write_results(out, model, bunch.item_names, names, run)
    page = write_report(out, model, bunch, run) if report else None
    kinds = model.new_kinds_
    n_added = 0 if wanted is None else kinds.n_groups
    added = range(model.n_clusters_ - n_added, model.n_clusters_)
    if as_json:
        found = {
            "items": kinds.n_items,
            "unlike": kinds.n_unlike,
            "groups": kinds.sizes,
            "clusters": [*added],
        }
        print_json(
            runs_in(out, results.read_run(out))
            | summary_of(model, bunch.target, names)
            | {"new": found, "results": out, "report": page}
        )
    elif not quiet:
        print_summary(model, bunch.target, names)
        click.echo(f"\n{kinds}")
        if added:
            click.echo(f"New clusters: {', '.join(map(str, added))}")
        click.echo(f"\nResults: {printable(out)}/")
        if page is not None:
            click.echo(f"Report:  {printable(page)}")


def _form(model: DDC) -> dict[str, Any]:
    """The options by which images of a folder are read as those of the model were."""
    from ddclust.data.batches import input_shape

    if len(model.raw_shape) == 1:
        return {}
    channels, height, _ = input_shape(model.raw_shape)
    return {"size": height, "colour": "grey" if channels == 1 else "rgb"}
