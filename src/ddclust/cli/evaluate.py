"""``ddclust evaluate``."""

from __future__ import annotations

from pathlib import Path

import click

from ddclust.cli.options import MAX_BYTES, OUTPUT, Row, SectionCommand, json_option, quiet_option, with_rows
from ddclust.cli.printing import numbers, print_json, print_note, print_table, score_cells


@click.command(cls=SectionCommand, short_help="Compare clusters with known classes.")
@click.argument("labels")
@click.argument("truth")
@with_rows(
    Row(
        ("--column",),
        "truth_column",
        OUTPUT,
        "Column with the known classes, if TRUTH is a table.  [default: cluster, else the last one]",
        metavar="COLUMN",
    )
)
@click.option(
    "--kmeans", is_flag=True, help="Also evaluate k-means on the same data; TRUTH must hold the data."
)
@with_rows(MAX_BYTES)
@quiet_option("No notes.")
@json_option("the scores")
def evaluate(
    labels: str,
    truth: str,
    column: str | None,
    kmeans: bool,
    max_bytes: float | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare clusters with known classes, by accuracy (ACC) and normalised mutual information (NMI).

    Accuracy is that of the best one-to-one mapping of clusters to classes. If LABELS has confidences, as labels.csv has,
    the expected calibration error (ECE) says how far they are from the share of items that are right; 0 is best. Items
    that predict refused, of cluster -1, are left out.

    LABELS is a result folder, or a file with a label per item (.csv, .npy, .npz). TRUTH is such a file, a named data
    set, data with known classes (an .npz with y, a table with --column), or a folder whose sub-folders are the
    classes.
    """
    import numpy as np

    from ddclust.choosing.rejection import REFUSED
    from ddclust.datasets import NAMED, DataError, load, read_labels
    from ddclust.reading import is_table, scaled_vectors, truth_of
    from ddclust.results import labels_file

    read = read_labels(labels_file(Path(labels)) if Path(labels).is_dir() else labels, max_bytes=max_bytes)
    found, found_names = read.labels, read.item_names
    is_label_file = is_table(truth) and not truth.lower().removesuffix(".gz").endswith((".parquet", ".jsonl"))
    bunch = None
    if truth in NAMED or Path(truth).is_dir() or (is_table(truth) and not is_label_file) or kmeans:
        bunch = load(truth, truth_column=column, max_bytes=max_bytes, verbose=not quiet)
        expected, names = bunch.target, bunch.item_names
    else:
        classes = read_labels(truth, column, max_bytes=max_bytes)
        expected, names = classes.labels, classes.item_names
        if classes.guessed_column is not None and not quiet:
            print_note(
                f"The known classes are the last column, {classes.guessed_column!r}; --column names another."
            )
    if expected is None:
        remedy = (
            "--column names the column that holds them"
            if is_table(truth)
            else "give a file with a label per item"
        )
        raise DataError(f"{truth!r} holds no known classes to compare with; {remedy}.")
    if names is not None and found_names is not None:
        expected = truth_of(found_names, names, expected, truth)
    confidence, assigned = read.confidence, found.astype(str) != str(REFUSED)
    if not assigned.all() and len(expected) == len(found):
        if not quiet:
            print_note(f"{(~assigned).sum():,} of {len(found):,} items were refused and are left out.")
        expected, found = np.asarray(expected)[assigned], found[assigned]
        confidence = None if confidence is None else confidence[assigned]
    ece = [] if confidence is None else ["ECE"]
    rows = [("clusters", *score_cells(expected, found, confidence))]
    if kmeans and bunch is not None:
        from sklearn.cluster import KMeans

        vectors = scaled_vectors(bunch.data)
        clusters = KMeans(len(set(found.tolist())), n_init=20, random_state=0).fit_predict(vectors)
        rows.append(("k-means", *score_cells(bunch.target, clusters), *("-" for _ in ece)))
    header = ("ACC", "NMI", *ece)
    if as_json:
        print_json({name: numbers(header, cells) for name, *cells in rows})
    else:
        print_table(("", *header), rows)
