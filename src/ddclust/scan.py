"""How many clusters? Several runs for each number of clusters, compared without labels.

If the number of clusters suits the data, different runs find the same clusters. If it does not, each run merges or
splits others. The *stability* of a number k is the mean adjusted Rand index of all pairs of runs. It is corrected for chance,
so it can be compared between numbers.

Runs can agree where there are no clusters, too: they may all halve a long cloud in its middle. So the clusters must also be
closed: their borders must follow gaps in the data, and no cluster may have one inside (:mod:`ddclust.choosing.openness`).
Images are not asked: neighbours by their pixels say too little, and the known classes of digits are open.
:func:`recommend` derives a recommendation from both, or says that it is unclear.
"""

from __future__ import annotations

import math
import os
import statistics
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ddclust.choosing.borders import DOUBT
from ddclust.choosing.openness import Landscape, landscape_of
from ddclust.choosing.selection import agreement
from ddclust.data.text import StemVectorizer, checked_texts, is_text
from ddclust.data.views import is_views
from ddclust.ddc import DDC
from ddclust.defaults import AUTO
from ddclust.show import plots
from ddclust.storage.atomic import refuse_links, write_file, write_json
from ddclust.storage.workspace import Kind, Workspace, WorkspaceError
from ddclust.training.checkpoints import continued_precision
from ddclust.training.record import Outcome, RunRecord

# Below this stability, runs do not find the same clusters.
STABLE = 0.8
# Stabilities that differ by less are alike.
ALIKE = 0.05
# Clusters are closed if the most open one is at most so open, where clusters in noise are 1. Chosen on development sets;
# docs/number-of-clusters.md names them.
CLOSED = 0.3
# A finer number that is open or not stable makes a number unclear unless it is so many times as open.
EVIDENT = 2
# A recommendation that fewer of the resamplings repeat is none.
CONFIDENT = 0.6
RESAMPLINGS = 2000
SCAN_FILE = "scan.json"
PICTURE_FILE = "scan.png"
CHECKPOINTS_FOLDER = "checkpoints"
TABLE_COLUMNS = ("k", "stability", "openness", "divergence", "clusters used", "seconds")


class Row(TypedDict):
    """What a scan finds for a number of clusters; see :class:`Scan`."""

    k: int
    stability: float
    agreements: Annotated[list[float], Meta(min_length=2)]
    openness: float | None
    divergence: float | None
    clusters_used: Annotated[list[int], Meta(min_length=2)]
    seconds: float


class RowFile(TypedDict):
    """What is used of row.json, apart from comparing it."""

    row: NotRequired[Row]


class ScanError(WorkspaceError):
    """A scan that cannot be made, or cannot go on in this folder."""


ROW = Kind(
    format="ddclust-scan",
    file="row.json",
    content="a scan",
    work="Another scan",
    differences={"data": "the data differ"},
    error=ScanError,
    schema=RowFile,
)


@dataclass(frozen=True)
class Recommendation:
    """A number of clusters, or None if it is unclear; how sure that is, from 0 to 1; and why.

    The confidence is None if some number has only two runs: a single pair cannot say how others would agree. ``n_pairs`` is
    the least number of pairs of runs that were compared.
    """

    n_clusters: int | None
    confidence: float | None
    reason: str
    n_pairs: int


@dataclass(frozen=True)
class Scan:
    """The outcome of a scan: a row of quantities for each number of clusters, and what follows from them.

    A row has ``k``, ``stability``, ``agreements`` (for each run its mean adjusted Rand index with the others),
    ``openness`` (the median over runs of that of the most open cluster, in units of clusters in noise; None of images, and if
    fewer than two runs use all clusters), ``divergence`` (the mean over runs of that term of the loss on the whole data), ``clusters_used`` (of each
    run), and ``seconds``.
    """

    rows: list[Row]
    recommendation: Recommendation


def scan(
    X: Any,
    ks: Iterable[int] = range(2, 21),
    *,
    model: DDC | None = None,
    folder: str | os.PathLike[str] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Scan:
    """Make several runs for each number of clusters and recommend a number. No labels are used.

    Parameters
    ----------
    X : whatever :class:`ddclust.DDC` takes
    ks : iterable of int, default=range(2, 21)
        The numbers of clusters to try, from 2 on.
    model : DDC, optional
        The estimator to fit; its ``n_clusters``, ``n_vote`` and ``selection`` are ignored. By default
        ``DDC(n_init=6, max_iter=1000, random_state=0)``.
    folder : path-like, optional
        Where to leave ``scan.json``, ``scan.png``, and a folder for each number. A scan that was killed goes on from
        there when it is repeated, also with other numbers.
    on_row : callable, optional
        Is told each row as soon as it is there.

    Returns
    -------
    Scan

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = DDC(n_init=4, max_iter=150, learning_rate=1e-3, random_state=0, n_jobs=1)
    >>> scan(X, range(2, 5), model=model).recommendation.n_clusters
    3
    """
    model = DDC(n_init=6, max_iter=1000, random_state=0) if model is None else model
    X = model.encoded(X)  # once for all numbers
    if is_text(X):
        X = StemVectorizer(model.language).fit_transform(checked_texts(X))
    numbers = _checked_numbers(ks, X, model)
    place = None if folder is None else Path(folder)
    if place is not None:
        refuse_links(place, ScanError)
    rows, landscape = [], _LandscapeOf(X)
    for k in numbers:
        own = clone(model).set_params(
            n_clusters=k,
            n_final=None if model.n_final is None else AUTO,
            anchor=None,
            n_vote=model.n_init,
            selection="loss",
            callbacks=None,
            checkpoint_dir=None,
        )
        row = (
            _fitted_row(X, own, landscape)
            if place is None
            else _row_in_folder(X, own, landscape, place / f"k-{k:03d}")
        )
        rows.append(row)
        if on_row is not None:
            on_row(row)
    result = Scan(rows, recommend(rows))
    if place is not None:
        _write(place, result)
    return result


def recommend(rows: Sequence[Row]) -> Recommendation:
    """What the rows of a scan say about the number of clusters.

    - A number counts only if most of its runs use all clusters, and if these are closed: the most open one is at most .3
      times as open as clusters in noise. Of images, which have no openness, only the former is asked. If no number counts, the number of clusters is unclear; there may be one.
    - If the best stability of those that count is below .8, it is unclear, too.
    - A number is stable if its stability is at most .05 below the best. Of stable numbers in a row the first counts, since
      the others mostly split its clusters further. Of several rows the last is recommended, since a finer division
      that is stable says more than a coarser one.
    - The recommended number is unclear if a finer one, open or not stable, is less than twice as open: that one may be right,
      and the runs too short for it.
    - The confidence is the share of resamplings of the runs that give the same number. If it is below .6, the number is
      unclear. Two runs, a single pair, cannot be resampled: they give no confidence.

    Parameters
    ----------
    rows : sequence of dict
        With ``k``, ``agreements``, ``openness`` and ``clusters_used``, see :class:`Scan`.

    Examples
    --------
    >>> found = [(2, 0.5, 0.3), (3, 0.99, 0.1), (4, 0.7, 0.9)]
    >>> rows = [{"k": k, "agreements": [a] * 4, "openness": o, "clusters_used": [k] * 4} for k, a, o in found]
    >>> recommend(rows).n_clusters, recommend(rows).confidence
    (3, 1.0)
    >>> recommend(rows[:1])
    Recommendation(n_clusters=None, confidence=1.0, reason='no number of clusters is found again by other runs: the best stability is 0.50, at k = 2', n_pairs=6)
    >>> recommend([{"k": 2, "agreements": [0.9, 0.9], "openness": 0.2, "clusters_used": [2, 2]}])
    Recommendation(n_clusters=2, confidence=None, reason='runs with k = 2 agree by 0.90', n_pairs=1)
    """
    ks = np.array([row["k"] for row in rows])
    are_full = np.array([statistics.median_low(row["clusters_used"]) == row["k"] for row in rows])
    openness = np.array([0.0 if row["openness"] is None else row["openness"] for row in rows])
    counts = are_full & (openness <= CLOSED)
    stability = np.array([np.mean(row["agreements"]) for row in rows])
    n_pairs = min(math.comb(len(row["agreements"]), 2) for row in rows)
    if not counts.any():
        return Recommendation(
            None, 1.0 if n_pairs > 1 else None, _why_none_counts(ks, are_full, openness), n_pairs
        )
    found = int(_choices(ks, stability[None], counts)[0])
    repeated = _choices(ks, _resampled(rows), counts)
    confidence = float((repeated == found).mean()) if n_pairs > 1 else None
    best = int(np.where(counts, stability, -np.inf).argmax())
    if found == 0:
        reason = (
            "no number of clusters is found again by other runs: the best stability is"
            f" {stability[best]:.2f}, at k = {ks[best]}"
        )
        return Recommendation(None, confidence, reason, n_pairs)
    at = f"runs with k = {found} agree by {stability[ks == found][0]:.2f}"
    if confidence is not None and confidence < CONFIDENT:
        others, frequency = np.unique(repeated[repeated != found], return_counts=True)
        other = int(others[frequency.argmax()])
        what = f"k = {other}" if other else "none"
        reason = f"{at}, but with a few other runs the answer might be {what}"
        return Recommendation(None, confidence, reason, n_pairs)
    passes = counts & (stability >= max(stability[best] - ALIKE, STABLE))
    doubtful = (ks > found) & are_full & ~passes & (openness < EVIDENT * openness[ks == found][0])
    if doubtful.any():
        other = int(np.where(doubtful, openness, np.inf).argmin())
        reason = (
            f"{at}, but the clusters of the finer k = {ks[other]} are nearly as closed: an openness of {openness[other]:.2f}, not"
            f" {openness[ks == found][0]:.2f}"
        )
        return Recommendation(None, confidence, reason, n_pairs)
    alike = ks[passes]
    for kind, others in (("coarser", alike[alike < found]), ("finer", alike[alike > found])):
        if len(others):
            at += f"; the {kind} k = {', '.join(map(str, others.tolist()))} {'is' if len(others) == 1 else 'are'} as stable"
    if found == ks[counts].max() and len(ks) > 1:
        at += "; it is the largest number that counts, so larger ones may be worth a scan"
    return Recommendation(found, confidence, at, n_pairs)


def _why_none_counts(
    ks: NDArray[np.int64], are_full: NDArray[np.bool_], openness: NDArray[np.float64]
) -> str:
    if not are_full.any():
        return "most runs leave clusters empty, whatever their number"
    least = int(np.where(are_full, openness, np.inf).argmin())
    return (
        "nothing parts the clusters: their borders cross dense data, or gaps cross them; there may be a single one. The"
        f" openness is {openness[least]:.2f} at best, at k = {ks[least]}; in noise it is about 1, and {CLOSED:.2f} would do"
    )


def _choices(
    ks: NDArray[np.int64], stabilities: NDArray[np.float64], counts: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The number for each row of stabilities, 0 where it is unclear."""
    stabilities = np.where(counts, stabilities, -np.inf)
    best = stabilities.max(axis=1, keepdims=True)
    alike = stabilities >= best - ALIKE
    begins = alike.copy()
    begins[:, 1:] &= ~alike[:, :-1]
    return np.where(best[:, 0] >= STABLE, np.where(begins, ks, 0).max(axis=1), 0)


def _resampled(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Stabilities that other runs might have given, of shape (resamplings, rows).

    A bootstrap of the runs. The stability is a mean over pairs, and both of a pair are drawn: hence twice the
    deviation of the mean over runs.
    """
    rng = np.random.default_rng(0)
    columns = []
    for row in rows:
        agreements = np.array(row["agreements"])
        drawn = rng.choice(agreements, size=(RESAMPLINGS, len(agreements))).mean(axis=1)
        columns.append(agreements.mean() + 2 * (drawn - agreements.mean()))
    return np.stack(columns, axis=1)


def _checked_numbers(ks: Iterable[int], X: Any, model: DDC) -> list[int]:
    numbers = sorted({int(k) for k in ks})
    items = X[0] if is_views(X) else X
    n = int(items.shape[0]) if hasattr(items, "shape") else len(items)
    if not numbers or numbers[0] < 2:
        raise ScanError(f"A scan needs numbers of clusters from 2 on, got {numbers}.")
    if numbers[-1] > n:
        raise ScanError(f"There are {n} items, too few for {numbers[-1]} clusters; scan smaller numbers.")
    if model.n_init < 2:
        raise ScanError(f"A scan compares runs, so it needs at least two of them, got n_init={model.n_init}.")
    return numbers


class _LandscapeOf:
    """The landscape of X, None of images. The first model that asks finds it: most of it is the search for neighbours."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self._found: Landscape | None = None

    def __call__(self, model: DDC) -> Landscape | None:
        if self._found is None:
            source = model._source(self._X)
            if len(source.items.shape) == 2:
                self._found = landscape_of(source)
        return self._found


def _fitted_row(X: Any, model: DDC, landscape: Callable[[DDC], Landscape | None]) -> Row:
    """The quantities of one number of clusters. An interrupted fit raises the interrupt again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row has what it says
        warnings.filterwarnings("ignore", message=DOUBT)  # the openness says more
        model.fit(X)
    if any(Outcome(record["outcome"]).is_unfinished for record in model.runs_):
        raise KeyboardInterrupt
    records = [record for record in map(RunRecord.from_dict, model.runs_) if record.is_usable]
    if len(records) < 2:
        raise ScanError(
            f"Only {len(records)} of {model.n_init} runs with {model.n_clusters} clusters can be compared: the others failed."
        )
    # Runs that leave clusters empty are not kept, unless all do.
    labelings = list(model.member_labels_)
    can_compare = len(labelings) > 1
    agreements = agreement(labelings).tolist() if can_compare else [0.0] * len(records)
    asked = landscape(model) if can_compare else None
    divergences = [record.terms["divergence"] for record in records if "divergence" in record.terms]
    return {
        "k": model.n_clusters,
        "stability": statistics.mean(agreements),
        "agreements": agreements,
        "openness": None if asked is None else statistics.median(map(asked.openness, labelings)),
        "divergence": statistics.mean(divergences) if divergences else None,
        "clusters_used": [min(record.clusters_used, model.n_clusters) for record in records],
        "seconds": round(sum(record.seconds for record in records), 1),
    }


def _row_in_folder(X: Any, model: DDC, landscape: Callable[[DDC], Landscape | None], folder: Path) -> Row:
    """The same, from what the folder holds, or left there."""
    workspace, identity = Workspace(folder, ROW), model.fit_identity(X)
    if model.precision == AUTO:
        identity["setup"]["precision"] = continued_precision(workspace, identity["setup"]["precision"])
        model.set_params(precision=identity["setup"]["precision"])
    with workspace.claimed(identity) as found:
        if "row" not in found:
            row = _fitted_row(X, model.set_params(checkpoint_dir=folder / CHECKPOINTS_FOLDER), landscape)
            workspace.finish(row=row)
            workspace.discard(CHECKPOINTS_FOLDER)
            return row
    return found["row"]


def _write(folder: Path, result: Scan) -> None:
    """scan.json and scan.png."""
    import io

    write_json(folder / SCAN_FILE, asdict(result))
    picture = io.BytesIO()
    plots.scan(result.rows, result.recommendation.n_clusters).savefig(picture, format="png")
    write_file(folder / PICTURE_FILE, picture.getvalue())


def table_row(row: Row) -> tuple[str, ...]:
    """A row for reading."""
    used = sorted(set(row["clusters_used"]))
    return (
        str(row["k"]),
        f"{row['stability']:.3f}",
        "-" if row["openness"] is None else f"{row['openness']:.2f}",
        "-" if row["divergence"] is None else f"{row['divergence']:.4f}",
        str(used[0]) if len(used) == 1 else f"{used[0]} to {used[-1]}",
        f"{row['seconds']:.1f}",
    )
