"""Snapshots of the soft assignments in the course of training."""

import numpy as np
import pytest

from ddclust import DDC, Selection, Snapshots
from helpers import quick


def test_snapshots_of_the_best_run(blobs):
    X, _ = blobs  # two batches in an epoch
    plain = quick(n_init=3, max_iter=30).fit(X)
    model = quick(n_init=3, max_iter=30, callbacks=[Snapshots((0, 5, 15, 40))]).fit(X)
    assert not hasattr(plain, "snapshots_")
    assert np.array_equal(plain.probabilities_, model.probabilities_)  # looking changes nothing
    items, epochs, probabilities = model.snapshots_
    assert items.tolist() == list(range(150))
    assert epochs.tolist() == [0, 5, 15]  # the run ended before the last one
    assert probabilities.shape == (3, 150, 3)
    assert np.array_equal(
        probabilities[2], model.probabilities_
    )  # its last iteration, in the final numbering
    assert not hasattr(model.set_params(callbacks=None).fit(X), "snapshots_")


def test_a_snapshot_is_the_network_at_the_end_of_that_epoch(blobs):
    X, _ = blobs
    late = quick(augment=None, max_iter=40, callbacks=[Snapshots([5])], early_stopping=None).fit(X)
    early = quick(augment=None, max_iter=10, early_stopping=None).fit(X)
    raw = early.probabilities_[:, np.argsort(early.cluster_orders_[0])]
    assert np.array_equal(late.snapshots_.probabilities[0], raw[:, late.cluster_orders_[0]])


def test_every_member_s_labels_and_snapshots_are_kept(blobs):
    X, _ = blobs
    model = quick(n_init=3, n_vote=2, max_iter=40, callbacks=[Snapshots((0, 2))]).fit(X)
    members = model.member_probabilities(X)
    assert np.array_equal(model.member_labels_, [p.argmax(axis=1) for p in members])
    assert [s.epochs.tolist() for s in model.member_snapshots_] == [[0, 2]] * 2
    assert np.array_equal(model.member_snapshots_[0].probabilities, model.snapshots_.probabilities)
    first, second = (s.probabilities for s in model.member_snapshots_)
    assert not np.array_equal(first, second)
    assert not hasattr(model.set_params(callbacks=None).fit(X), "member_snapshots_")


def test_snapshots_are_the_same_wherever_runs_are(blobs):
    X, _ = blobs
    options = {"n_init": 4, "max_iter": 32, "selection": Selection(halving=True)}
    options["callbacks"] = [Snapshots((0, 1, 7, 16))]
    here, there = (quick(n_jobs=n_jobs, **options).fit(X) for n_jobs in (1, 2))
    assert here.snapshots_.epochs.tolist() == [0, 1, 7, 16]
    for one, other in zip(here.snapshots_, there.snapshots_, strict=True):
        assert np.array_equal(one, other)


def test_snapshots_of_large_data_are_of_a_sample(rng):
    X = rng.normal(size=(2500, 3))
    models = [quick(2, max_iter=2, callbacks=[Snapshots([0])], random_state=seed).fit(X) for seed in (0, 1)]
    samples = [model.snapshots_.items for model in models]
    assert len(np.unique(samples[0])) == 2000
    assert np.array_equal(samples[0], samples[1])  # whatever the seed
    assert samples[0].tolist() != list(range(2000))
    assert models[0].snapshots_.probabilities.shape == (1, 2000, 2)


@pytest.mark.parametrize("snapshots", [[], [5, 5], [5, 3], [-1], [0.5], ["a"]])
def test_wrong_snapshots(snapshots):
    with pytest.raises(ValueError, match="epochs=.* must hold at least one epoch"):
        Snapshots(snapshots)


@pytest.mark.parametrize("snapshots", [range(2), np.array([0, 1]), (0, np.int64(1))])
def test_snapshots_are_not_saved(blobs, tmp_path, snapshots):
    model = quick(max_iter=4, callbacks=[Snapshots(snapshots)]).fit(blobs[0])
    assert model.snapshots_.epochs.tolist() == [0, 1]
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    assert loaded.callbacks is None
    assert not hasattr(loaded, "snapshots_")
    loaded.set_params(callbacks=[Snapshots((0, 1))]).fit(blobs[0])
    assert np.array_equal(loaded.snapshots_.probabilities, model.snapshots_.probabilities)
