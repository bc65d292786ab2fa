"""The command line of the laboratory: run, status, page, pool and bench."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from ddclust.datasets import DataError
from ddclust.objective.precision import PRECISIONS
from lab import bench as _bench
from lab.cells import BUDGETS, Cell
from lab.experiments import EXPERIMENTS, declared
from lab.experiments.pool import READINGS, pool_cell
from lab.pages import write_pages
from lab.paths import CHECKOUT, Place
from lab.pool import make_runs, write_pool_figure, write_votes
from lab.runner import BusyError, read_result, run_cell, state

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Reproduce the paper, study the defaults and measure the library.

    Results go to lab/results, one JSON file each, and the pages (RESULTS.md and others) are written from these files.
    """


out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=CHECKOUT,
    help="Folder for the pages and the folder lab/. By default this checkout.",
)


def cell_options(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments that name cells."""
    for option in (
        out_option,
        click.option(
            "--budget",
            type=click.Choice(BUDGETS),
            default="quick",
            show_default=True,
            help="Minutes; about three hours on two cores; the paper's own size.",
        ),
        click.option(
            "--cell", "names", multiple=True, metavar="NAME", help="Only this cell; can be repeated."
        ),
        click.option(
            "--data", "data_sets", multiple=True, metavar="NAME", help="Only this data set; can be repeated."
        ),
        click.argument("experiments", nargs=-1, metavar=f"[{'|'.join(EXPERIMENTS)}]..."),
    ):
        command = option(command)
    return command


@main.command()
@cell_options
@click.option("-q", "--quiet", is_flag=True, help="No progress bars.")
def run(
    experiments: tuple[str, ...],
    data_sets: tuple[str, ...],
    names: tuple[str, ...],
    budget: str,
    out: Path,
    quiet: bool,
) -> None:
    """Make all experiments, or those that are named.

    Cells that are done are left alone, and cells that were stopped go on.
    """
    place = Place(out)
    found = cells_of(experiments, data_sets, names, budget)
    problems: list[str] = []
    missing = set()
    for number, cell in enumerate(found, 1):
        before = "no data" if cell.data in missing else state(cell, place)
        is_left_out = before in ("done", "no data")
        click.echo(f"[{number}/{len(found)}] {cell.key}{f': {before}' if is_left_out else ' ...'}", err=True)
        if is_left_out:
            continue
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                run_cell(cell, place, verbose=not quiet)
        except KeyboardInterrupt:
            click.echo("\nInterrupted. What is done is kept; the same command goes on.", err=True)
            click.get_current_context().exit(INTERRUPTED)
        except DataError as error:
            missing.add(cell.data)
            click.echo(f"{cell.data} is left out: {error}", err=True)
        except (BusyError, ValueError, ArithmeticError, OSError) as error:
            problems.append(cell.key)
            click.echo(f"{cell.key}: {error}", err=True)
        else:
            accuracy, minutes = brief(cell, place)
            click.echo(f"{cell.key}: ACC {accuracy} after {minutes} min", err=True)
            write_pages(place)
    _write_pages(place)
    if problems:
        raise click.ClickException(
            f"{len(problems)} of {len(found)} cells were not made: {', '.join(problems)}."
        )


@main.command()
@cell_options
def status(
    experiments: tuple[str, ...], data_sets: tuple[str, ...], names: tuple[str, ...], budget: str, out: Path
) -> None:
    """Show how far every cell is."""
    place = Place(out)
    rows = [
        (cell.experiment, cell.data, cell.name, state(cell, place), *brief(cell, place))
        for cell in cells_of(experiments, data_sets, names, budget)
    ]
    table = [("experiment", "data", "cell", "state", "ACC", "minutes"), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


@main.command()
@out_option
def page(out: Path) -> None:
    """Write all pages from the results."""
    _write_pages(Place(out))


@main.command()
@click.option("--reading", type=click.Choice(list(READINGS)), help="By default all readings.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="bfloat16",
    show_default=True,
    help="Of the network.",
)
@click.option("--seeds", default="0-19", show_default=True, help="A seed, or the first and the last.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Runs at a time, each on one core. By default all cores."
)
@out_option
def pool(reading: str | None, precision: str, seeds: str, jobs: int | None, out: Path) -> None:
    """Make single runs of the paper's protocol at size (docs/paper-protocol.md).

    Runs that are done are left alone, and runs that were stopped go on.
    """
    place = Place(out)
    try:
        first, last = (int(part) for part in (seeds.split("-") * 2)[:2])
    except ValueError:
        raise click.UsageError(f"--seeds takes a seed or a range such as 0-19, not {seeds!r}.") from None
    cells = [
        pool_cell(name, seed, precision)
        for seed in range(first, last + 1)
        for name in ([reading] if reading else READINGS)
    ]
    try:
        make_runs(cells, place, jobs or os.cpu_count() or 1, click.echo)
    except DataError as error:
        raise click.ClickException(str(error)) from None
    write_votes(place)
    write_pool_figure(place)
    _write_pages(place)


@main.command()
@click.argument("names", nargs=-1, metavar=f"[{'|'.join(_bench.NAMES)}]...")
@out_option
def bench(names: tuple[str, ...], out: Path) -> None:
    """Run all benchmarks, or those that are named, each in its own process."""
    place = Place(out)
    refuse_unknown("benchmark", names, _bench.NAMES)
    for name in names or _bench.NAMES:
        click.echo(f"{name} ...", err=True)
        _bench.run_apart(name, place)
    _write_pages(place)


def cells_of(
    experiments: Sequence[str], data_sets: Sequence[str], names: Sequence[str], budget: str
) -> list[Cell]:
    """The cells that are named on the command line."""
    refuse_unknown("experiment", experiments, EXPERIMENTS)
    cells = [cell for experiment in experiments or EXPERIMENTS for cell in declared(experiment, budget)]
    refuse_unknown("data set", data_sets, dict.fromkeys(cell.data for cell in cells))
    cells = [cell for cell in cells if not data_sets or cell.data in data_sets]
    refuse_unknown("cell", names, dict.fromkeys(cell.name for cell in cells))
    return [cell for cell in cells if not names or cell.name in names]


def refuse_unknown(what: str, given: Sequence[str], known: Iterable[str]) -> None:
    """Raise a usage error if a name is not known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise click.UsageError(f"There is no {what} {name!r} here; choose from {', '.join(known)}.")


def brief(cell: Cell, place: Place) -> tuple[str, str]:
    """ACC of the label-free choice, and minutes, of a cell that may not be done."""
    result = read_result(place.result(cell))
    if result is None:
        return "", ""
    seconds = result["provenance"]["seconds"]
    minutes = "" if seconds is None else f"{seconds / 60:.1f}"
    if "summary" in result:
        return f"{result['summary']['chosen']['ACC']['mean']:.3f}", minutes
    if "run" in result:
        return f"{result['run']['ACC']:.3f}", minutes
    free = [row["label_free"]["ACC"] for row in result.get("rows", []) if "label_free" in row]
    return (f"{free[0]:.3f}" if free else "-"), minutes


def _write_pages(place: Place) -> None:
    for file in write_pages(place):
        click.echo(f"Written: {place.relative(file)}")


def _show_warning(message: Warning | str, *_: object) -> None:
    """A warning as one line."""
    click.echo(f"Warning: {message}", err=True)
