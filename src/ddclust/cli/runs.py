"""``ddclust runs``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import FOLDER, SectionCommand
from ddclust.cli.printing import print_runs, print_warning, printable


@click.command(cls=SectionCommand, short_help="Show the runs of a fit, also while it works.")
@FOLDER
def runs(folder: Path) -> None:
    """Show a table of the runs of the fit in FOLDER, also while it works."""
    from ddclust.results import changed_files, read_records, read_run, status

    run = read_run(folder)
    click.echo(f"{printable(run['data'].get('name', run['data']['argument']))}: {printable(status(folder))}")
    print_runs(read_records(folder), run.get("voters", []))
    for file in changed_files(folder, run):
        print_warning(f"{str(file)!r} is not as the fit wrote it: it is damaged, was edited or removed.")
