"""One table from the options of the command line to the parameters that they set.

A parameter is written once in the estimator and once here. Nothing in this module imports torch before a model is
built, so that ``--help`` answers at once. Choices and defaults are therefore repeated here; tests compare them with
the registries and with the signature of DDC.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ddclust.ddc import DDC

CLUSTERS, TRAINING, DATA, OUTPUT = "Clusters", "Training", "Data", "Output"
SECTIONS = (CLUSTERS, TRAINING, DATA, OUTPUT)  # in the order of the help
LARGEST_SEED = 2**32 - 1
# The words of a message that may be names of parameters; what is quoted is data.
_WORDS = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'|"[^"]*"|(?<![\w.])(?P<name>[a-z_]+)\b(?P<set>=(?=\S))?""")


def _as_given(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Row:
    """An option and the parameter that it sets.

    ``parameter`` is one of DDC or, for options about the data, one of :func:`ddclust.datasets.load`; "network.init"
    is a field of the object that the parameter ``network`` takes, and None is for options that a command uses itself.
    An option that is None leaves the parameter to its own default. ``convert`` turns the option's value into the
    parameter's.
    """

    flags: tuple[str, ...]
    parameter: str | None
    section: str
    help: str
    type: Any = None
    default: Any = None
    metavar: str | None = None
    required: bool = False
    is_flag: bool = False
    convert: Callable[[Any], Any] = _as_given

    @property
    def name(self) -> str:
        """The name of the option in Python."""
        long = next(flag for flag in self.flags if flag.startswith("--"))
        return long.partition("/")[0].removeprefix("--").replace("-", "_")

    @property
    def shown_default(self) -> bool:
        """Whether the help shows the default."""
        return self.default is not None and self.default is not False

    def checked(self, value: Any) -> Any:
        """A value that was stored, as the command line would give it."""
        as_typed = value if value is None or isinstance(value, bool) else str(value)
        return click.types.convert_type(self.type, self.default)(as_typed)


class Number(click.ParamType):
    """A number of the command line between two ends, with errors that say what it must be.

    Examples
    --------
    >>> Number(int, at_least=1).convert("0", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: 0 is not at least 1.
    """

    name = "number"

    def __init__(
        self,
        kind: type[int] | type[float],
        *,
        at_least: float | None = None,
        above: float | None = None,
        at_most: float | None = None,
        below: float | None = None,
    ) -> None:
        self.kind = kind
        self.ends = (
            ("at least", at_least, operator.ge),
            ("above", above, operator.gt),
            ("at most", at_most, operator.le),
            ("below", below, operator.lt),
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, if it is one and between the ends."""
        try:
            number = self.kind(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a {'whole number' if self.kind is int else 'number'}.", param, ctx)
        for words, end, holds in self.ends:
            if end is not None and not holds(number, end):
                self.fail(f"{value} is not {words} {end}.", param, ctx)
        return number


class SectionOption(click.Option):
    """An option that stands under the title of its section in the help, and the parameter that it sets, if any."""

    def __init__(
        self, *arguments: Any, section: str = OUTPUT, parameter: str | None = None, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.section = section
        self.parameter = parameter


class SectionCommand(click.Command):
    """A command whose help lists its options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of options for each section."""
        records = self.records(ctx)
        for section, listed in records.items():
            with formatter.section(section if len(records) > 1 else "Options"):
                formatter.write_dl(listed)

    def records(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """The options of each section as they are written, and what they do."""
        records: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records[getattr(parameter, "section", OUTPUT)].append(record)
        return {section: listed for section, listed in records.items() if listed}


def in_options(message: str, command: click.Command | None) -> str:
    """A message of the library in which parameters have the names of the command's options.

    Examples
    --------
    >>> row = Row(("--text",), "text_column", DATA, "")
    >>> command = with_rows(row)(click.command("fit")(print))
    >>> in_options("text_column='a' does not apply to 'my text_column=a.npy'.", command)
    "--text 'a' does not apply to 'my text_column=a.npy'."
    """
    flags = {
        option.parameter.rpartition(".")[2]: max(option.opts, key=len)
        for option in (command.params if command is not None else ())
        if isinstance(option, SectionOption) and option.parameter is not None
    }

    def translated(match: re.Match[str]) -> str:
        name, is_set = match["name"], match["set"]
        # A bare word such as "language" is English, one such as "n_init" is not.
        if name not in flags or not (is_set or "_" in name):
            return match[0]
        return flags[name] + (" " if is_set else "")

    return _WORDS.sub(translated, message)


def with_rows(*rows: Row) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that gives a command the options of these rows."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for row in reversed(rows):
            # For click, a default of None is a default: a required option would never be missing.
            default = {} if row.default is None else {"default": row.default}
            command = click.option(
                *row.flags,
                row.name,
                cls=SectionOption,
                section=row.section,
                parameter=row.parameter,
                help=row.help,
                type=row.type,
                show_default=row.shown_default,
                metavar=row.metavar,
                required=row.required,
                is_flag=row.is_flag or None,
                **default,
            )(command)
        return command

    return decorate


def _table(*rows: Row) -> dict[str, Row]:
    return {row.name: row for row in rows}


def _sizes(text: str) -> list[float] | str:
    """What --sizes stands for."""
    if text == "k-means":
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--sizes {text!r} is neither 'k-means' nor a list of numbers such as 40,30,30."
        ) from None


def _names(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _kinds(text: str) -> dict[str, str]:
    """What --kind says of columns."""
    pairs = [part.rpartition("=") for part in _names(text)]
    wrong = next((kind for name, _, kind in pairs if not name.strip()), None)
    if wrong is not None:
        raise ValueError(f"--kind {wrong!r} names no column; say COLUMN=KIND, such as zip=category.")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


# How to read DATA: parameters of ddclust.datasets.load.
DATA_TABLE = _table(
    Row(
        ("--text",),
        "text_column",
        DATA,
        "Column of a table with the texts; several columns are joined.",
        metavar="COLUMN,...",
    ),
    Row(
        ("--id",),
        "id_column",
        DATA,
        "Column with the names of the items.  [default: id, or a column such as customer_id in a table of more than numbers]",
        metavar="COLUMN",
    ),
    Row(
        ("--truth",),
        "truth_column",
        DATA,
        "Column with the known classes, which training never sees.",
        metavar="COLUMN",
    ),
    Row(
        ("--columns",),
        "value_columns",
        DATA,
        "The only columns of a table to cluster.  [default: all but --id, --truth and --drop]",
        metavar="COLUMN,...",
        convert=_names,
    ),
    Row(
        ("--drop",),
        "drop_columns",
        DATA,
        "Columns of a table that are not clustered.",
        metavar="COLUMN,...",
        convert=_names,
    ),
    Row(
        ("--kind",),
        "kinds",
        DATA,
        "What columns of a table are, where the guess is wrong: number, category, boolean, date, text or id.",
        metavar="COLUMN=KIND,...",
        convert=_kinds,
    ),
    Row(
        ("--size",),
        "image_size",
        DATA,
        "Crop and resize the images of a folder to squares with sides of so many pixels.  [default: their own size"
        " if they share one of at most 64 pixels, else 32]",
        type=Number(int, at_least=1),
        metavar="PIXELS",
    ),
    Row(
        ("--colour", "--color"),
        "colour",
        DATA,
        "How to read the images of a folder; auto reads them as grey if all of them are.",
        type=click.Choice(["auto", "grey", "rgb"]),
        default="auto",
    ),
    Row(
        ("--encoding",),
        "encoding",
        DATA,
        "Encoding of a file or folder of texts, or of a .csv or .tsv file, such as windows-1251 or shift-jis.  [default: UTF-8,"
        " UTF-16 and Windows-1252 are told apart]",
        metavar="NAME",
    ),
    Row(
        ("--max-bytes",),
        "max_bytes",
        DATA,
        "Refuse data that take more memory than this, such as 8e9.  [default: 4 GiB, at most half of the memory]",
        type=Number(float, at_least=1),
        metavar="BYTES",
    ),
)
# What every command that reads data has.
MAX_BYTES = DATA_TABLE["max_bytes"]
COLUMN_ROWS = (*(DATA_TABLE[name] for name in ("text", "id", "truth", "encoding")), MAX_BYTES)
CHOICE_ROWS = tuple(
    DATA_TABLE[name] for name in ("columns", "drop", "kind")
)  # a fitted model knows its columns
IMAGE_ROWS = tuple(DATA_TABLE[name] for name in ("size", "colour"))

BALANCE_HELP = (
    "Weight of the orthogonality term, which spreads the items over the clusters. Use 10 to 50 if the clusters are known"
    " to be of similar size."
)
# How to cluster: parameters of DDC.
MODEL_TABLE = _table(
    Row(
        ("--encoder",),
        "encoder",
        DATA,
        "What turns texts or images into vectors first: minilm or static for texts, efficientnet for photographs, or a"
        " folder with a model. auto takes one that is installed for texts and for images in colour; none learns from words"
        " or pixels.",
        type=str,
        default="auto",
        metavar="NAME",
        convert=lambda name: None if name == "none" else name,
    ),
    Row(
        ("--language",),
        "language",
        DATA,
        "Language of the texts, for their word stems and stop words; several as english+german.",
        type=str,
        default="auto",
        metavar="NAME",
    ),
    Row(
        ("-k", "--clusters"),
        "n_clusters",
        CLUSTERS,
        "Number of clusters.",
        type=Number(int, at_least=1),
        required=True,
        metavar="K",
    ),
    Row(
        ("--merge-into",),
        "n_final",
        CLUSTERS,
        "After training, merge the K clusters down to N, the two with the smallest divergence at a time."
        "  [default: images and dense vectors are divided further than asked, and merged into K; N = K trains K as they are]",
        type=Number(int, at_least=1),
        metavar="N",
    ),
    Row(
        ("--sizes",),
        "loss.cluster_sizes",
        CLUSTERS,
        "Sizes that the clusters should have, in any order: shares or counts such as 40,30,30, or k-means for the sizes"
        " that k-means finds.  [default: equal sizes]",
        metavar="NUMBERS",
        convert=_sizes,
    ),
    Row(
        ("--balance",),
        "loss.weights",
        CLUSTERS,
        f"{BALANCE_HELP}  [default: falls from 50 to 5; 25 with --sizes; 1 with --augment none]",
        type=Number(float, at_least=0),
        metavar="WEIGHT",
        convert=lambda weight: {"orthogonality": weight},
    ),
    Row(
        ("--augment",),
        "augment",
        CLUSTERS,
        "Pair each item with a randomly changed copy, which should share its cluster: images moved and distorted"
        " (affine) or also mirrored and recoloured (photo), vectors with noise (noise), texts without some of their"
        " words (dropout). auto chooses by the kind of data, and none if --neighbors is given.",
        type=click.Choice(["auto", "none", "affine", "photo", "noise", "dropout"]),
        default="auto",
        convert=lambda name: None if name == "none" else name,
    ),
    Row(
        ("--neighbors",),
        "neighbors",
        CLUSTERS,
        "Pair each item with one of its N nearest neighbours, which should share its cluster.  [default: chosen by the"
        " kind of data, unless --augment is given]",
        type=Number(int, at_least=1),
        metavar="N",
    ),
    Row(
        ("--anchor",),
        "anchor",
        CLUSTERS,
        "Whether simple methods are tried first: for dense vectors, the network then learns the clusters of the graph of nearest"
        " neighbours, of a Gaussian mixture or of k-means. Runs on features of an encoder begin with those of k-means.",
        type=click.Choice(["auto", "none"]),
        default="auto",
        convert=lambda name: None if name == "none" else name,
    ),
    Row(
        ("--network",),
        "network.kind",
        CLUSTERS,
        "conv is for images, mlp for vectors and texts.",
        type=click.Choice(["auto", "conv", "mlp"]),
        default="auto",
    ),
    Row(
        ("--init",),
        "network.init",
        CLUSTERS,
        "Initialisation of the output layer: near zero (soft), as in the paper (he), or by the kind of network (auto).",
        type=click.Choice(["auto", "soft", "he"]),
        default="soft",
    ),
    Row(
        ("--runs",),
        "n_init",
        TRAINING,
        "Number of runs, each from another seed. The best run that uses all clusters is kept.",
        type=Number(int, at_least=1),
        default=4,
        metavar="N",
    ),
    Row(
        ("--vote",),
        "n_vote",
        TRAINING,
        "Number of the best runs that vote on each item; 3 in the paper.",
        type=Number(int, at_least=1),
        default=1,
        metavar="N",
    ),
    Row(
        ("--criterion",),
        "selection.criterion",
        TRAINING,
        "The best run has the lowest loss, the lowest divergence term or pair term, or the highest agreement with the"
        " other runs.",
        type=click.Choice(["loss", "divergence", "pairs", "agreement"]),
        default="loss",
    ),
    Row(
        ("--eliminate",),
        "selection.halving",
        TRAINING,
        "Stop the runs with the highest loss early.",
        default=False,
        is_flag=True,
    ),
    Row(
        ("--max-iter",),
        "max_iter",
        TRAINING,
        "Maximum number of iterations (batches) of a run.",
        type=Number(int, at_least=1),
        default=3500,
        metavar="N",
    ),
    Row(
        ("--batch-size",),
        "batch_size",
        TRAINING,
        "Items per batch.",
        type=Number(int, at_least=2),
        default=100,
        metavar="N",
    ),
    Row(
        ("--learning-rate",),
        "learning_rate",
        TRAINING,
        "Learning rate of Adam.  [default: 3e-3 for texts and for images of at least 8x8 pixels, else 1e-4; with"
        " --augment none 1e-3 for such images, else 1e-5]",
        type=Number(float, above=0),
        metavar="RATE",
    ),
    Row(
        ("--jobs",),
        "n_jobs",
        TRAINING,
        "Number of runs side by side; -1 uses all cores.",
        type=int,
        default=-1,
        metavar="N",
    ),
    Row(
        ("--device",),
        "device",
        TRAINING,
        "Where to compute: auto, cpu, cuda, cuda:1, ...",
        type=str,
        default="auto",
        metavar="NAME",
    ),
    Row(
        ("--precision",),
        "precision",
        TRAINING,
        "Precision of the network in training; auto is bfloat16 for images where the processor has it.",
        type=click.Choice(("auto", "float32", "bfloat16")),
        default="float32",
    ),
    Row(
        ("--seed",),
        "random_state",
        TRAINING,
        "The same seed gives the same result.",
        type=Number(int, at_least=0, at_most=LARGEST_SEED),
        default=0,
        metavar="N",
    ),
)


def data_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """What options about the data say to :func:`ddclust.datasets.load`; absent options keep its defaults."""
    return {
        str(row.parameter): row.convert(options[name])
        for name, row in DATA_TABLE.items()
        if options.get(name) is not None
    }


def parameter_classes() -> dict[str, Callable[..., Any]]:
    """The classes of those parameters of DDC that several options set together."""
    from ddclust import DDCLoss, Network, Selection

    return {"network": Network, "loss": DDCLoss, "selection": Selection}


def model_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """What options say to DDC; absent options keep its defaults."""
    parameters: dict[str, Any] = {}
    fields: dict[str, dict[str, Any]] = {}
    for name, row in MODEL_TABLE.items():
        value = options.get(name)
        if value is None:
            continue
        parameter, _, field = (row.parameter or "").partition(".")
        if not field:
            parameters[parameter] = row.convert(value)
        elif value != row.default:
            fields.setdefault(parameter, {})[field] = row.convert(value)
    classes = parameter_classes() if fields else {}
    return parameters | {name: classes[name](**given) for name, given in fields.items()}


def model_of(
    options: Mapping[str, Any], *, checkpoint_dir: Path | None = None, verbose: bool | str = "auto"
) -> DDC:
    """The estimator that options of the command line describe."""
    from ddclust import DDC

    return DDC(**model_parameters(options), checkpoint_dir=checkpoint_dir, verbose=verbose)


# Options that are not parameters, but that several commands share.
NAMES = click.option(
    "--names",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    cls=SectionOption,
    section=OUTPUT,
    help="Names of the clusters, as exported from a report.",
)


def out_option(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:  # noqa: A002
    """The option that says where results go."""
    return click.option(
        "--out", type=click.Path(path_type=Path), cls=SectionOption, section=OUTPUT, help=help
    )


def quiet_option(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:  # noqa: A002
    """The option that leaves out what is not needed in scripts."""
    return click.option("-q", "--quiet", is_flag=True, cls=SectionOption, section=OUTPUT, help=help)


def json_option(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option that prints what a table shows as JSON, for other programs."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        cls=SectionOption,
        section=OUTPUT,
        help=f"Print {what} as JSON instead of a table.",
    )


FOLDER = click.argument("folder", type=click.Path(path_type=Path))
DATA_HELP = """\b
DATA is one of these:
  a name                  of a data set that 'ddclust datasets' lists
  a folder                of images, or of .txt files
  .npy                    vectors, or images as (n, h, w), (n, h, w, c)
                          or (n, c, h, w)
  .npz                    such an array called X, or a sparse matrix;
                          known classes may be called y
  .csv .tsv .parquet      a table with a row per item: numbers,
                          words, dates; or texts with --text
  .txt .jsonl             a text, or an object, per line"""
