"""``ddclust runs``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import FOLDER, SectionCommand
from ddclust.cli.printing import print_runs


@click.command(cls=SectionCommand, short_help="Show the runs of a fit, also while it works.")
@FOLDER
def runs(folder: Path) -> None:
    """Show a table of the runs of the fit in FOLDER, also while it works."""
    from ddclust.results import read_records, read_run

    run = read_run(folder)
    click.echo(f"{run['data'].get('name', run['data']['argument'])}: {run['status']}")
    print_runs(read_records(folder), run.get("voters", []))
