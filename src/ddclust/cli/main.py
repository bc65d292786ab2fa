"""The command line: the group of commands, friendly errors and exit codes.

Only this package reads arguments and prints. Heavy imports wait inside the commands that need them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import sys
from typing import Any

import click

from ddclust.cli.compare import compare
from ddclust.cli.datasets import datasets
from ddclust.cli.errors import EXIT_CODES, INTERRUPTED, USAGE_ERROR, one_sentence
from ddclust.cli.evaluate import evaluate
from ddclust.cli.explain import explain
from ddclust.cli.fit import fit, resume
from ddclust.cli.options import in_options
from ddclust.cli.predict import predict
from ddclust.cli.printing import PrintableStream
from ddclust.cli.report import report
from ddclust.cli.runs import runs
from ddclust.cli.scan import scan
from ddclust.cli.update import update
from ddclust.progress import TolerantStream, wrapped

SECTIONS = {
    "Cluster": (fit, resume, runs, scan, update),
    "Look at the result": (report, explain, predict),
    "Compare": (evaluate, compare),
    "Data": (datasets,),
}
HELP = """Cluster images, texts and tables without labels, by deep divergence-based clustering.

\b
Example:
  ddclust fit digits -k 10 --out digits    cluster; results go to digits/
  ddclust predict digits new.npy           assign new items to the clusters
  ddclust evaluate digits truth.csv        compare with known classes

'ddclust COMMAND --help' shows the options of a command."""


class FriendlyGroup(click.Group):
    """Lists commands by section, and turns expected errors into one sentence and exit code 2, Ctrl-C into 130."""

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Parse the arguments and run the command. A crash, by a data file that shrinks say, tells where it was."""
        with contextlib.suppress(
            io.UnsupportedOperation, RuntimeError
        ):  # there is no standard error to tell it to
            faulthandler.enable()
        notes = PrintableStream(TolerantStream(sys.stderr))  # that nobody reads them stops nothing
        with contextlib.redirect_stderr(notes):
            try:
                return super().main(*arguments, **settings)
            except OSError as error:  # standard output is full, and it is the help that does not fit
                click.echo(f"Error: {one_sentence(error)}", err=True)
                sys.exit(USAGE_ERROR)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            output: Any = None if sys.stdout is None else PrintableStream(sys.stdout)  # None if it was closed
            with contextlib.redirect_stdout(output):
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the output, such as head, has seen enough; click ends quietly
            raise
        except (ValueError, OSError, ArithmeticError, MemoryError) as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            click.echo(wrapped(f"Error: {in_options(one_sentence(error), command)}"), err=True)
            ctx.exit(USAGE_ERROR)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            ctx.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{command.name:{width}}", command.get_short_help_str(formatter.width))
                        for command in commands
                    ]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the exit codes mean."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


@click.group(
    cls=FriendlyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help=HELP,
)
@click.version_option(package_name="ddclust")
def main() -> None:
    """Cluster images, texts and tables without labels."""


for command in (command for commands in SECTIONS.values() for command in commands):
    main.add_command(command)
