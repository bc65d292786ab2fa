"""``ddclust runs``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import FOLDER, SectionCommand, json_option
from ddclust.cli.printing import print_json, print_runs, print_warning, printable


@click.command(cls=SectionCommand, short_help="Show the runs of a fit, also while it works.")
@FOLDER
@json_option("the runs")
def runs(folder: Path, as_json: bool) -> None:
    """Show a table of the runs of the fit in FOLDER, also while it works."""
    from ddclust.results import changed_files, read_records, read_run, status

    run = read_run(folder)
    name, records, voters = (
        run["data"].get("name", run["data"]["argument"]),
        read_records(folder),
        run.get("voters", []),
    )
    if as_json:
        print_json({"data": name, "status": status(folder), "voters": voters, "runs": records})
    else:
        click.echo(f"{printable(name)}: {printable(status(folder))}")
        print_runs(records, voters)
    for file in changed_files(folder, run):
        print_warning(f"{str(file)!r} is not as the fit wrote it: it is damaged, was edited or removed.")
