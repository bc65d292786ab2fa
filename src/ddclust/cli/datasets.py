"""``ddclust datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ddclust.cli.options import SectionCommand, json_option
from ddclust.cli.printing import print_json, print_table, printable

if TYPE_CHECKING:
    from ddclust.datasets import NamedSet


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
    """List the data sets that can be given by name, and whether they are at hand.

    With NAME, tell where that data set comes from; with --write, write it as files.
    """
    from ddclust.datasets import NAMED, DataError, load

    if name is not None and name not in NAMED:
        raise DataError(f"There is no data set {name!r}; 'ddclust datasets' lists them.")
    if write is not None:
        from ddclust.data.writing import write_data

        if name is None:
            raise DataError("--write needs the NAME of a data set.")
        click.echo(f"{printable(write)}: {write_data(load(name), write)}")
        return
    if as_json:
        print_json([_facts(described) for key, described in NAMED.items() if name in (None, key)])
        return
    if name is not None:
        _describe(NAMED[name])
        return
    print_table(
        ("name", "items", "classes", "at hand"),
        [(n, s.size, s.classes or "-", s.at_hand()) for n, s in NAMED.items()],
        left=True,
    )
    click.echo("\n'ddclust datasets NAME' gives the origin, the licence and missing files of one.")


def _facts(described: NamedSet) -> dict[str, str | int | None]:
    """What is known of a data set, as JSON."""
    return {
        "name": described.name,
        "items": described.size,
        "classes": described.classes,
        "at hand": described.at_hand(),
        "origin": described.origin,
        "licence": described.licence,
    }


def _describe(described: NamedSet) -> None:
    """Print what is known of a data set, and which files it lacks."""
    from ddclust.data.named.store import where_to

    click.echo(
        f"{described.name}: {described.size}"
        + (f", {described.classes} classes" if described.classes else "")
    )
    click.echo(f"origin:  {described.origin}\nlicence: {described.licence}\nat hand: {described.at_hand()}")
    if described.at_hand() == "no":
        click.echo(f"Put {' and '.join(described.files)} {where_to()}.")
