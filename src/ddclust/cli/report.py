"""``ddclust report``, and the report that every fit leaves."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ddclust.cli.errors import USAGE_ERROR, one_sentence
from ddclust.cli.inputs import load_data, with_max_bytes
from ddclust.cli.options import FOLDER, MAX_BYTES, NAMES, SectionCommand, quiet_option, with_rows
from ddclust.cli.printing import print_warning, printable

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from ddclust.ddc import DDC
    from ddclust.results import RunFile


@click.command(cls=SectionCommand, short_help="Make the report of a fit again.")
@FOLDER
@click.argument("data", required=False)
@with_rows(MAX_BYTES)
@NAMES
@quiet_option("No progress and no notes.")
def report(folder: Path, data: str | None, names: Path | None, max_bytes: float | None, quiet: bool) -> None:
    """Make report.html again for the fit in FOLDER.

    DATA is what was clustered. By default it is looked for where it was.
    """
    from ddclust.data.items import fingerprint
    from ddclust.results import data_argument, open_model, read_names, read_run, refuse_other_data

    run = read_run(folder)
    model = open_model(folder)
    if quiet:
        model.set_params(verbose=False)
    cluster_names = None if names is None else read_names(names, model.labels_, model.n_clusters_)
    data = data or data_argument(run)
    bunch = load_data(data, with_max_bytes(run["options"], max_bytes), quiet=quiet)
    refuse_other_data(run, fingerprint(bunch.data), data, folder)
    page = write_report(folder, model, bunch, run, cluster_names)
    if page is None:
        click.get_current_context().exit(USAGE_ERROR)
    click.echo(printable(page))


def write_report(
    folder: Path,
    model: DDC,
    bunch: Bunch,
    run: RunFile,
    cluster_names: dict[int, str] | None = None,
) -> Path | None:
    """Write the page and return its path; if that fails, print why, since the results are there all the same."""
    from ddclust.results import REPORT_FILE
    from ddclust.show.report import report_page
    from ddclust.storage.atomic import write_file

    try:
        page = report_page(
            model,
            bunch.data,
            title=bunch.name,
            item_names=bunch.item_names,
            truth=bunch.target,
            class_names=bunch.target_names,
            cluster_names=cluster_names,
            command=shlex.join(run["command"]),
            warnings=run.get("warnings", ()),
            skipped=bunch.skipped,
            image_folder=_image_folder(run),
        )
        content = page.encode("utf-8", "backslashreplace")
    except Exception as error:
        print_warning(f"the report could not be made: {one_sentence(error)}")
        return None
    write_file(folder / REPORT_FILE, content)
    return folder / REPORT_FILE


def _image_folder(run: RunFile) -> str | None:
    """The folder that a fit read, which may hold images."""
    from ddclust.results import data_argument

    argument = data_argument(run)
    return argument if Path(argument).is_dir() else None
