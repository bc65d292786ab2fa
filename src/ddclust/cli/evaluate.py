"""``ddclust evaluate``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import SectionCommand
from ddclust.cli.printing import print_table, score_cells


@click.command(cls=SectionCommand, short_help="Compare clusters with known classes.")
@click.argument("labels")
@click.argument("truth")
@click.option(
    "--column",
    metavar="COLUMN",
    help="Column with the known classes, if TRUTH is a table.  [default: cluster, else the last one]",
)
@click.option(
    "--kmeans", is_flag=True, help="Also evaluate k-means on the same data; TRUTH must hold the data."
)
def evaluate(labels: str, truth: str, column: str | None, kmeans: bool) -> None:
    """Compare clusters with known classes, by accuracy (ACC) and normalised mutual information (NMI).

    Accuracy is that of the best one-to-one mapping of clusters to classes.

    LABELS is a result folder, or a file with a label per item (.csv, .npy, .npz). TRUTH is such a file, a named data
    set, data with known classes (an .npz with y, a table with --column), or a folder whose sub-folders are the
    classes.
    """
    from ddclust.datasets import NAMED, DataError, load, read_labels
    from ddclust.reading import is_table, scaled_vectors, truth_of, vectorised
    from ddclust.results import LABELS_FILE

    found, found_names = read_labels(Path(labels) / LABELS_FILE if Path(labels).is_dir() else labels)
    is_label_file = is_table(truth) and not truth.lower().removesuffix(".gz").endswith((".parquet", ".jsonl"))
    bunch = None
    if truth in NAMED or Path(truth).is_dir() or (is_table(truth) and not is_label_file) or kmeans:
        bunch = load(truth, truth_column=column, verbose=True)
        expected, names = bunch.target, bunch.item_names
    else:
        expected, names = read_labels(truth, column)
    if expected is None:
        raise DataError(f"{truth!r} holds no known classes to compare with.")
    if names is not None and found_names is not None:
        expected = truth_of(found_names, names, expected, truth)
    rows = [("clusters", *score_cells(expected, found))]
    if kmeans and bunch is not None:
        from sklearn.cluster import KMeans

        vectors = scaled_vectors(vectorised(bunch.data))
        clusters = KMeans(len(set(found.tolist())), n_init=20, random_state=0).fit_predict(vectors)
        rows.append(("k-means", *score_cells(bunch.target, clusters)))
    print_table(("", "ACC", "NMI"), rows)
