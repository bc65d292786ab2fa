"""The command line. Only this module reads arguments and prints; heavy imports wait for their command."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

    from ddclust._ddc import DDC

USAGE_ERROR = 2
INTERRUPTED = 130
DATA_HELP = """DATA is a named data set (digits, circles) or a file: .npy (an array; images as (n, h, w),
(n, h, w, c) or (n, c, h, w)), .npz (the array called X, an optional truth called y) or .csv (numbers, a
row per item, with or without a header)."""


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
    r"""Cluster images or vectors without labels, by deep divergence-based clustering.

    \b
    ddclust fit digits -k 10 --out digits      cluster, and leave a folder with the results
    ddclust resume digits                      go on with a fit that was stopped or killed
    ddclust runs digits                        a table of its restarts, also while it works
    ddclust predict digits new.npy             assign new items with the model in that folder
    ddclust evaluate digits truth.csv          compare clusters with known classes
    """


@main.command(help=f"Cluster DATA into K clusters and leave the results in a folder.\n\n{DATA_HELP}")
@click.argument("data")
@click.option("-k", "--clusters", type=click.IntRange(min=1), required=True, help="Number of clusters.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the results. [default: DATA-clusters]"
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Restarts; of those that use all clusters the one with the lowest loss is kept.",
)
@click.option(
    "--vote",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many of the best restarts vote; the paper: 3.",
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
@click.option(
    "--balance",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Weight of the term that spreads items evenly over the clusters. 10 to 50 where clusters are known to be"
    " of about one size.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=7000,
    show_default=True,
    help="Iterations (batches) of a restart at most.",
)
@click.option("--batch-size", type=click.IntRange(min=2), default=100, show_default=True)
@click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    help="[default: 1e-3 for conv, 1e-5 for mlp]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same clusters.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, ...")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
def fit(data: str, out: Path | None, quiet: bool, **options: Any) -> None:
    """Cluster DATA and leave the results in a folder."""
    from ddclust.run_folder import is_unfinished

    out = _unused(Path(f"{Path(data).stem}-clusters")) if out is None else out
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
    from ddclust.run_folder import is_unfinished, read_run

    run = read_run(folder)
    if not is_unfinished(folder):
        click.echo(f"The fit in {str(folder)!r} is complete; there is nothing to go on with.")
        return
    _train(folder, run["data"]["argument"], run["options"], quiet, fingerprint=run["data"]["sha256"])


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def runs(folder: Path) -> None:
    """Show a table of the restarts of the fit in FOLDER, also while it works."""
    from ddclust.run_folder import read_records, read_run

    run = read_run(folder)
    click.echo(f"{run['data']['name']}: {run['status']}")
    _print_runs(read_records(folder), run.get("voters", []))


def _train(
    out: Path, data: str, options: dict[str, Any], quiet: bool, fingerprint: str | None = None
) -> None:
    """Fit in a run folder, new or unfinished, and fill it with the results."""
    from ddclust import run_folder

    bunch = _load(data)
    from ddclust import DDC, DDCLoss

    rate = options["learning_rate"]
    model = DDC(
        options["clusters"],
        network=options["network"],
        init=options["init"],
        loss=DDCLoss(weights=(1.0, options["balance"], 1.0)),
        n_init=options["runs"],
        n_vote=options["vote"],
        early_elimination=options["eliminate"],
        max_iter=options["max_iter"],
        batch_size=options["batch_size"],
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
        shape = " x ".join(map(str, bunch.data.shape[1:]))
        click.echo(f"{bunch.name}: {len(bunch.data):,} items of {shape} values", err=True)
    with run_folder.under_way(out, run), _warnings_as_lines():
        start = time.perf_counter()
        model.fit(bunch.data)
        run["seconds"] = {"fit": round(time.perf_counter() - start, 3)}
        complete = run_folder.write_results(out, model, bunch.item_names, run)
    if not quiet:
        _print_summary(model, bunch.target)
        click.echo(f"\nResults: {out}/")
    if not complete:
        click.echo(f"Stopped early; 'ddclust resume {out}' goes on.", err=True)
        click.get_current_context().exit(INTERRUPTED)


@main.command(
    help=f"Assign each item of DATA to a cluster of the model in FOLDER (a run or model folder).\n\n{DATA_HELP}"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--out", type=click.Path(path_type=Path), help="A .csv file. [default: standard output]")
@click.option("--device", default="auto", show_default=True)
def predict(folder: Path, data: str, out: Path | None, device: str) -> None:
    """Assign new items with a fitted model."""
    from ddclust.persistence import DESCRIPTION_FILE, write_file

    if out is not None and out.exists():
        raise FileExistsError(f"{str(out)!r} exists already; choose another name.")
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"There is no folder {str(out.parent)!r} to write {out.name!r} into; make it first.")
    bunch = _load(data)
    from ddclust import DDC
    from ddclust.run_folder import MODEL_FOLDER, labels_table

    model = DDC.load(folder if (folder / DESCRIPTION_FILE).exists() else folder / MODEL_FOLDER, device=device)
    vote, probabilities = model.vote(bunch.data)
    table = labels_table(bunch.item_names, vote, probabilities)
    if out is None:
        click.echo(table, nl=False)
    else:
        write_file(out, table.encode())


@main.command()
@click.argument("labels")
@click.argument("truth")
@click.option("--kmeans", is_flag=True, help="Also show k-means on the same data (TRUTH must hold the data).")
def evaluate(labels: str, truth: str, kmeans: bool) -> None:
    """Compare clusters with known classes: accuracy (ACC, best one-to-one mapping) and NMI.

    LABELS is a run folder, or a file with a label per item (.csv, .npy, .npz). TRUTH is such a file, or a named
    data set (digits, circles), or an .npz with the truth called y.
    """
    from ddclust.datasets import NAMED, DataError, load, read_labels
    from ddclust.run_folder import LABELS_FILE

    found = read_labels(Path(labels) / LABELS_FILE if Path(labels).is_dir() else labels)
    bunch = load(truth) if truth in NAMED or kmeans else None
    expected = bunch.target if bunch is not None else read_labels(truth)
    if expected is None:
        raise DataError(f"{truth!r} holds no truth to compare with.")
    rows = [("clusters", *_scores(expected, found))]
    if kmeans and bunch is not None:
        from sklearn.cluster import KMeans

        flat = bunch.data.reshape(len(bunch.data), -1)
        n_clusters = len(set(found.tolist()))
        rows.append(
            ("k-means", *_scores(expected, KMeans(n_clusters, n_init=20, random_state=0).fit_predict(flat)))
        )
    _print_table(("", "ACC", "NMI"), rows)


def _load(data: str) -> Bunch:
    from ddclust.datasets import load

    return load(data)


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
    from ddclust.metrics import clustering_accuracy, nmi

    return f"{clustering_accuracy(truth, labels):.3f}", f"{nmi(truth, labels):.3f}"


def _print_summary(model: DDC, truth: NDArray | None) -> None:
    import numpy as np

    _print_runs(model.runs_, model.voters_)
    measures = (model.probabilities_.max(axis=1), model.agreement_)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
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


def _print_table(header: Sequence[object], rows: Sequence[Sequence[object]]) -> None:
    table = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    for row in table:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
