r"""Write the man pages of the command line, from the commands whose help ``--help`` shows.

python docs/man/write.py FOLDER
"""

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from ddclust import __version__
from ddclust.cli.errors import EXIT_CODES
from ddclust.cli.main import SECTIONS, main
from ddclust.cli.options import SectionCommand

REPOSITORY = "https://github.com/ddclust/ddclust"
ENVIRONMENT = [("DDCLUST_DATA", "Folder in which the files of named data sets are looked for first.")]
WIDEST = 1000  # short help is not shortened


def pages() -> dict[str, str]:
    """The page of each command, by the name of its file."""
    commands = list(main.commands.values())
    written = {"ddclust.1": page_of_main([f"ddclust-{command.name}" for command in commands])}
    return written | {f"ddclust-{command.name}.1": page_of(command) for command in commands}


def page_of_main(names: list[str]) -> str:
    """The page that lists the commands."""
    context = click.Context(main, info_name="ddclust", **main.context_settings)
    purpose, *rest = paragraphs_of(main.help)
    options = [parameter.get_help_record(context) for parameter in main.get_params(context)]
    lines = [
        *beginning("ddclust", purpose, main, context),
        heading("SH", "DESCRIPTION"),
        *map(paragraph, rest),
        heading("SH", "COMMANDS"),
    ]
    for title, commands in SECTIONS.items():
        purposes = [(f"ddclust-{c.name}(1)", c.get_short_help_str(WIDEST)) for c in commands]
        lines += [heading("SS", title), *definitions(purposes)]
    lines += [heading("SH", "OPTIONS"), *definitions(record for record in options if record is not None)]
    lines += [heading("SH", "ENVIRONMENT"), *definitions(ENVIRONMENT)]
    return "\n".join([*lines, *ending(names)])


def page_of(command: click.Command) -> str:
    """The page of a command."""
    parent = click.Context(main, info_name="ddclust", **main.context_settings)
    context = click.Context(command, info_name=command.name, parent=parent)
    lines = [
        *beginning(f"ddclust-{command.name}", command.get_short_help_str(WIDEST), command, context),
        heading("SH", "DESCRIPTION"),
        *map(paragraph, paragraphs_of(command.help)),
        heading("SH", "OPTIONS"),
    ]
    assert isinstance(command, SectionCommand), command
    sections = command.records(context)
    for title, records in sections.items():
        lines += [heading("SS", title)] if len(sections) > 1 else []
        lines += definitions(records)
    return "\n".join([*lines, *ending(["ddclust"])])


def beginning(name: str, purpose: str, command: click.Command, context: click.Context) -> list[str]:
    """Title, name and usage."""
    return [
        r".\" Written by docs/man/write.py from the commands.",
        f'.TH "{name.upper()}" "1" "" "ddclust {__version__}" "ddclust"',
        heading("SH", "NAME"),
        f"{escaped(name)} \\- {escaped(purpose.rstrip('.'))}",
        heading("SH", "SYNOPSIS"),
        f"\\fB{escaped(context.command_path)}\\fR {escaped(' '.join(command.collect_usage_pieces(context)))}",
    ]


def ending(names: Iterable[str]) -> list[str]:
    """Exit codes, and other pages."""
    codes = ((str(code), f"{meaning[0].upper()}{meaning[1:]}.") for code, meaning in EXIT_CODES.items())
    others = ", ".join(f"\\fB{escaped(name)}\\fR(1)" for name in names)
    return [
        heading("SH", "EXIT STATUS"),
        *definitions(codes),
        heading("SH", "SEE ALSO"),
        others,
        ".PP",
        escaped(REPOSITORY),
        "",
    ]


def paragraphs_of(text: str | None) -> list[str]:
    return [part for part in inspect.cleandoc(text or "").split("\n\n") if part.strip()]


def paragraph(text: str) -> str:
    r"""A paragraph. One that begins with click's mark \b keeps its lines."""
    mark, _, lines = text.rpartition("\b\n")
    if not mark and lines != text:
        return "\n".join([".PP", ".nf", *map(line, lines.splitlines()), ".fi"])
    return f".PP\n{line(' '.join(text.split()))}"


def definitions(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names in bold, and under each of them what it means."""
    for name, meaning in entries:
        yield f".TP\n\\fB{escaped(name)}\\fR\n{line(' '.join(meaning.split()))}"


def heading(macro: str, title: str) -> str:
    return f'.{macro} "{escaped(title)}"'


def line(text: str) -> str:
    """A line of text, also if it begins as a request of roff does."""
    return f"\\&{escaped(text)}" if text.startswith((".", "'")) else escaped(text)


def escaped(text: str) -> str:
    """Text whose hyphens can be copied as options."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def write(folder: Path) -> None:
    """Write every page, and remove those of commands that there are no longer."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in folder.glob("*.1"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
