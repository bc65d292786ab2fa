"""Which runs of a fit to keep, decided without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from ddclust.data.batches import BatchSource, Sample, random_items
from ddclust.objective.pairs import PAIRS
from ddclust.objective.regrouping import Regrouping
from ddclust.training.checkpoints import RunState
from ddclust.training.inference import CHUNK, evaluation_mode, outputs, padded_batches
from ddclust.training.record import RunRecord
from ddclust.training.setup import Plan, Setup, regrouping_of
from ddclust.training.trainer import Source

UNGROUPED = Regrouping()
# Runs are compared by their labels of at most so many items, enough for two digits.
COMPARED_ITEMS = 10_000
CRITERIA = ("loss", "divergence", PAIRS, "agreement")


class AllRunsFailedError(ArithmeticError):
    """No run can be used."""


@dataclass(frozen=True)
class Selection:
    """How runs are ranked, and whether hopeless ones are stopped early.

    Parameters
    ----------
    criterion : {"loss", "divergence", "pairs", "agreement"}, default="loss"
        What makes a run better than another: the lowest total loss, as in the paper; the lowest divergence term, as in the
        authors' later code; the lowest term of the pairs; or the highest agreement with the labels of the other
        runs (mean adjusted Rand index on at most 10,000 items). docs/selection.md compares them.
    halving : bool, default=False
        Whether to stop hopeless runs early by successive halving: only the better half of the runs, by
        loss, trains beyond an eighth of ``max_iter``, and again beyond a quarter and a half.

    Examples
    --------
    >>> Selection("agreement")
    Selection(criterion='agreement', halving=False)
    """

    criterion: str = "loss"
    halving: bool = False

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {CRITERIA}, got {self.criterion!r}.")
        if not isinstance(self.halving, (bool, np.bool_)):
            raise ValueError(f"halving must be True or False, got {self.halving!r}.")
        object.__setattr__(self, "halving", bool(self.halving))


def rank_runs(records: Sequence[RunRecord], n_clusters: int, criterion: str = "loss") -> list[int]:
    """Positions of the runs that can be chosen, best first.

    Runs that use at least ``n_clusters`` clusters come before runs that use fewer, whatever their loss. Failed and
    eliminated runs are left out.
    """
    # Departs from the paper: the run with the lowest loss may have merged clusters, which is not what was asked for.
    usable = [place for place, record in enumerate(records) if record.is_usable]
    return sorted(
        usable,
        key=lambda place: (
            records[place].clusters_used < n_clusters,
            badness(records[place], criterion),
        ),
    )


def chosen_runs(
    records: Sequence[RunRecord], setup: Setup, *, can_resume: bool = False
) -> tuple[list[int], list[str]]:
    """Positions of the runs to keep, best first, and complaints about everything that is not as asked for.

    Raises
    ------
    AllRunsFailedError
        No run can be used.
    KeyboardInterrupt
        The fit was interrupted before any run could be used.
    """
    wanted = setup.n_clusters if setup.n_final is None else setup.n_final
    ranking = rank_runs(records, wanted, setup.criterion)
    failed = [record for record in records if record.error is not None]
    is_interrupted = any(record.outcome.is_unfinished for record in records)
    if not ranking and is_interrupted:
        raise KeyboardInterrupt
    if not ranking:
        why = failed[0].error if failed else "It was eliminated."
        raise AllRunsFailedError(f"All {len(records)} runs failed. The first one: {why}")
    complete = [run for run in ranking if records[run].clusters_used >= wanted]
    voters = (complete or ranking)[: setup.n_vote]
    complaints = []
    if failed:
        complaints.append(f"{len(failed)} of {len(records)} runs failed. The first one: {failed[0].error}")
    if not complete:
        complaints.append(
            f"The clustering uses {records[ranking[0]].clusters_used} of the {wanted} clusters asked"
            " for. More runs (n_init), more iterations (max_iter) or a smaller n_clusters may help."
        )
    if is_interrupted:
        way = "Fit again" if can_resume else "Set checkpoint_dir to be able"
        complaints.append(
            f"Interrupted: the best result so far is kept. {way} to go on from where it stopped."
        )
    elif len(voters) < setup.n_vote:
        complaints.append(
            f"Only {len(voters)} of {setup.n_vote} runs vote: the others failed or left clusters empty."
        )
    return voters, complaints


def badness(record: RunRecord, criterion: str) -> float:
    """What is small for a good run: its loss, one of the loss's terms, or the lack of agreement with other runs.

    Examples
    --------
    >>> record = RunRecord(0, seed=1, loss=0.9, terms={"divergence": 0.2}, agreement=0.7)
    >>> [badness(record, criterion) for criterion in ("loss", "divergence", "agreement")]
    [0.9, 0.2, -0.7]
    """
    value = {"loss": record.loss, "agreement": record.agreement}.get(criterion, record.terms.get(criterion))
    if value is None:
        raise ValueError(f"The record of run {record.run} has no {criterion!r}.")
    return -value if criterion == "agreement" else value


def note_agreement(states: Sequence[RunState], plan: Plan, source: BatchSource) -> None:
    """Write into the record of each usable run how far it agrees with the others."""
    some = Sample(source, random_items(len(source), COMPARED_ITEMS, seed=0))
    usable = [state for state in states if state.record.is_usable]
    labelings = [
        labels_of(plan.build_from(state.tensors), some, regrouping_of(state.tensors)) for state in usable
    ]
    for state, value in zip(usable, agreement(labelings).tolist(), strict=True):
        state.record.agreement = value


def pairwise_agreement(labelings: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The adjusted Rand index of every two labellings: 1 for the same partition, about 0 for independent ones.

    It is corrected for chance, so it can be compared between different numbers of clusters.

    Parameters
    ----------
    labelings : sequence of array-like of int of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_labelings, n_labelings)

    Examples
    --------
    >>> pairwise_agreement([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])
    array([[ 1. ,  1. , -0.5],
           [ 1. ,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    from sklearn.metrics import adjusted_rand_score

    matrix = np.eye(len(labelings))
    for i, first in enumerate(labelings):
        for j, second in enumerate(labelings[:i]):
            matrix[i, j] = matrix[j, i] = adjusted_rand_score(first, second)
    return matrix


def agreement(labelings: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The mean adjusted Rand index of each labelling with the others; 1 if there are no others.

    Parameters
    ----------
    labelings : sequence of array-like of int of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_labelings,)

    Examples
    --------
    >>> agreement([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])
    array([ 0.25,  0.25, -0.5 ])
    """
    if len(labelings) < 2:
        return np.ones(len(labelings))
    return (pairwise_agreement(labelings).sum(axis=1) - 1) / (len(labelings) - 1)


def balance(labels: ArrayLike, n_clusters: int) -> float:
    """The entropy of the clusters' sizes, from 0 for a single cluster to 1 for clusters of one size.

    Parameters
    ----------
    labels : array-like of int of shape (n_samples,)
        Values from 0 to n_clusters - 1.
    n_clusters : int

    Examples
    --------
    >>> balance([0, 0, 1, 1], 2), balance([0, 0, 0, 0], 2), balance([0, 1, 0, 1], 4)
    (1.0, 0.0, 0.5)
    """
    shares = np.bincount(np.asarray(labels), minlength=n_clusters) / len(np.asarray(labels))
    used = shares[shares > 0]
    return float(abs((used * np.log(used)).sum()) / np.log(max(n_clusters, 2)))


def steadiness(module: nn.Module, source: Source, *, noise: float = 0.1, seed: int = 0) -> float:
    """The share of items whose cluster stays the same when a little Gaussian noise is added to them.

    Parameters
    ----------
    module : nn.Module
        Returns (hidden, logits).
    source : Source
    noise : float, default=0.1
        Standard deviation of the noise, in those of the values that the network sees.
    seed : int, default=0

    Examples
    --------
    >>> from ddclust.networks import MLP
    >>> from ddclust.data.batches import BatchSource, Scaling
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> steadiness(MLP((2,), 3), BatchSource(X, Scaling.of(X)), noise=0.0)
    1.0
    """
    generator = torch.Generator().manual_seed(seed)
    scale = noise * source.batch(slice(0, min(len(source), COMPARED_ITEMS))).std().item()
    unchanged = 0
    with evaluation_mode(module) as device:
        for rows, x in padded_batches(source, CHUNK):
            n = rows.stop - rows.start
            moved = x + scale * torch.randn(x.shape, generator=generator)
            before, after = (module(version.to(device))[1][:n].argmax(dim=1) for version in (x, moved))
            unchanged += int((before == after).sum())
    return unchanged / len(source)


def labels_of(module: nn.Module, source: Source, regrouping: Regrouping = UNGROUPED) -> NDArray[np.int64]:
    """The network's own cluster of each item, in the numbering of its outputs or of their groups."""
    found = [regrouping.joined(logits).argmax(dim=1) for _, _, logits in outputs(module, source)]
    return torch.cat(found).numpy()
