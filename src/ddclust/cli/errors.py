"""Exit codes, and errors as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ddclust.cli.printing import printable

CRASH = 1
USAGE_ERROR = 2
INTERRUPTED = 130
# In the words of the help, the man pages and the documentation.
EXIT_CODES = {
    0: "the command did its work",
    CRASH: "the program that reads the output, such as head, ended early; or, with a traceback, there is a bug in ddclust",
    USAGE_ERROR: "wrong usage, or an input that cannot be used; the last line of standard error says what and why",
    INTERRUPTED: "Ctrl-C; what was done so far is kept, and the last line says how to continue",
}
LONGEST = 2000


def one_sentence(error: Exception) -> str:
    """The message of an error on a single line."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {text}".strip()
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {str(error.filename)!r}." if error.filename else f"{error.strerror}."
    if len(text) > LONGEST:  # of a name or a value in it; the file is at the beginning, the remedy at the end
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    return text or type(error).__name__


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """After Ctrl-C, say that the same command goes on with what is in its folder."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(
            f"\nInterrupted. {printable(out)}/ keeps what is done; run the same command to go on.", err=True
        )
        click.get_current_context().exit(INTERRUPTED)
