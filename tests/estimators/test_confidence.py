"""What a fitted model says of its own certainty: calibration, agreement of the runs, and items that it refuses."""

import numpy as np
import pytest

from ddclust import DDC
from ddclust.choosing.calibration import Calibration
from ddclust.choosing.consensus import combine
from helpers import quick


@pytest.fixture(scope="module")
def overlapping():
    """Three groups that no run parts in the same way."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(centre, 1.0, size=(50, 2)) for centre in ((0, 0), (2, 0), (0, 2))])


@pytest.fixture(scope="module")
def model(overlapping):
    return quick(3, n_init=3, n_final=None, max_iter=100, learning_rate=3e-3).fit(overlapping)


def test_confidence_is_lower_and_labels_are_the_same(model, overlapping):
    assert model.calibration_.basis == "runs"
    assert model.calibration_.temperature > 1
    vote, raw = combine(model.member_probabilities(overlapping))
    assert np.array_equal(vote.labels, model.labels_)
    assert np.array_equal(model.probabilities_.argmax(axis=1), model.labels_)
    assert model.probabilities_.max(axis=1).mean() < raw.max(axis=1).mean()


def test_the_same_for_one_item_and_for_many(model, overlapping):
    assert np.array_equal(model.predict_proba(overlapping), model.probabilities_)
    singly = np.concatenate([model.predict_proba(x[None]) for x in overlapping[:30]])
    assert np.array_equal(singly, model.probabilities_[:30])
    refused = model.predict(overlapping, reject=0.2)
    assert np.array_equal([model.predict(x[None], reject=0.2)[0] for x in overlapping[:30]], refused[:30])


def test_agreement_is_that_of_all_runs(model):
    assert len(model.voters_) == 1
    assert set(np.round(3 * model.agreement_)) <= {1, 2, 3}
    assert (model.agreement_ < 1).any()
    assert np.isnan(model.vote([[0.0, 0.0]])[0].agreement).all()  # by the one network that is kept


def test_one_run_has_no_agreement_and_is_calibrated_by_copies(overlapping):
    alone = quick(3, max_iter=100).fit(overlapping)
    assert np.isnan(alone.agreement_).all()
    assert alone.calibration_.basis == "copies"
    paper = quick(3, max_iter=20, augment=None, neighbors=None, n_final=None).fit(overlapping)
    assert paper.calibration_ == Calibration()


def test_networks_of_a_simple_method_are_judged_by_halves_of_the_items(overlapping):
    learnt = quick(3, n_init=2, anchor="auto", max_iter=100).fit(overlapping)
    assert learnt.setup_.anchor is not None
    assert learnt.calibration_.basis == "halves"
    assert len(learnt.agreement_) == len(overlapping)
    assert 0 < (learnt.agreement_ < 1).mean() < 0.8
    apart = overlapping + 30 * np.repeat([[0, 0], [1, 0], [0, 1]], 50, axis=0)
    clear = quick(3, anchor="auto", max_iter=100).fit(apart)
    assert (clear.agreement_ == 1).all()
    assert clear.probabilities_.max(axis=1).mean() > learnt.probabilities_.max(axis=1).mean()


def test_unknown_items_are_refused(model, overlapping):
    strange = [[30.0, -40.0], [1e4, 1e4]]
    assert (model.predict(strange) >= 0).all()
    assert model.predict(strange, reject=0.05).tolist() == [-1, -1]
    labels = model.predict(overlapping, reject=0.1)
    assert 0.02 < (labels == -1).mean() < 0.15
    kept = labels >= 0
    assert np.array_equal(labels[kept], model.labels_[kept])
    assert model.probabilities_.max(axis=1)[kept].mean() > model.probabilities_.max(axis=1)[~kept].mean()
    assert np.array_equal(model.predict(overlapping, reject=0), model.labels_)


@pytest.mark.parametrize("reject", [-0.1, 1.0, float("nan")])
def test_reject_is_a_share(model, overlapping, reject):
    with pytest.raises(ValueError, match="must be a share of items"):
        model.predict(overlapping, reject=reject)


def test_all_of_it_is_saved(model, overlapping, tmp_path):
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    assert loaded.calibration_ == model.calibration_
    assert np.array_equal(loaded.predict_proba(overlapping), model.probabilities_)
    assert np.array_equal(loaded.predict(overlapping, reject=0.1), model.predict(overlapping, reject=0.1))
    assert np.array_equal(loaded.agreement_, model.agreement_)
    quick(3, max_iter=5).fit(overlapping).save(tmp_path / "alone")
    assert np.isnan(DDC.load(tmp_path / "alone").agreement_).all()


def test_plain_images_and_noise_are_refused():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, size=(80, 8, 8), dtype=np.uint8)
    images[:40, :, :4] += 150
    images[40:, :4, :] += 150
    model = quick(2, n_init=2, max_iter=60).fit(images)
    strange = np.stack([np.full((8, 8), 250), np.zeros((8, 8)), rng.integers(0, 256, size=(8, 8))])
    assert model.predict(strange.astype(np.uint8), reject=0.05).tolist() == [-1, -1, -1]
