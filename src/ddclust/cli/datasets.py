"""``ddclust datasets``."""

from __future__ import annotations

import click

from ddclust.cli.options import SectionCommand
from ddclust.cli.printing import print_table


@click.command(cls=SectionCommand, short_help="List the data sets that can be given by name.")
def datasets() -> None:
    """List the data sets that can be given by name, and whether their files are at hand."""
    from ddclust.datasets import NAMED

    print_table(
        ("name", "items", "classes", "at hand", "origin", "licence"),
        [(n, s.size, s.classes, s.at_hand(), s.origin, s.licence) for n, s in NAMED.items()],
        left=True,
    )
    click.echo(
        "\nFiles are looked for in the folder that the environment variable DDCLUST_DATA names, then in the cache of the"
        "\nuser. If one is missing, 'ddclust fit NAME' says which file belongs where."
    )
