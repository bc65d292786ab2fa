"""``ddclust datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import SectionCommand, json_option
from ddclust.cli.printing import print_json, print_table


@click.command(cls=SectionCommand, short_help="List the data sets that can be given by name.")
@click.argument("name", required=False)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the data set NAME as files, the way your own data might look: images to a new folder, texts and tables to"
    " a new .csv file.",
)
@json_option("the data sets")
def datasets(name: str | None, write: Path | None, as_json: bool) -> None:
    """List the data sets that can be given by name, and whether their files are at hand.

    With NAME and --write, a data set is written as files instead.
    """
    from ddclust.datasets import NAMED, DataError, load

    if name is not None and name not in NAMED:
        raise DataError(f"There is no data set {name!r}; 'ddclust datasets' lists them.")
    if write is not None:
        from ddclust.data.writing import write_data

        if name is None:
            raise DataError("--write needs the NAME of a data set.")
        click.echo(f"{write}: {write_data(load(name), write)}")
        return
    shown = NAMED if name is None else {name: NAMED[name]}
    header = ("name", "items", "classes", "at hand", "origin", "licence")
    rows = [(n, s.size, s.classes or "-", s.at_hand(), s.origin, s.licence) for n, s in shown.items()]
    if as_json:
        print_json([dict(zip(header, row, strict=True)) for row in rows])
        return
    print_table(header, rows, left=True)
    click.echo(
        "\nFiles are looked for in the folder that the environment variable DDCLUST_DATA names, then in the cache of the"
        "\nuser. If one is missing, 'ddclust fit NAME' says which file belongs where."
    )
