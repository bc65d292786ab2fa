"""Quantities of runs that need no labels, and the choice by them."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from torch import nn

from ddclust import DDCLoss, Selection
from ddclust.choosing.selection import (
    CRITERIA,
    agreement,
    badness,
    balance,
    labels_of,
    pairwise_agreement,
    rank_runs,
    steadiness,
)
from ddclust.data.batches import BatchSource, Sample, Scaling, random_items
from ddclust.training.record import Outcome, RunRecord
from helpers import own_loss, quick


class Sides(nn.Module):
    """Cluster 0 left of a border, cluster 1 right of it."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return x, torch.stack([-x[:, 0], x[:, 0]], dim=1) * self.scale


def source_of(X):
    return BatchSource(X, Scaling(X.shape[1:], np.zeros(X.shape[1]), np.ones(X.shape[1])))


def test_agreement_is_the_mean_over_the_others(rng):
    labelings = [rng.integers(0, 3, size=40) for _ in range(4)]
    table = pairwise_agreement(labelings)
    assert table[1, 3] == adjusted_rand_score(labelings[1], labelings[3])
    assert np.array_equal(table, table.T)
    expected = np.mean([adjusted_rand_score(labelings[0], other) for other in labelings[1:]])
    assert agreement(labelings)[0] == pytest.approx(expected)


def test_agreement_is_corrected_for_chance(rng):
    for k in (2, 20):
        labelings = [rng.integers(0, k, size=5000) for _ in range(3)]
        assert agreement(labelings) == pytest.approx(0, abs=0.01)


def test_agreement_of_one_with_itself():
    assert agreement([[0, 1, 1]]).tolist() == [1.0]


def test_balance_by_hand():
    assert balance([0, 0, 0, 1], 2) == pytest.approx(-(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)))
    assert balance([0, 0], 1) == 0


def test_steadiness_counts_the_items_at_the_border():
    X = np.concatenate([np.full((30, 1), -5.0), np.full((30, 1), 5.0), np.full((40, 1), 1e-9)])
    module = Sides()
    assert steadiness(module, source_of(X[:60]), noise=0.1) == 1.0
    # Of the 40 on the border, noise takes about half to the other side.
    assert steadiness(module, source_of(X), noise=0.1) == pytest.approx(0.8, abs=0.09)
    assert steadiness(module, source_of(X), noise=0.1) == steadiness(module, source_of(X), noise=0.1)


def test_labels_are_the_largest_outputs():
    X = np.array([[-1.0], [2.0], [-3.0]])
    assert labels_of(Sides(), source_of(X)).tolist() == [0, 1, 0]


def test_a_sample_is_a_source(rng):
    X = rng.normal(size=(500, 2))
    items = random_items(500, most=30, seed=0)
    assert len(np.unique(items)) == 30
    some = Sample(source_of(X), items)
    assert len(some) == 30
    assert torch.equal(some.batch(slice(3, 5)), source_of(X).batch(items[3:5]))


def test_ranking():
    def record(loss, used, outcome="budget"):
        return RunRecord(0, 1, Outcome(outcome), loss=loss, clusters_used=used)

    records = [
        record(0.9, 3),
        record(0.1, 2),
        record(None, 0, "failed"),
        record(0.7, 3, "converged"),
        record(0.05, 1),
    ]
    records.append(record(0.01, 3, "eliminated"))
    # Full ones by loss, then collapsed ones by loss; failed and eliminated ones not at all.
    assert rank_runs(records, 3) == [3, 0, 4, 1]


def test_ranking_by_each_criterion():
    def record(loss, divergence, agreement, used=3):
        return RunRecord(
            0,
            1,
            Outcome.BUDGET,
            loss=loss,
            terms={"divergence": divergence},
            agreement=agreement,
            clusters_used=used,
        )

    records = [record(0.1, 0.5, 0.2), record(0.2, 0.3, 0.9), record(0.3, 0.1, 0.5), record(0.0, 0.0, 1.0, 2)]
    assert rank_runs(records, 3) == [0, 1, 2, 3]
    assert rank_runs(records, 3, "divergence") == [2, 1, 0, 3]
    assert rank_runs(records, 3, "agreement") == [1, 2, 0, 3]


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_the_criterion_chooses_the_run(blobs):
    X, _ = blobs
    fitted = {
        criterion: quick(4, n_init=4, max_iter=40, neighbors=3, selection=criterion).fit(X)
        for criterion in CRITERIA
    }
    records = fitted["agreement"].runs_
    full = [r for r in records if r["clusters_used"] == 4] or records
    assert records[fitted["agreement"].voters_[0]]["agreement"] == max(r["agreement"] for r in full)
    for term in ("divergence", "pairs"):
        chosen = fitted[term].runs_[fitted[term].voters_[0]]
        assert chosen["terms"][term] == min(r["terms"][term] for r in full)
    assert "agreement" not in fitted["loss"].runs_[0]
    # The agreement of a run is that of its labels.
    labels = quick(4, n_init=4, n_vote=4, max_iter=40, neighbors=3).fit(X)
    if len(labels.voters_) == 4:
        found = dict(zip(labels.voters_, agreement(labels.member_labels_), strict=True))
        assert [record["agreement"] for record in records] == pytest.approx([found[run] for run in range(4)])


def test_a_loss_without_the_term_is_refused(blobs):
    with pytest.raises(ValueError, match=r"selection='divergence' needs a loss with a term of that name"):
        quick(loss=own_loss, selection="divergence").fit(blobs[0])
    with pytest.raises(ValueError, match=r"selection='pairs' needs pairs \(augment or neighbors\)"):
        quick(augment=None, selection="pairs").fit(blobs[0])
    with pytest.raises(ValueError, match=r"a weight of the term 'pairs' above 0"):
        quick(loss=DDCLoss(weights={"pairs": 0}), selection=Selection("pairs")).fit(blobs[0])


def test_criteria_and_merging_share_checkpoints(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    first = quick(n_init=2, max_iter=20, n_final=None, checkpoint_dir=tmp_path).fit(X)
    monkeypatch.delattr("ddclust.training.setup.Trainer")  # nothing is trained anew
    again = quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path, selection="agreement", n_final=2).fit(X)
    assert [run["loss"] for run in again.runs_] == [run["loss"] for run in first.runs_]
    assert again.n_clusters_ == 2


def test_a_record_without_the_criterion_is_named():
    with pytest.raises(ValueError, match="The record of run 4 has no 'agreement'"):
        badness(RunRecord(4, 1, loss=0.5), "agreement")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "partners"}, "criterion must be one of .*'pairs'.* got 'partners'"),
        ({"halving": "yes"}, "halving must be True or False, got 'yes'"),
        ({"halving": 1}, "halving must be True or False, got 1"),
    ],
)
def test_wrong_selections_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Selection(**options)


def test_a_selection_is_plain():
    assert Selection(halving=np.True_) == Selection(halving=True)
    assert Selection(halving=np.True_).halving is True


def test_a_name_is_a_selection_without_halving(blobs):
    named, built = (
        quick(n_init=2, max_iter=10, selection=s).fit(blobs[0]) for s in ("agreement", Selection("agreement"))
    )
    assert named.setup_ == built.setup_
    assert (named.setup_.criterion, named.setup_.halving) == ("agreement", False)
    assert named.voters_ == built.voters_
