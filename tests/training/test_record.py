"""Records of runs: what they say, and that files keep them."""

import json

import pytest

from ddclust.training.record import Outcome, RunRecord

FINAL = {Outcome.CONVERGED, Outcome.BUDGET, Outcome.ELIMINATED, Outcome.FAILED}
UNFINISHED = {Outcome.WAITING, Outcome.INTERRUPTED}


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes(outcome):
    assert outcome.is_final == (outcome in FINAL)
    assert outcome.is_unfinished == (outcome in UNFINISHED)
    assert Outcome(str(outcome)) is outcome
    assert json.loads(json.dumps(outcome)) == outcome.value


def full_record():
    return RunRecord(
        run=3,
        seed=12345,
        outcome=Outcome.CONVERGED,
        error="none really",
        loss=0.1 + 0.2,
        terms={"divergence": 1e-17, "pairs": 0.3},
        n_iter=70,
        clusters_used=4,
        seconds=1.5,
        losses_at={10: 0.5, 70: 0.1 + 0.2},
        history=[{"epoch": 1.0, "iteration": 70, "loss": 0.4}],
        saves=7,
        agreement=0.9,
    )


@pytest.mark.parametrize("record", [full_record(), RunRecord(0, 1)], ids=["full", "new"])
def test_a_record_survives_json(record):
    again = RunRecord.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False)))
    assert again == record
    assert type(again.outcome) is Outcome
    assert all(type(iteration) is int for iteration in again.losses_at)


def test_a_copy_shares_nothing():
    record = full_record()
    copy = RunRecord.from_dict(record.to_dict())
    copy.losses_at[99] = 0.0
    copy.terms["divergence"] = 9.0
    copy.history.append({})
    copy.history[0]["loss"] = 9.0
    assert record == full_record()


def test_what_users_see():
    public = full_record().public()
    assert "saves" not in public
    assert public["agreement"] == 0.9
    assert public["outcome"] == "converged"
    assert type(public["outcome"]) is str
    assert public["losses_at"] == {"10": 0.5, "70": 0.1 + 0.2}
    assert "agreement" not in RunRecord(0, 1).public()
    # What is read from runs_ is a record again.
    assert RunRecord.from_dict(public).loss == full_record().loss


@pytest.mark.parametrize(
    ("outcome", "loss", "expected"),
    [
        (Outcome.BUDGET, 0.5, True),
        (Outcome.CONVERGED, 0.5, True),
        (Outcome.INTERRUPTED, 0.5, True),  # the best so far is kept
        (Outcome.WAITING, None, False),
        (Outcome.ELIMINATED, 0.5, False),
        (Outcome.FAILED, None, False),
        (Outcome.FAILED, 0.5, False),  # judged well before it failed
    ],
)
def test_which_runs_can_be_chosen(outcome, loss, expected):
    assert RunRecord(0, 1, outcome=outcome, loss=loss).is_usable is expected


def test_the_loss_at_an_iteration():
    record = full_record()
    assert record.judged_loss(10) == 0.5
    assert record.judged_loss(40) == record.loss  # it had converged before
    assert RunRecord(0, 1).judged_loss(10) == float("inf")
