"""``ddclust runs``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.options import FOLDER, SectionCommand, json_option
from ddclust.cli.printing import print_json, print_runs, print_warning, printable

if TYPE_CHECKING:
    from ddclust.results import RunFile


@click.command(cls=SectionCommand, short_help="Show the runs of a fit, also while it works.")
@FOLDER
@json_option("the runs")
def runs(folder: Path, as_json: bool) -> None:
    """Show a table of the runs of the fit in FOLDER, also while it works."""
    from ddclust.results import changed_files, read_run

    run = read_run(folder)
    shown = runs_in(folder, run)
    if as_json:
        print_json(shown)
    else:
        click.echo(f"{printable(shown['data'])}: {printable(shown['status'])}")
        print_runs(shown["runs"], shown["voters"])
    for file in changed_files(folder, run):
        print_warning(f"{str(file)!r} is not as the fit wrote it: it is damaged, was edited or removed.")


def runs_in(folder: Path, run: RunFile) -> dict[str, Any]:
    """What is known of the runs of the fit in a folder, as JSON has it."""
    from ddclust.results import read_records, status

    name = run["data"].get("name", run["data"]["argument"])
    return {
        "data": name,
        "status": status(folder),
        "voters": run.get("voters", []),
        "runs": read_records(folder),
    }
