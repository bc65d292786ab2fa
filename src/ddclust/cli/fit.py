"""``ddclust fit`` and ``ddclust resume``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.errors import INTERRUPTED
from ddclust.cli.inputs import folder_for, load_data, refuse_existing, unused
from ddclust.cli.options import (
    CLUSTERS,
    COLUMN_ROWS,
    DATA,
    DATA_HELP,
    FOLDER,
    IMAGE_ROWS,
    MODEL_TABLE,
    OUTPUT,
    Row,
    SectionCommand,
    model_of,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import description_of, print_summary, warnings_as_lines
from ddclust.cli.report import write_report

if TYPE_CHECKING:
    from ddclust.data.links import Links

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
FIT_ROWS = {row.name: row for row in (*COLUMN_ROWS, *IMAGE_ROWS, *MODEL_TABLE.values(), *_OWN_ROWS)}


@click.command(
    cls=SectionCommand,
    short_help="Cluster data and keep the results in a folder.",
    help=f"Cluster DATA into K clusters and keep the results in a folder.\n\n{DATA_HELP}",
)
@click.argument("data")
@with_rows(*FIT_ROWS.values())
@out_option("Folder for the results.  [default: DATA-clusters]")
@quiet_option("No progress and no summary.")
def fit(data: str, out: Path | None, quiet: bool, **options: Any) -> None:
    """Cluster DATA and keep the results in a folder."""
    from ddclust.results import is_unfinished

    out = unused(folder_for(data, "clusters")) if out is None else out
    if is_unfinished(out):
        raise FileExistsError(
            f"{str(out)!r} holds an unfinished fit; 'ddclust resume {out}' goes on with it."
        )
    refuse_existing(out)
    _train(out, data, options, quiet=quiet)


@click.command(cls=SectionCommand, short_help="Go on with a fit that was stopped or killed.")
@FOLDER
@quiet_option("No progress and no summary.")
def resume(folder: Path, quiet: bool) -> None:
    """Go on with the fit in FOLDER that was stopped or killed.

    The result is the same as if the fit had not been interrupted.
    """
    from ddclust.results import data_argument, is_unfinished, read_run

    run = read_run(folder)
    if not is_unfinished(folder):
        click.echo(f"The fit in {str(folder)!r} is complete; there is nothing to go on with.")
        return
    _train(folder, data_argument(run), _stored_options(run, folder), quiet=quiet, begun=run)


def _stored_options(run: Mapping[str, Any], folder: Path) -> dict[str, Any]:
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
    begun: dict[str, Any] | None = None,
) -> None:
    """Fit in a new result folder, or in that of a fit that has begun, and write the results."""
    import numpy as np

    from ddclust import results

    bunch = load_data(data, options, quiet=quiet)
    links = _links(options, bunch.item_names)
    items = _in_blocks(bunch.data) if options["blocks"] else bunch.data
    model = model_of(options, checkpoint_dir=out / results.CHECKPOINTS_FOLDER, verbose=not quiet)
    run = results.description(bunch, data, options)
    seconds_before = 0.0
    if begun is not None:
        results.refuse_other_data(begun, run["data"]["sha256"], data, out)
        run = begun | {"status": run["status"]}
        seconds_before = begun.get("seconds", {}).get("fit", 0.0)
    if not quiet:
        click.echo(f"{bunch.name}: {description_of(bunch.data)}", err=True)
    with results.under_way(out, run), warnings_as_lines():
        start = time.perf_counter()
        model.fit(items, must_link=links.must, cannot_link=links.cannot)
        if bunch.feature_names is not None and not hasattr(model, "vectorizer_"):
            # So that predict finds these columns in another table.
            model.feature_names_in_ = np.array(bunch.feature_names, dtype=object)
        run["seconds"] = {"fit": round(seconds_before + time.perf_counter() - start, 3)}
        complete = results.write_results(out, model, bunch.item_names, run)
    page = write_report(out, model, bunch, run) if options["report"] else None
    if not quiet:
        print_summary(model, bunch.target)
        click.echo(f"\nResults: {out}/" + (f"\nReport:  {page}" if page is not None else ""))
    if not complete:
        click.echo(f"Stopped early; 'ddclust resume {out}' goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)


def _in_blocks(data: Any) -> Any:
    """An array that is read and shuffled in blocks."""
    from ddclust.data.items import BlockItems

    if not hasattr(data, "dtype") or hasattr(data, "indptr"):
        raise ValueError("--blocks is for arrays; texts and sparse matrices are in memory anyway.")
    return BlockItems(data)


def _links(options: Mapping[str, Any], item_names: Sequence[str]) -> Links:
    """The pairs in the files that the options name; contradictions are reported by the names of the items."""
    from ddclust.data.links import checked_links
    from ddclust.datasets import read_pairs

    must, cannot = (
        None if options[name] is None else read_pairs(options[name], item_names)
        for name in ("must_link", "cannot_link")
    )
    return checked_links(
        must, cannot, n_items=len(item_names), n_clusters=options["clusters"], item_names=item_names
    )
