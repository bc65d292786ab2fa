"""Callbacks: when they are called, with what, and that they change nothing."""

import os

import numpy as np
import pytest
import torch

from ddclust import Callback, Selection, Snapshots
from ddclust.training.record import Outcome
from helpers import Stop, assert_same, interrupted_fit, quick


class Log(Callback):
    """Writes down every call; for runs in this process."""

    def __init__(self, calls, name="log"):
        self.calls, self.name = calls, name

    def note(self, event, run, *more):
        self.calls.append((self.name, event, run.index, run.iteration, run.epoch, *more))

    def on_run_begin(self, run):
        self.note("begin", run)

    def on_epoch_end(self, run, record):
        self.note("epoch", run, None if record is None else record["iteration"])
        assert record is None or record["epoch"] == run.epoch
        assert run.module.training

    def on_run_end(self, run):
        self.note("end", run, run.record.outcome, run.record.loss)

    def on_fit_end(self, model, kept):
        self.calls.append((self.name, "fit", len(kept), kept))


def test_the_order_of_calls(blobs):
    X, _ = blobs  # two batches in an epoch
    calls = []
    model = quick(n_init=2, max_iter=55, callbacks=[Log(calls)]).fit(X)
    for run in (0, 1):
        own = [call[1:] for call in calls if call[1] != "fit" and call[2] == run]
        assert own[0] == ("begin", run, 0, 0)
        epochs = [("epoch", run, 2 * e, e, 50 if e == 25 else None) for e in range(1, 28)]
        assert own[1:-1] == epochs  # the 28th did not end
        assert own[-1] == ("end", run, 55, 27, Outcome.BUDGET, model.runs_[run]["loss"])
    assert calls[-1] == ("log", "fit", 2, [{}, {}])
    assert [call[2] for call in calls if call[1] == "begin"] == [0, 1]


def test_several_callbacks_are_called_in_their_order(blobs):
    calls = []
    quick(max_iter=2, callbacks=(Log(calls, "a"), Log(calls, "b"))).fit(blobs[0])
    assert [call[:2] for call in calls] == [
        (name, event) for event in ("begin", "epoch", "end", "fit") for name in "ab"
    ]


def test_every_method_may_be_left_out(blobs):
    assert_same(quick(max_iter=5, callbacks=[Callback()]).fit(blobs[0]), quick(max_iter=5).fit(blobs[0]))


def test_a_failed_run_ends_too(blobs):
    calls = []
    with pytest.raises(ArithmeticError):
        quick(max_iter=20, learning_rate=1e30, callbacks=[Log(calls)]).fit(blobs[0])
    assert calls[-1][1] == "end"
    assert calls[-1][5] is Outcome.FAILED


def test_with_halving_a_run_goes_on_in_stages(blobs):
    calls = []
    model = quick(n_init=2, max_iter=80, selection=Selection(halving=True), callbacks=[Log(calls)]).fit(
        blobs[0]
    )
    survivor, loser = model.voters_[0], 1 - model.voters_[0]
    assert [call[3] for call in calls if call[1] == "begin" and call[2] == survivor] == [0, 10, 20, 40]
    assert [call[3] for call in calls if call[1] == "end" and call[2] == survivor] == [80]
    assert [call[3] for call in calls if call[1] == "epoch" and call[2] == survivor] == list(range(2, 81, 2))
    assert not [call for call in calls if call[1] == "end" and call[2] == loser]  # eliminated from outside


class Writes(Callback):
    """Writes a file for each run, in whatever process it is."""

    def __init__(self, folder):
        self.folder = folder

    def on_run_end(self, run):
        (self.folder / f"run-{run.index}").write_text(f"{os.getpid()} {run.record.loss!r}")


def test_in_worker_processes_too(blobs, tmp_path):
    model = quick(n_init=3, max_iter=10, n_jobs=2, callbacks=[Writes(tmp_path)]).fit(blobs[0])
    written = [(tmp_path / f"run-{run}").read_text().split() for run in range(3)]
    assert str(os.getpid()) not in {process for process, _ in written}
    assert [float(loss) for _, loss in written] == [run["loss"] for run in model.runs_]


class Draws(Callback):
    """Draws from torch's random state whenever it can, and looks at the network in evaluation mode."""

    def draw(self, run):
        torch.rand(7)
        torch.manual_seed(0)
        torch.randn(3)

    def on_run_begin(self, run):
        self.draw(run)

    def on_epoch_end(self, run, record):
        self.draw(run)

    def on_run_end(self, run):
        self.draw(run)


@pytest.mark.parametrize("augment", [None, "noise"])
def test_what_a_callback_draws_changes_nothing(blobs, augment):
    X, _ = blobs
    options = {"n_init": 2, "max_iter": 20, "augment": augment}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    watched = quick(**options, callbacks=[Draws()]).fit(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert_same(watched, quick(**options).fit(X))


class Keeps(Callback):
    """Keeps the bias of the output layer after each epoch, and gives it to the model."""

    keeps = True

    def on_run_begin(self, run):
        if run.iteration == 0:
            run.keep("bias.0", run.module.head.output.bias)

    def on_epoch_end(self, run, record):
        run.keep(f"bias.{run.epoch}", run.module.head.output.bias)

    def on_run_end(self, run):
        run.keep("end", torch.tensor([run.iteration, run.epoch]))

    def on_fit_end(self, model, kept):
        model.kept_ = kept


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_kept_comes_back_for_every_run(blobs, n_jobs):
    X, _ = blobs
    model = quick(n_init=3, n_vote=2, max_iter=10, n_jobs=n_jobs, callbacks=[Keeps()]).fit(X)
    assert len(model.kept_) == 3
    for run, module in zip(model.voters_, model.modules_, strict=True):
        kept = model.kept_[run]
        assert sorted(kept) == [*(f"bias.{epoch}" for epoch in range(6)), "end"]
        # Each is a copy of that moment, not the weights that training changes.
        assert not np.array_equal(kept["bias.1"], kept["bias.2"])
        assert np.array_equal(kept["bias.5"], module.head.output.bias.detach().numpy())
        assert kept["end"].tolist() == [10, 5]
    assert not np.array_equal(model.kept_[0]["bias.0"], model.kept_[0]["bias.5"])


@pytest.mark.parametrize("moment", [2, 7, 14, 21])
def test_what_is_kept_survives_being_killed(blobs, tmp_path, monkeypatch, moment):
    X, _ = blobs
    options = {"n_init": 2, "n_vote": 2, "max_iter": 10}
    undisturbed = quick(**options, callbacks=[Keeps()]).fit(X)
    interrupted_fit(quick(**options, callbacks=[Keeps()], checkpoint_dir=tmp_path), X, monkeypatch, moment)
    # Another object of the same class, as in another process.
    resumed = quick(**options, callbacks=[Keeps()], checkpoint_dir=tmp_path).fit(X)
    assert_same(resumed, undisturbed)
    for one, other in zip(resumed.kept_, undisturbed.kept_, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_resumed_run_begins_where_it_was(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    calls = []
    model = quick(max_iter=10, callbacks=[Log(calls)], checkpoint_dir=tmp_path)
    interrupted_fit(model, X, monkeypatch, 6)
    calls.clear()
    model.fit(X)
    assert calls[0] == ("log", "begin", 0, 4, 2)  # the first file was that of the neighbours
    assert [call[4] for call in calls if call[1] == "epoch"] == [3, 4, 5]


class Fails(Callback):
    def on_fit_end(self, model, kept):
        raise Stop


def test_an_error_in_a_callback_leaves_the_model_as_it_was(blobs):
    model = quick(max_iter=5, callbacks=[Fails()])
    with pytest.raises(Stop):
        model.fit(blobs[0])
    assert not hasattr(model, "labels_")


def test_callbacks_get_along(blobs):
    """Each finds what it kept, whatever others keep."""
    both = quick(max_iter=10, callbacks=[Keeps(), Snapshots([0, 5])]).fit(blobs[0])
    alone = quick(max_iter=10, callbacks=[Snapshots([0, 5])]).fit(blobs[0])
    assert np.array_equal(both.snapshots_.probabilities, alone.snapshots_.probabilities)
    assert "bias.3" in both.kept_[0]
