"""``ddclust fit`` and ``ddclust resume``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.errors import INTERRUPTED
from ddclust.cli.inputs import folder_for, load_data, refuse_existing, unused, with_max_bytes
from ddclust.cli.options import (
    CHOICE_ROWS,
    CLUSTERS,
    COLUMN_ROWS,
    DATA,
    DATA_HELP,
    FOLDER,
    IMAGE_ROWS,
    MAX_BYTES,
    MODEL_TABLE,
    OUTPUT,
    Row,
    SectionCommand,
    SectionOption,
    json_option,
    model_of,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import (
    columns_of,
    description_of,
    print_columns,
    print_json,
    print_summary,
    printable,
    summary_of,
    warnings_as_lines,
)
from ddclust.cli.report import write_report
from ddclust.cli.runs import runs_in

if TYPE_CHECKING:
    from ddclust.data.links import Links
    from ddclust.results import RunFile

_PAIRS_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)
_OWN_ROWS = (
    Row(
        ("--must-link",),
        None,
        CLUSTERS,
        "Pairs of items that must share a cluster: two columns with their names, or their numbers from 0.",
        type=_PAIRS_FILE,
        metavar="FILE.csv",
    ),
    Row(
        ("--cannot-link",),
        None,
        CLUSTERS,
        "Pairs of items that must not share a cluster.",
        type=_PAIRS_FILE,
        metavar="FILE.csv",
    ),
    Row(
        ("--blocks",),
        None,
        DATA,
        "Read and shuffle a .npy file in blocks, for slow disks.",
        default=False,
        is_flag=True,
    ),
    Row(
        ("--report/--no-report",),
        None,
        OUTPUT,
        "Make report.html, a page that shows the clusters.",
        default=True,
        is_flag=True,
    ),
)
# Every option that run.json keeps; sections appear in the help in this order.
FIT_ROWS = {
    row.name: row for row in (*COLUMN_ROWS, *CHOICE_ROWS, *IMAGE_ROWS, *MODEL_TABLE.values(), *_OWN_ROWS)
}


@click.command(
    cls=SectionCommand,
    short_help="Cluster data and keep the results in a folder.",
    help=f"Cluster DATA into K clusters and keep the results in a folder.\n\n{DATA_HELP}",
)
@click.argument("data")
@with_rows(*FIT_ROWS.values())
@out_option("Folder for the results.  [default: DATA-clusters]")
@click.option(
    "--force",
    is_flag=True,
    cls=SectionOption,
    section=OUTPUT,
    help="Replace the results of an earlier fit in the folder; other files in it stay.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    cls=SectionOption,
    section=OUTPUT,
    help="Only read DATA, and show the parameters and about how long the fit would take.",
)
@quiet_option("No progress and no summary.")
@json_option("the runs and clusters, or what --dry-run shows,")
def fit(
    data: str, out: Path | None, force: bool, dry_run: bool, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Cluster DATA and keep the results in a folder."""
    from ddclust.results import is_unfinished, refuse_to_replace

    if dry_run:
        _show_plan(data, options, quiet=quiet, as_json=as_json)
        return
    out = unused(folder_for(data, "clusters")) if out is None else out
    if out.is_file():
        raise FileExistsError(f"{str(out)!r} is a file; --out takes a folder.")
    if force and out.exists():
        refuse_to_replace(out)
    elif is_unfinished(out):
        raise FileExistsError(
            f"{str(out)!r} holds an unfinished fit; 'ddclust resume {out}' goes on with it, --force replaces it."
        )
    else:
        refuse_existing(out, ", or replace its results by --force")
    _train(out, data, options, quiet=quiet, as_json=as_json, replaces=force)


@click.command(cls=SectionCommand, short_help="Go on with a fit that was stopped or killed.")
@FOLDER
@with_rows(MAX_BYTES)
@quiet_option("No progress and no summary.")
@json_option("the runs and clusters")
def resume(folder: Path, quiet: bool, as_json: bool, max_bytes: float | None) -> None:
    """Go on with the fit in FOLDER that was stopped or killed.

    The result is the same as if the fit had not been interrupted.
    """
    from ddclust.results import data_argument, is_unfinished, read_run

    run = read_run(folder)
    if not is_unfinished(folder):
        click.echo(f"The fit in {str(folder)!r} is complete; there is nothing to go on with.", err=as_json)
        if as_json:
            print_json(runs_in(folder, run))
        return
    options = with_max_bytes(_stored_options(run, folder), max_bytes)
    _train(folder, data_argument(run), options, quiet=quiet, as_json=as_json, begun=run)


def _show_plan(data: str, options: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print what a fit would do, and about how long it would take."""
    bunch = load_data(data, options, quiet=quiet)
    _links(options, bunch.item_names)
    with warnings_as_lines(bunch.feature_names):
        estimate = model_of(options).estimate(bunch.data)
    if as_json:
        print_json(
            {
                "data": bunch.name,
                "items": len(bunch.item_names),
                "columns": columns_of(bunch.data, options["language"]),
                "setup": estimate.setup.to_dict(),
                "seconds": estimate.seconds,
            }
        )
        return
    click.echo(f"{printable(bunch.name)}: {description_of(bunch.data)}\n")
    if print_columns(bunch.data, options["language"]):
        click.echo()
    click.echo(f"{estimate.setup}\n\n{estimate}")


def _stored_options(run: RunFile, folder: Path) -> dict[str, Any]:
    """The options of a fit in its folder; those that its version of ddclust did not have get their defaults."""
    stored = run["options"]
    begun_by = run.get("versions", {}).get("ddclust", "another version")
    start = f"The fit in {str(folder)!r} was begun by ddclust {begun_by}"
    remedy = "finish it with that version or start it anew"
    for name, value in stored.items():
        if name not in FIT_ROWS:
            raise ValueError(f"{start}, which had an option {name!r} that this version lacks; {remedy}.")
        try:
            FIT_ROWS[name].checked(value)
        except click.BadParameter as error:
            problem = error.message.rstrip(".")
            raise ValueError(
                f"{start} with {FIT_ROWS[name].flags[-1]} {value}: {problem}; {remedy}."
            ) from None
    options = {name: stored.get(name, row.default) for name, row in FIT_ROWS.items()}
    missing = [row.flags[-1] for name, row in FIT_ROWS.items() if row.required and options[name] is None]
    if missing:
        raise ValueError(f"{start}, but run.json does not give {missing[0]}; start it anew.")
    return options


def _train(
    out: Path,
    data: str,
    options: dict[str, Any],
    *,
    quiet: bool,
    as_json: bool,
    begun: RunFile | None = None,
    replaces: bool = False,
) -> None:
    """Fit in a new result folder, or in that of a fit that has begun, and write the results."""
    import numpy as np

    from ddclust import results
    from ddclust.data.items import known_fingerprint
    from ddclust.naming import proposed_names

    bunch = load_data(data, options, quiet=quiet)
    if len(bunch.item_names) < 2:
        raise ValueError(f"{data!r} holds a single item; there is nothing to cluster.")
    links = _links(options, bunch.item_names)
    items = _in_blocks(bunch.data) if options["blocks"] else bunch.data
    model = model_of(options, checkpoint_dir=out / results.CHECKPOINTS_FOLDER, verbose=not quiet)
    run = results.description(bunch, data, options)
    seconds_before = 0.0
    if begun is not None:
        results.refuse_other_data(begun, run["data"]["sha256"], data, out)
        run = {**begun, "status": run["status"]}
        seconds_before = begun.get("seconds", {}).get("fit", 0.0)
    if not quiet:
        click.echo(f"{printable(bunch.name)}: {description_of(bunch.data)}", err=True)
        print_columns(bunch.data, options["language"], err=True)
    shown = warnings_as_lines(bunch.feature_names, bunch.item_names)
    hashed = known_fingerprint(bunch.data, run["data"]["sha256"])
    with results.under_way(out, run, replaces=replaces), shown as said, hashed:
        start = time.perf_counter()
        model.fit(items, must_link=links)
        if bunch.feature_names is not None and not (model.is_of_texts or hasattr(model, "columns_")):
            # So that predict finds these columns in another table.
            model.feature_names_in_ = np.array(bunch.feature_names, dtype=object)
        run["seconds"] = {"fit": round(seconds_before + time.perf_counter() - start, 3)}
        run["warnings"] = list(dict.fromkeys([*run.get("warnings", []), *said]))
        names = proposed_names(model, items, bunch.item_names)
        complete = results.write_results(out, model, bunch.item_names, names, run)
    page = write_report(out, model, bunch, run) if options["report"] else None
    if as_json:
        print_json(
            runs_in(out, results.read_run(out))
            | summary_of(model, bunch.target, names)
            | {"results": out, "report": page}
        )
    elif not quiet:
        print_summary(model, bunch.target, names)
        click.echo(f"\nResults: {printable(out)}/")
        if page is not None:
            click.echo(f"Report:  {printable(page)}")
    if not complete:
        click.echo(f"Stopped early; 'ddclust resume {printable(out)}' goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)


def _in_blocks(data: Any) -> Any:
    """An array that is read and shuffled in blocks."""
    import numpy as np

    from ddclust.data.items import BlockItems

    if not isinstance(data, np.ndarray):
        raise ValueError("--blocks is for arrays; tables, texts and sparse matrices are in memory anyway.")
    return BlockItems(data)


def _links(options: Mapping[str, Any], item_names: Sequence[str]) -> Links:
    """The pairs in the files that the options name; contradictions are reported by the names of the items."""
    from ddclust.data.links import checked_links
    from ddclust.datasets import read_pairs

    must, cannot = (
        None
        if options[name] is None
        else read_pairs(options[name], item_names, max_bytes=options["max_bytes"])
        for name in ("must_link", "cannot_link")
    )
    return checked_links(
        must, cannot, n_items=len(item_names), n_clusters=options["clusters"], item_names=item_names
    )
