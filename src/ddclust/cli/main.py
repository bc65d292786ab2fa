"""The command line. Only this module reads arguments and prints; heavy imports wait for their command."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

    from ddclust.data.links import Links
    from ddclust.ddc import DDC
    from ddclust.show.explain import Explanation

USAGE_ERROR = 2
INTERRUPTED = 130
SHOWN_SKIPPED = 5
SHOWN_PER_CLUSTER = 5
DATA_HELP = """DATA is a named data set ('ddclust datasets' lists them), a folder of images or of .txt files, or a
file: .npy (images as (n, h, w), (n, h, w, c) or (n, c, h, w)), .npz (the array called X, or a sparse matrix; an
optional truth called y), .csv, .tsv or .parquet (numbers, a row per item; or texts, with --text), .txt (a document per
line), .jsonl (an object per line)."""


def column_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what the columns of DATA are."""
    options = [
        click.option(
            "--text", metavar="COLUMN,...", help="Cluster the texts in this column, or these, of a table."
        ),
        click.option(
            "--id", metavar="COLUMN", help="Names the items in the output.  [default: id, if there is one]"
        ),
        click.option("--truth", metavar="COLUMN", help="The known classes; only compared with, never used."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def partner_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that give items partners."""
    options = [
        click.option(
            "--augment",
            type=click.Choice(["auto", "none", "affine", "photo", "noise", "dropout"]),
            default="auto",
            show_default=True,
            help="Items and randomly changed copies of them should share a cluster: images turned, moved and stretched"
            " (affine), photographs also mirrored and in another light (photo), vectors with noise, texts without some"
            " of their words (dropout). auto, unless --neighbors is given: images affine, texts without most words,"
            " and the nearest neighbours of all.",
        ),
        click.option(
            "--neighbors",
            type=click.IntRange(min=1),
            metavar="N",
            help="Items and their N nearest neighbours should share a cluster.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


rate_option = click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    help="[default: 3e-3 for images from 8x8 on and for texts, else 1e-4; with --augment none 1e-3 for such images, else"
    " 1e-5]",
)


def link_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that name pairs of items."""
    pairs = click.Path(exists=True, dir_okay=False, resolve_path=True)
    options = [
        click.option(
            "--must-link",
            type=pairs,
            metavar="FILE.csv",
            help="Items that must share a cluster: two columns of their names, or numbers counted from 0.",
        ),
        click.option(
            "--cannot-link", type=pairs, metavar="FILE.csv", help="Items that must not share a cluster."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def image_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say how to read a folder of images."""
    options = [
        click.option(
            "--size",
            type=click.IntRange(min=1),
            help="Pixels of a side to which images of a folder are cropped and resized.  [default: their own if all"
            " are of one size up to 64, else 32]",
        ),
        click.option(
            "--colour",
            "--color",
            type=click.Choice(["auto", "grey", "rgb"]),
            default="auto",
            show_default=True,
            help="Of images in a folder; auto: grey if all are.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


class FriendlyGroup(click.Group):
    """Turns expected errors into one sentence and exit code 2, and Ctrl-C into 130."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, ArithmeticError, MemoryError) as error:
            click.echo(f"Error: {_one_sentence(error)}", err=True)
            ctx.exit(USAGE_ERROR)
        except KeyboardInterrupt:
            click.echo("\nInterrupted; nothing was written.", err=True)
            ctx.exit(INTERRUPTED)


def _one_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {text}".strip()
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {str(error.filename)!r}." if error.filename else f"{error.strerror}."
    return text or type(error).__name__


@click.group(
    cls=FriendlyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="ddclust")
def main() -> None:
    r"""Cluster images, vectors or texts without labels, by deep divergence-based clustering.

    \b
    ddclust fit digits -k 10 --out digits      cluster, and leave a folder with the results
    ddclust resume digits                      go on with a fit that was stopped or killed
    ddclust runs digits                        a table of its restarts, also while it works
    ddclust report digits                      make its page, digits/report.html, anew
    ddclust predict digits new.npy             assign new items with the model in that folder
    ddclust explain digits new.npy             show what speaks for the clusters of items
    ddclust evaluate digits truth.csv          compare clusters with known classes
    ddclust compare digits -k 10               DDC and its rivals on the same data, in a table
    ddclust scan digits                        how many clusters? stability for each number of them
    ddclust datasets                           the data sets that can be given by name
    """


@main.command(help=f"Cluster DATA into K clusters and leave the results in a folder.\n\n{DATA_HELP}")
@click.argument("data")
@click.option("-k", "--clusters", type=click.IntRange(min=1), required=True, help="Number of clusters.")
@click.option(
    "--merge-into",
    type=click.IntRange(min=1),
    help="After training, merge the K clusters into so many: the nearest two by their divergence, then again.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the results.  [default: DATA-clusters]"
)
@column_options
@image_options
@click.option(
    "--language", default="english", show_default=True, help="Of texts: whose word stems are counted."
)
@click.option("--blocks", is_flag=True, help="Read and shuffle in blocks: for a .npy file on a slow disk.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Restarts; of those that use all clusters the best one is kept.",
)
@click.option(
    "--vote",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many of the best restarts vote; the paper: 3.",
)
@click.option(
    "--criterion",
    type=click.Choice(["loss", "divergence", "partners", "agreement"]),
    default="loss",
    show_default=True,
    help="What makes a restart the best: the lowest loss, the lowest term of the divergence or of the partners, or most"
    " agreement with the other restarts.",
)
@click.option("--eliminate", is_flag=True, help="Stop hopeless restarts early, by their loss.")
@click.option(
    "--jobs", default=-1, show_default=True, help="Restarts side by side; -1: as many as there are cores."
)
@click.option("--network", type=click.Choice(["auto", "conv", "mlp"]), default="auto", show_default=True)
@click.option(
    "--init",
    type=click.Choice(["soft", "he"]),
    default="soft",
    show_default=True,
    help="Of the output layer.",
)
@partner_options
@link_options
@click.option(
    "--balance",
    type=click.FloatRange(min=0),
    help="Weight of the term that spreads items evenly over the clusters. 10 to 50 where clusters are known to be"
    " of about one size.  [default: 50 at the start, which falls to 5; with --sizes 25; with --augment none 1]",
)
@click.option(
    "--sizes",
    metavar="NUMBERS",
    help="Sizes that the clusters are drawn to, in any order: shares or counts such as 40,30,30, or k-means for those that"
    " k-means finds.  [default: all the same]",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=3500,
    show_default=True,
    help="Iterations (batches) of a restart at most.",
)
@click.option("--batch-size", type=click.IntRange(min=2), default=100, show_default=True)
@rate_option
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same clusters.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, ...")
@click.option(
    "--report/--no-report",
    default=True,
    show_default=True,
    help="Make report.html, a page to look at the clusters.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
def fit(data: str, out: Path | None, quiet: bool, **options: Any) -> None:
    """Cluster DATA and leave the results in a folder."""
    from ddclust.results import is_unfinished

    out = _unused(Path(f"{Path(data).name.partition('.')[0] or 'data'}-clusters")) if out is None else out
    if is_unfinished(out):
        raise FileExistsError(
            f"{str(out)!r} holds an unfinished fit; 'ddclust resume {out}' goes on with it."
        )
    if out.exists():
        raise FileExistsError(f"{str(out)!r} exists already; choose another name.")
    _train(out, data, options, quiet)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
def resume(folder: Path, quiet: bool) -> None:
    """Go on with the fit in FOLDER, which was stopped or killed; it ends as if nothing had happened."""
    from ddclust.results import is_unfinished, read_run

    run = read_run(folder)
    if run["options"].keys() != {option.name for option in fit.params} - {"data", "out", "quiet"}:
        begun_by = run.get("versions", {}).get("ddclust", "another version")
        raise ValueError(f"The fit in {str(folder)!r} was begun by ddclust {begun_by}; start it anew.")
    if not is_unfinished(folder):
        click.echo(f"The fit in {str(folder)!r} is complete; there is nothing to go on with.")
        return
    _train(folder, _where_it_was(run), run["options"], quiet, fingerprint=run["data"]["sha256"])


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def runs(folder: Path) -> None:
    """Show a table of the restarts of the fit in FOLDER, also while it works."""
    from ddclust.results import read_records, read_run

    run = read_run(folder)
    click.echo(f"{run['data']['name']}: {run['status']}")
    _print_runs(read_records(folder), run.get("voters", []))


def _train(
    out: Path, data: str, options: dict[str, Any], quiet: bool, fingerprint: str | None = None
) -> None:
    """Fit in a run folder, new or unfinished, and fill it with the results."""
    import numpy as np

    from ddclust import results as run_folder

    bunch = _load(data, options, verbose=not quiet)
    from ddclust import DDC
    from ddclust.data.items import BlockItems

    links = _links(options, bunch.item_names)
    if options["blocks"] and (not hasattr(bunch.data, "dtype") or hasattr(bunch.data, "indptr")):
        raise ValueError("--blocks is for arrays; texts and sparse matrices are in memory anyway.")
    items = BlockItems(bunch.data) if options["blocks"] else bunch.data
    rate = options["learning_rate"]
    model = DDC(
        options["clusters"],
        n_final=options["merge_into"],
        network=options["network"],
        init=options["init"],
        balance=options["balance"],
        cluster_sizes=_sizes(options["sizes"]),
        **_partners(options),
        n_init=options["runs"],
        n_vote=options["vote"],
        criterion=options["criterion"],
        early_elimination=options["eliminate"],
        max_iter=options["max_iter"],
        batch_size=options["batch_size"],
        language=options["language"],
        learning_rate="auto" if rate is None else rate,
        n_jobs=options["jobs"],
        random_state=options["seed"],
        device=options["device"],
        checkpoint_dir=out / run_folder.CHECKPOINTS_FOLDER,
        verbose=not quiet,
    )
    run = run_folder.description(bunch, data, options)
    if fingerprint not in (None, run["data"]["sha256"]):
        raise ValueError(
            f"{data!r} is not the data that the fit in {str(out)!r} began with: its content differs."
        )
    if not quiet:
        click.echo(f"{bunch.name}: {_described(bunch.data)}", err=True)
    with run_folder.under_way(out, run), _warnings_as_lines():
        start = time.perf_counter()
        model.fit(items, must_link=links.must, cannot_link=links.cannot)
        if bunch.feature_names is not None:  # by which predict will find them in another table
            model.feature_names_in_ = np.array(bunch.feature_names, dtype=object)
        run["seconds"] = {"fit": round(time.perf_counter() - start, 3)}
        complete = run_folder.write_results(out, model, bunch.item_names, run)
    page = _write_report(out, model, bunch, run) if options["report"] else None
    if not quiet:
        _print_summary(model, bunch.target)
        click.echo(f"\nResults: {out}/" + (f"\nReport:  {page}" if page is not None else ""))
    if not complete:
        click.echo(f"Stopped early; 'ddclust resume {out}' goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)


def _partners(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters that give items partners."""
    augment, neighbors = options["augment"], options["neighbors"]
    return {
        "augment": None if augment == "none" else augment,
        "neighbors": "auto" if neighbors is None else neighbors,
    }


def _sizes(text: str | None) -> list[float] | str | None:
    """What --sizes stands for."""
    if text is None or text == "k-means":
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--sizes {text!r} is neither 'k-means' nor numbers with commas between them, such as 40,30,30."
        ) from None


def _links(options: dict[str, Any], item_names: Sequence[str]) -> Links:
    """The pairs of items in the files that name them; contradictions are told by the items' names."""
    from ddclust.data.links import checked_links
    from ddclust.datasets import read_pairs

    must, cannot = (
        None if options[name] is None else read_pairs(options[name], item_names)
        for name in ("must_link", "cannot_link")
    )
    return checked_links(
        must, cannot, n_items=len(item_names), n_clusters=options["clusters"], item_names=item_names
    )


def _write_report(
    folder: Path,
    model: DDC,
    bunch: Bunch,
    run: dict[str, Any],
    names: dict[int, str] | None = None,
) -> Path | None:
    """Make the page; if that fails the results are there all the same, and a warning says why."""
    import shlex

    from ddclust.results import REPORT_FILE
    from ddclust.show.report import report_page
    from ddclust.storage.atomic import write_file

    try:
        page = report_page(
            model,
            bunch.data,
            title=bunch.name,
            item_names=bunch.item_names,
            truth=bunch.target,
            class_names=bunch.target_names,
            cluster_names=names,
            command=shlex.join(run["command"]),
        )
        content = page.encode("utf-8", "backslashreplace")
    except Exception as error:
        click.echo(f"Warning: the report could not be made: {_one_sentence(error)}", err=True)
        return None
    write_file(folder / REPORT_FILE, content)
    return folder / REPORT_FILE


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data", required=False)
@click.option(
    "--names", type=click.Path(path_type=Path), help="Names of clusters, as exported from a report."
)
def report(folder: Path, data: str | None, names: Path | None) -> None:
    """Make report.html anew for the fit in FOLDER.

    DATA is what was clustered; by default it is looked for where it was.
    """
    from ddclust import DDC
    from ddclust.data.items import fingerprint
    from ddclust.results import MODEL_FOLDER, read_names, read_run

    run = read_run(folder)
    model = DDC.load(folder / MODEL_FOLDER)
    cluster_names = None if names is None else read_names(names, model.labels_, model.n_clusters_)
    data = data or _where_it_was(run)
    bunch = _load(data, run["options"], verbose=True)
    if fingerprint(bunch.data) != run["data"]["sha256"]:
        raise ValueError(
            f"{data!r} is not the data that the fit in {str(folder)!r} is of: its content differs."
        )
    page = _write_report(folder, model, bunch, run, cluster_names)
    if page is None:
        click.get_current_context().exit(USAGE_ERROR)
    click.echo(page)


def _where_it_was(run: dict[str, Any]) -> str:
    """The data of a fit, as seen from here or from the folder where the fit began."""
    data: str = run["data"]["argument"]
    path = run["data"].get("path")
    return path if not Path(data).exists() and path is not None else data


@main.command(
    help=f"Assign each item of DATA to a cluster of the model in FOLDER (a run or model folder).\n\n{DATA_HELP}"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--out", type=click.Path(path_type=Path), help="A .csv file.  [default: standard output]")
@column_options
@click.option(
    "--names", type=click.Path(path_type=Path), help="Names of clusters, as exported from a report."
)
@click.option("--device", default="auto", show_default=True)
def predict(
    folder: Path, data: str, out: Path | None, names: Path | None, device: str, **options: Any
) -> None:
    """Assign new items with a fitted model."""
    from ddclust.storage.atomic import write_file

    if out is not None and out.exists():
        raise FileExistsError(f"{str(out)!r} exists already; choose another name.")
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"There is no folder {str(out.parent)!r} to write {out.name!r} into; make it first.")
    from ddclust.results import labels_table, read_names

    model, bunch = _model_and_data(folder, data, options, device)
    cluster_names = None if names is None else read_names(names, model.labels_, model.n_clusters_)
    with _warnings_as_lines():
        vote, probabilities = model.vote(bunch.data)
    table = labels_table(bunch.item_names, vote, probabilities, cluster_names)
    if out is None:
        click.echo(table, nl=False)
    else:
        write_file(out, table.encode())


@main.command(
    help="Show what speaks for the cluster of items of DATA, by the model in FOLDER (a run or model folder): images with"
    " red over the pixels that do, in explanation.png, or the most influential features or words of vectors and texts,"
    f" in explanation.csv. Without DATA it is what the run in FOLDER clustered.\n\n{DATA_HELP}"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data", required=False)
@click.option(
    "--items",
    metavar="ITEM,...",
    help="Their names, or numbers counted from 0.  [default: those that the model is surest of, five of each cluster]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the result.  [default: FOLDER-explanation]"
)
@column_options
@click.option("--device", default="auto", show_default=True)
def explain(
    folder: Path, data: str | None, items: str | None, out: Path | None, device: str, **options: Any
) -> None:
    """Show what speaks for the clusters of items."""
    import io

    if out is not None and out.exists():
        raise FileExistsError(f"{str(out)!r} exists already; choose another name.")
    out = _unused(Path(f"{folder.resolve().name}-explanation")) if out is None else out
    if data is None:
        from ddclust.results import read_run

        run = read_run(folder)
        data = _where_it_was(run)
        options = {name: run["options"][name] if value is None else value for name, value in options.items()}
    model, bunch = _model_and_data(folder, data, options, device)
    import numpy as np

    from ddclust.show import plots
    from ddclust.show.explain import explain
    from ddclust.storage.model_folder import new_folder

    with _warnings_as_lines():
        rows = _surest(model.predict_proba(bunch.data)) if items is None else _places(items, bunch.item_names)
        chosen = (
            bunch.data[np.array(rows)] if hasattr(bunch.data, "shape") else [bunch.data[row] for row in rows]
        )
        explanation = explain(model, chosen)
    if bunch.feature_names is not None:
        explanation = explanation._replace(feature_names=np.array(bunch.feature_names, dtype=object))
    names = [bunch.item_names[row] for row in rows]
    with new_folder(out) as new:
        if explanation.feature_names is None:
            titles = [
                f"{name} in cluster {cluster}"
                for name, cluster in zip(names, explanation.clusters, strict=True)
            ]
            picture = io.BytesIO()
            plots.explanations(chosen, explanation.attributions, titles).savefig(picture, format="png")
            (new / "explanation.png").write_bytes(picture.getvalue())
        else:
            (new / "explanation.csv").write_text(_influences(names, explanation), encoding="utf-8")
    click.echo(f"Results: {out}/")


@main.command()
@click.argument("labels")
@click.argument("truth")
@click.option(
    "--column", help="With the known classes, if TRUTH is a .csv table.  [default: cluster, else the last]"
)
@click.option("--kmeans", is_flag=True, help="Also show k-means on the same data (TRUTH must hold the data).")
def evaluate(labels: str, truth: str, column: str | None, kmeans: bool) -> None:
    """Compare clusters with known classes: accuracy (ACC, best one-to-one mapping) and NMI.

    LABELS is a run folder, or a file with a label per item (.csv, .npy, .npz). TRUTH is such a file, a named data set,
    data with a truth (an .npz with y, a table with --column), or a folder whose sub-folders are the classes.
    """
    from ddclust.datasets import NAMED, DataError, load, read_labels
    from ddclust.results import LABELS_FILE

    path = Path(labels) / LABELS_FILE if Path(labels).is_dir() else Path(labels)
    found, found_names = read_labels(path)
    is_table = Path(truth).suffix.lower() in (".parquet", ".jsonl") or truth.lower().endswith(".jsonl.gz")
    bunch = None
    if truth in NAMED or Path(truth).is_dir() or is_table or kmeans:
        bunch = load(truth, truth_column=column, verbose=True)
        expected, names = bunch.target, bunch.item_names
    else:
        expected, names = read_labels(truth, column)
    if expected is None:
        raise DataError(f"{truth!r} holds no truth to compare with.")
    if names is not None and found_names is not None:
        expected = _matched(found_names, names, expected, truth)
    rows = [("clusters", *_scores(expected, found))]
    if kmeans and bunch is not None:
        from sklearn.cluster import KMeans

        n_clusters = len(set(found.tolist()))
        clusters = KMeans(n_clusters, n_init=20, random_state=0).fit_predict(_as_vectors(bunch.data))
        rows.append(("k-means", *_scores(bunch.target, clusters)))
    _print_table(("", "ACC", "NMI"), rows)


@main.command(
    help=f"Cluster DATA by DDC and its rivals, and tabulate agreement with the known classes, time and memory.\n\n{DATA_HELP}"
    "\n\nThe fits never see the classes. NMI and ACC are those of the fit that is chosen without them; 'best' is chosen with"
    " them, as papers do it for baselines. The same command goes on with a comparison that was stopped."
)
@click.argument("data")
@click.option("-k", "--clusters", type=click.IntRange(min=1), required=True, help="Number of clusters.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the results.  [default: DATA-comparison]"
)
@column_options
@image_options
@click.option("--language", default="english", show_default=True, help="Of texts.")
@click.option(
    "--methods",
    metavar="NAME,...",
    help="Of k-means, itc-parzen, itc-knn, sec, ldmgi, dec and ddc (which is DDC and DDC-VOTE).  [default: all]",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Restarts of k-means, ITC, DEC and DDC; the paper: 20. From 3 on there is a vote.",
)
@click.option(
    "--choices",
    type=click.IntRange(min=1),
    default=9,
    show_default=True,
    help="Hyperparameters to try of ITC, SEC and LDMGI at most; the paper: 9. 1: the default only.",
)
@click.option("--max-iter", type=click.IntRange(min=1), default=3500, show_default=True, help="Of DDC.")
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), help="A fit that takes longer is stopped."
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GB",
    help="A fit that takes more is stopped.  [default: 80 % of the machine's]",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def compare(
    data: str,
    clusters: int,
    out: Path | None,
    methods: str | None,
    runs: int,
    choices: int,
    max_iter: int,
    minutes: float | None,
    memory: float | None,
    seed: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Cluster DATA by several methods and tabulate the results."""
    bunch = _load(data, options, verbose=not quiet)
    import os

    from ddclust.compare import comparison, table
    from ddclust.data.text import StemVectorizer

    out = out or Path(f"{Path(data).name.partition('.')[0] or 'data'}-comparison")
    items = (
        bunch.data
        if hasattr(bunch.data, "shape")
        else StemVectorizer(options["language"]).fit_transform(bunch.data)
    )
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    budget = comparison.Budget(
        seconds=float("inf") if minutes is None else 60 * minutes,
        bytes=0.8 * machine if memory is None else memory * 2**30,
    )
    try:
        rows = comparison.compare(
            items,
            clusters,
            out,
            truth=bunch.target,
            item_names=bunch.item_names,
            methods=(
                tuple(comparison.METHODS)
                if methods is None
                else [name.strip() for name in methods.split(",")]
            ),
            runs=runs,
            max_choices=choices,
            max_iter=max_iter,
            budget=budget,
            seed=seed,
            verbose=not quiet,
        )
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. What is done is in {out}/; the same command goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)
    _print_table(table.TABLE_COLUMNS, [table.table_row(row) for row in rows])
    for row in rows:
        for failure in row["failures"]:
            choice = ", ".join(f"{name}={value}" for name, value in failure["params"].items()) or "default"
            click.echo(f"{row['method']} ({choice}) failed: {failure['error']}", err=True)
        for message in row["warnings"]:
            click.echo(f"{row['method']}: {message}", err=True)
    if bunch.target is not None:
        click.echo(
            "\nNMI and ACC: of the fit chosen without the known classes. best: chosen with them, as in the paper."
        )
    click.echo(f"Results: {out}/")


@main.command(
    help=f"Try numbers of clusters of DATA and recommend one, or say that it is unclear.\n\n{DATA_HELP}\n\nFor each number"
    " some restarts are compared: where they find the same clusters again, by the adjusted Rand index, the number is"
    " stable. Known classes are not used. The same command goes on with a scan that was stopped."
)
@click.argument("data")
@click.option("--from", "first", type=click.IntRange(min=2), default=2, show_default=True)
@click.option("--to", "last", type=click.IntRange(min=2), default=20, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results.  [default: DATA-scan]")
@column_options
@image_options
@click.option("--language", default="english", show_default=True, help="Of texts.")
@partner_options
@click.option(
    "--runs", type=click.IntRange(min=2), default=6, show_default=True, help="Restarts for each number."
)
@click.option(
    "--balance",
    type=click.FloatRange(min=0),
    help="Weight of the term that spreads items evenly over the clusters.  [default: as in fit]",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Iterations of a restart at most.",
)
@rate_option
@click.option(
    "--jobs", default=-1, show_default=True, help="Restarts side by side; -1: as many as there are cores."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no table.")
def scan(data: str, first: int, last: int, out: Path | None, quiet: bool, **options: Any) -> None:
    """Try numbers of clusters and recommend one."""
    if first > last:
        raise ValueError(f"--from {first} is larger than --to {last}.")
    bunch = _load(data, options, verbose=not quiet)
    from ddclust import DDC
    from ddclust import scan as scanning
    from ddclust.choosing.metrics import known_classes

    out = out or Path(f"{Path(data).name.partition('.')[0] or 'data'}-scan")
    rate = options["learning_rate"]
    model = DDC(
        balance=options["balance"],
        **_partners(options),
        n_init=options["runs"],
        max_iter=options["max_iter"],
        learning_rate="auto" if rate is None else rate,
        language=options["language"],
        n_jobs=options["jobs"],
        random_state=options["seed"],
        device=options["device"],
        verbose=not quiet,
    )

    def show(row: dict[str, Any]) -> None:
        if not quiet:
            click.echo(f"k = {row['k']}: stability {row['stability']:.3f}", err=True)

    try:
        with _warnings_as_lines():
            found = scanning.scan(bunch.data, range(first, last + 1), model=model, folder=out, on_row=show)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. What is done is in {out}/; the same command goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)
    if quiet:
        return
    _print_table(scanning.TABLE_COLUMNS, [scanning.table_row(row) for row in found.rows])
    k, confidence, reason = (
        found.recommendation.n_clusters,
        found.recommendation.confidence,
        found.recommendation.reason,
    )
    answer = "Unclear" if k is None else f"Recommended: {k} clusters (confidence {confidence:.2f})"
    click.echo(f"\n{answer}: {reason}.")
    if bunch.target is not None:
        n_classes = len(known_classes(bunch.target)[1])
        click.echo(f"The data comes with {n_classes} known classes, which were not used.")
    click.echo(f"Results: {out}/")


@main.command()
def datasets() -> None:
    """List the data sets that can be given by name, and whether they are at hand."""
    from ddclust.datasets import NAMED

    _print_table(
        ("name", "items", "classes", "at hand", "origin", "licence"),
        [(n, s.size, s.classes, s.at_hand(), s.origin, s.licence) for n, s in NAMED.items()],
        left=True,
    )
    click.echo(
        "\nFiles are looked for in the folder that the environment variable DDCLUST_DATA names, then in the user's"
        "\ncache; the error message of 'ddclust fit NAME' says which file belongs where."
    )


def _model_and_data(folder: Path, data: str, options: dict[str, Any], device: str) -> tuple[DDC, Bunch]:
    """The model of a run or model folder, and data read as it was read for that model, in its layout."""
    from ddclust import DDC
    from ddclust.results import MODEL_FOLDER, RUN_FILE, read_run
    from ddclust.storage.model_folder import DESCRIPTION_FILE

    model = DDC.load(folder if (folder / DESCRIPTION_FILE).exists() else folder / MODEL_FOLDER, device=device)
    is_table = Path(data.removesuffix(".gz")).suffix.lower() in (".csv", ".tsv", ".parquet", ".jsonl")
    if (
        is_table
        and options["text"] is None
        and hasattr(model, "vectorizer_")
        and (folder / RUN_FILE).exists()
    ):
        options = options | {"text": read_run(folder)["options"]["text"]}
    bunch = _load(data, options | _as_the_model_reads(model, data), verbose=True)
    names = model.__dict__.pop("feature_names_in_", None)  # the columns have been found by their names
    bunch.feature_names = bunch.feature_names if names is None else names.tolist()
    bunch.data = _in_the_model_s_layout(bunch.data, model.item_shape_)
    return model, bunch


def _surest(probabilities: NDArray) -> list[int]:
    """Of each cluster the items with the largest soft assignments, five at most."""
    import numpy as np

    labels, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    rows: list[int] = []
    for cluster in range(probabilities.shape[1]):
        own = np.flatnonzero(labels == cluster)
        rows += own[np.argsort(-confidence[own], kind="stable")[:SHOWN_PER_CLUSTER]].tolist()
    return rows


def _places(wanted: str, names: Sequence[str]) -> list[int]:
    """The places of items given by their names or, where names are not numbers themselves, by their numbers."""
    from ddclust.datasets import ItemPlaces

    places = ItemPlaces(names)
    if wanted in places.by_name:  # a name may hold commas
        return [places.by_name[wanted]]
    return [places[part.strip()] for part in wanted.split(",")]


def _influences(names: Sequence[str], explanation: Explanation) -> str:
    """CSV text of the most influential features or words of each item."""
    import csv
    import io

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["item", "cluster", "feature", "influence"])
    for name, cluster, top in zip(names, explanation.clusters, explanation.top_features(), strict=True):
        table.writerows((name, cluster, feature, f"{influence:.4g}") for feature, influence in top)
    return text.getvalue()


def _as_the_model_reads(model: DDC, data: str) -> dict[str, Any]:
    """How to read new data for a model: images of its size and colour, columns by their names."""
    from ddclust.data.batches import input_shape
    from ddclust.datasets import NAMED

    if data in NAMED:
        return {}
    if len(model.item_shape_) > 1 and Path(data).is_dir():
        channels, *sides = input_shape(model.item_shape_)
        return {"size": tuple(sides), "colour": "grey" if channels == 1 else "rgb"}
    if hasattr(model, "feature_names_in_"):
        return {"columns": model.feature_names_in_.tolist()}
    return {}


def _in_the_model_s_layout(data: Any, item_shape: tuple[int, ...]) -> Any:
    """Images from a folder, (n, h, w) or (n, h, w, 3), as the model's are laid out if they have as many values."""
    if not hasattr(data, "reshape") or len(item_shape) != 3 or tuple(data.shape[1:]) == item_shape:
        return data
    if data.ndim == 4 and (data.shape[3], *data.shape[1:3]) == item_shape:
        return data.transpose(0, 3, 1, 2)
    return data.reshape(-1, *item_shape) if tuple(s for s in item_shape if s > 1) == data.shape[1:] else data


def _load(data: str, options: dict[str, Any], *, verbose: bool) -> Bunch:
    """The data, with a word on standard error about what the reader left out or decided."""
    from ddclust.datasets import load

    with _warnings_as_lines():
        bunch = load(
            data,
            text_column=options["text"],
            id_column=options["id"],
            truth_column=options["truth"],
            image_size=options.get("size"),
            colour=options.get("colour", "auto"),
            value_columns=options.get("columns"),
            verbose=verbose,
        )
    if verbose:
        for note in bunch.notes:
            click.echo(f"Note: {note}", err=True)
    if bunch.skipped:
        shown = "; ".join(f"{name}: {reason}" for name, reason in list(bunch.skipped.items())[:SHOWN_SKIPPED])
        more = "; ..." if len(bunch.skipped) > SHOWN_SKIPPED else ""
        click.echo(
            f"Warning: {len(bunch.skipped)} files cannot be read and are skipped: {shown}{more}", err=True
        )
    return bunch


def _described(data: Any) -> str:
    """Number and form of the items, in words."""
    if not hasattr(data, "shape"):
        return f"{len(data):,} texts"
    shape = " x ".join(map(str, data.shape[1:]))
    return f"{data.shape[0]:,} items of {shape} values" + (", sparse" if hasattr(data, "indptr") else "")


def _as_vectors(data: Any) -> Any:
    """Items as k-means takes them; vectors standardised, as DDC does it."""
    if not hasattr(data, "shape"):
        from ddclust.data.text import StemVectorizer

        return StemVectorizer().fit_transform(data)
    if hasattr(data, "indptr"):
        return data
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(data) if len(data.shape) == 2 else data.reshape(len(data), -1)


def _matched(items: Sequence[str], names: Sequence[str], truth: NDArray, source: str) -> NDArray:
    """The truth in the order of the items, by their names; by their places if the names have nothing in common."""
    import numpy as np

    from ddclust.datasets import DataError

    classes = dict(zip(names, truth.tolist(), strict=True))
    unknown = [item for item in items if item not in classes]
    if len(unknown) == len(items) == len(names):
        return truth
    if unknown or len(classes) < len(names):
        reason = f"{unknown[0]!r} for example" if unknown else "and its names are not unique"
        raise DataError(f"{source!r} has other items than those that were clustered, {reason}.")
    return np.array([classes[item] for item in items])


def _unused(path: Path) -> Path:
    """The path, or the first of path-2, path-3, ... that does not exist."""
    candidates = (path.with_name(f"{path.name}-{i}") for i in range(2, 10**6))
    return path if not path.exists() else next(p for p in candidates if not p.exists())


class _warnings_as_lines(warnings.catch_warnings):  # noqa: N801 - a context manager
    """Warnings as a sentence on standard error, without file names and code."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.showwarning = lambda message, *_, **__: click.echo(f"Warning: {message}", err=True)


def _scores(truth: NDArray, labels: NDArray) -> tuple[str, str]:
    """ACC and NMI of the items whose class is known."""
    from ddclust.choosing.metrics import clustering_accuracy, nmi, of_known_class

    classes, clusters = of_known_class(truth, labels)
    if not len(classes):
        return "-", "-"
    return f"{clustering_accuracy(classes, clusters):.3f}", f"{nmi(classes, clusters):.3f}"


def _print_summary(model: DDC, truth: NDArray | None) -> None:
    import numpy as np

    _print_runs(model.runs_, model.voters_)
    measures = (model.probabilities_.max(axis=1), model.agreement_)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    click.echo()
    _print_table(
        ("cluster", "items", "mean confidence", "mean agreement"),
        [
            (i, f"{size:,}", *((f"{x[model.labels_ == i].mean():.3f}" for x in measures) if size else "--"))
            for i, size in enumerate(sizes)
        ],
    )
    if truth is not None:
        accuracy, information = _scores(truth, model.labels_)
        click.echo(f"\nAgainst the known classes (never used in training): ACC {accuracy}, NMI {information}")


def _print_runs(records: list[dict[str, Any]], voters: list[int]) -> None:
    kept = {run: "best" if place == 0 else "votes" for place, run in enumerate(voters)}
    _print_table(
        ("run", "seed", "loss", "clusters", "iterations", "ended", "seconds", ""),
        [
            (
                record["run"] + 1,
                record["seed"],
                "-" if record["loss"] is None else f"{record['loss']:.4f}",
                record["clusters_used"] or "-",
                record["n_iter"],
                record["outcome"],
                f"{record['seconds']:.1f}",
                kept.get(record["run"], ""),
            )
            for record in records
        ],
    )


def _print_table(header: Sequence[object], rows: Sequence[Sequence[object]], *, left: bool = False) -> None:
    table = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    align = str.ljust if left else str.rjust
    for row in table:
        click.echo("  ".join(align(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())
