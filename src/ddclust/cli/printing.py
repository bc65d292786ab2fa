"""What commands print: tables, notes, and warnings as lines, none of which can control the terminal."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.options import in_options
from ddclust.progress import wrapped

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

    from ddclust.ddc import DDC

SHOWN_SKIPPED = 5
SHOWN_COLUMNS = 50
# What moves the cursor, colours, renames or asks the terminal (C0, DEL, C1), or turns the direction of the text around.
_LAYOUT = "\n\r\t"
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {code: repr(chr(code))[1:-1] for code in _CONTROLS}
_ESCAPES_IN_LINES = {code: text for code, text in _ESCAPES.items() if chr(code) not in _LAYOUT}


def printable(name: object) -> str:
    r"""A name from outside, such as that of a file, on one line and without control characters.

    Examples
    --------
    >>> printable("a\x1b[31m\nb"), printable("\N{SEAL} caf\xe9")
    ('a\\x1b[31m\\nb', '🦭 café')
    """
    return str(name).translate(_ESCAPES)


class PrintableStream:
    r"""A text stream that shows control characters as escapes, except for those that lay out lines and progress bars.

    Whatever a command prints goes through one, since names of files, columns and clusters may hold anything.

    Examples
    --------
    >>> import sys
    >>> print("a\x1b[31m\rb\u202ec", file=PrintableStream(sys.stdout))
    a\x1b[31m\rb\u202ec
    """

    # Without one, click writes to this stream whatever its encoding.
    buffer = None

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        # A progress bar begins or ends with a carriage return; anywhere else it would overwrite the line.
        inner = text.strip("\r")
        before, _, after = text.partition(inner) if inner else (text, "", "")
        inner = inner.translate(_ESCAPES_IN_LINES).replace("\r", "\\r")
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        self.stream.write(before + inner.encode(encoding, "backslashreplace").decode(encoding) + after)
        return len(text)


def print_data(text: str) -> None:
    """Print what is meant for other programs: exactly as it is, unless somebody looks at it."""
    if isinstance(sys.stdout, PrintableStream) and not sys.stdout.isatty():
        click.echo(text.encode(), file=sys.stdout.stream, nl=False)
    else:
        click.echo(text, nl=False)


def print_warning(message: object) -> str:
    """Print a warning to standard error, in the words of the command, and return it."""
    context = click.get_current_context(silent=True)
    command = None if context is None else context.command
    warning = in_options(str(message), command)
    click.echo(wrapped(f"Warning: {warning}"), err=True)
    return warning


def print_note(message: object) -> None:
    """Print what a command decided by itself to standard error."""
    click.echo(wrapped(f"Note: {message}"), err=True)


@contextmanager
def warnings_as_lines(
    column_names: Sequence[str] | None = None, item_names: Sequence[str] | None = None
) -> Iterator[list[str]]:
    """Show warnings as lines on standard error, without file names and code, and collect them."""
    said: list[str] = []

    def show(message: Any, *_: object, **__: object) -> None:
        # Arrays that were read from a table have no names of columns; the reader has them.
        named = message.with_names(column_names) if hasattr(message, "with_names") else message
        if item_names is not None and hasattr(named, "with_item_names"):
            named = named.with_item_names(item_names)
        said.append(print_warning(named))

    with warnings.catch_warnings():
        # Columns of tables are found by their names when they are read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = show
        yield said


def print_notes(bunch: Bunch, *, quiet: bool) -> None:
    """Print what the reader of the data decided, unless ``quiet``, and which files it skipped."""
    for note in [] if quiet else bunch.notes:
        print_note(note)
    n_skipped = len(bunch.skipped)
    if n_skipped:
        shown = "; ".join(
            f"{printable(name)}: {reason}" for name, reason in list(bunch.skipped.items())[:SHOWN_SKIPPED]
        )
        more = "; ..." if n_skipped > SHOWN_SKIPPED else ""
        count = (
            "1 file cannot be read and is"
            if n_skipped == 1
            else f"{n_skipped:,} files cannot be read and are"
        )
        print_warning(f"{count} skipped: {shown}{more}")


def description_of(data: Any) -> str:
    """Number and form of the items, in words."""
    if not hasattr(data, "shape"):
        return f"{len(data):,} texts"
    if isinstance(getattr(data, "dtype", None), str):
        return f"a table of {data.shape[0]:,} rows and {data.shape[1]:,} columns"
    shape = " x ".join(map(str, data.shape[1:]))
    return f"{data.shape[0]:,} items of {shape} values" + (", sparse" if hasattr(data, "indptr") else "")


COLUMN_HEADER = ("column", "kind", "what is done", "gaps")


def columns_of(data: Any, language: str) -> list[dict[str, Any]] | None:
    """What the columns of a table are taken for, as JSON has it; None of data of plain numbers."""
    from ddclust.data.tables import Columns, Table

    if not isinstance(data, Table):
        return None
    return [dict(zip(COLUMN_HEADER, row, strict=True)) for row in Columns.of(data, language).rows()]


def print_columns(data: Any, language: str, *, err: bool = False) -> bool:
    """Print what the columns of a table are taken for, if it has more than plain numbers; gives whether it has."""
    from ddclust.data.tables import Columns, Table

    if not isinstance(data, Table):
        return False
    columns = Columns.of(data, language)
    rows = columns.rows()
    print_table(COLUMN_HEADER, rows[:SHOWN_COLUMNS], left=True, err=err)
    if len(rows) > SHOWN_COLUMNS:
        click.echo(f"... and {len(rows) - SHOWN_COLUMNS:,} more columns", err=err)
    if {column.kind for column in columns.used} == {"text"}:
        names = ",".join(printable(column.name) for column in columns.used)
        print_note(
            f"The table has nothing but texts to cluster; --text {names} clusters them by all their words."
        )
    return True


def print_json(content: object) -> None:
    """Print JSON for other programs."""
    print_data(json_text(content))


def json_text(content: object) -> str:
    """JSON for other programs. What is no number in JSON, NaN and infinities, is null.

    Examples
    --------
    >>> print(json_text([math.nan, 0.5]), end="")
    [
     null,
     0.5
    ]
    """
    return json.dumps(_without_nan(content), indent=1, default=_plain) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """A number or array of NumPy as JSON has it, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_table(
    header: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    left: bool | Sequence[str] = False,
    err: bool = False,
) -> None:
    """Print rows under a header, in columns that are aligned to the right, or to the left: all or those named."""
    table = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    is_left = [left if isinstance(left, bool) else name in left for name in header]
    aligned = [str.ljust if to_the_left else str.rjust for to_the_left in is_left]
    for row in table:
        cells = (align(cell, width) for align, cell, width in zip(aligned, row, widths, strict=True))
        click.echo("  ".join(cells).rstrip(), err=err)


def print_runs(records: Sequence[dict[str, Any]], voters: Sequence[int]) -> None:
    """Print a table of the runs of a fit."""
    from ddclust.training.record import Outcome

    kept = {run: "best" if place == 0 else "votes" for place, run in enumerate(voters)}
    print_table(
        ("run", "seed", "loss", "clusters", "iterations", "ended", "seconds", ""),
        [
            (
                record["run"] + 1,
                record["seed"],
                "-" if record["loss"] is None else f"{record['loss']:.4f}",
                record["clusters_used"] or "-",
                record["n_iter"],
                Outcome(record["outcome"]).in_words,
                f"{record['seconds']:.1f}",
                kept.get(record["run"], ""),
            )
            for record in records
        ],
    )


def summary_of(model: DDC, truth: NDArray | None, names: Mapping[int, str]) -> dict[str, Any]:
    """The clusters of a fitted model, and its scores if classes are known, as JSON has them."""
    import numpy as np

    measures = {"confidence": model.probabilities_.max(axis=1), "agreement": model.agreement_}
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_).tolist()
    clusters = [
        {"cluster": i, "items": size}
        | {name: float(x[model.labels_ == i].mean()) if size else math.nan for name, x in measures.items()}
        | {"name": names.get(i)}
        for i, size in enumerate(sizes)
    ]
    scores = None if truth is None else numbers(("ACC", "NMI"), score_cells(truth, model.labels_))
    return {"clusters": clusters, "scores": scores}


def print_summary(model: DDC, truth: NDArray | None, names: Mapping[int, str]) -> None:
    """Print the runs and the clusters of a fitted model, and its scores if classes are known."""
    summary = summary_of(model, truth, names)
    print_runs(model.runs_, model.voters_)
    click.echo()
    header = ("cluster", "items", "confidence", "agreement", "name")
    print_table(
        header, [[_cell(cluster[name]) for name in header] for cluster in summary["clusters"]], left=("name",)
    )
    if truth is not None:
        accuracy, information = map(_cell, summary["scores"].values())
        click.echo(f"\nAgainst the known classes (never used in training): ACC {accuracy}, NMI {information}")


def _cell(value: Any) -> str:
    """A value of a summary as text, "-" if there is none, as of the agreement of a single run."""
    if value is None or value != value:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def numbers(header: Sequence[str], cells: Sequence[str]) -> dict[str, float | None]:
    """Scores by name; None for those that there are not."""
    return {name: None if cell == "-" else float(cell) for name, cell in zip(header, cells, strict=True)}


def score_cells(truth: NDArray, labels: NDArray, confidence: NDArray | None = None) -> tuple[str, ...]:
    """ACC, NMI and, with confidences, ECE as text, "-" if no class is known."""
    from ddclust.choosing.metrics import expected_calibration_error, known_classes, scores

    found = [*scores(truth, labels)]
    if confidence is not None:
        codes = known_classes(truth)[0]
        known = codes >= 0
        found.append(
            expected_calibration_error(codes[known], labels[known], confidence[known])
            if known.any()
            else math.nan
        )
    return tuple("-" if math.isnan(score) else f"{score:.3f}" for score in found)
