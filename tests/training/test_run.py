import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ddclust import ConstantRate, Network, Snapshots
from ddclust.data.batches import BatchSource, Scaling
from ddclust.objective.loss import DDCLoss
from ddclust.training.checkpoints import RunStore
from ddclust.training.inference import outputs
from ddclust.training.record import Outcome
from ddclust.training.run import advance_run, judge, stages
from helpers import assert_same, plan_of, quick


@pytest.fixture
def X(blobs):  # noqa: N802
    return blobs[0]


@pytest.fixture
def source(X):
    return BatchSource(X, Scaling.of(X))


@pytest.fixture
def plan(X):
    return plan_of(X)


def test_judgement_repeats_exactly_and_leaves_the_module_as_it_was(plan, source):
    torch.manual_seed(0)
    module = plan.build()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    first = judge(plan, module, source)
    assert judge(plan, module, source) == first
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_judgement_is_the_mean_of_the_batches(plan, source):
    torch.manual_seed(0)
    module = plan.build().eval()
    terms, used, _ = judge(plan, module, source)
    order = np.random.default_rng(0).permutation(150)
    with torch.no_grad():
        outputs = [module(source.batch(indices)) for indices in np.array_split(order, 3)]
        expected = np.mean([[t.item() for t in plan.setup.loss(h, l.softmax(1))] for h, l in outputs], axis=0)
    assert list(terms.values()) == pytest.approx(expected.tolist(), rel=1e-5)
    assert used == len(np.unique(torch.cat([l.argmax(1) for _, l in outputs])))


def timeless(state):
    return replace(state.record, seconds=0, saves=0)


def same(first, second):
    assert first.tensors.keys() == second.tensors.keys()
    assert all(torch.equal(value, second.tensors[name]) for name, value in first.tensors.items())
    assert timeless(first) == timeless(second)


def test_a_run_repeats_exactly(X, plan):
    same(advance_run(X, plan, 0, 7, 30), advance_run(X, plan, 0, 7, 30))


@pytest.mark.parametrize("network", ["mlp", "conv"])
def test_stages_lead_to_the_same_end_as_one_run(X, plan, network, images):
    if network == "conv":
        X, plan = images, plan_of(images, n_clusters=2, network=Network("conv"))
    whole = advance_run(X, plan, 0, 7, 30)
    first = advance_run(X, plan, 0, 7, 11)
    assert first.record.outcome is Outcome.RUNNING
    assert first.record.n_iter == 11
    last = advance_run(X, plan, 0, 7, 30, first)
    assert list(last.record.losses_at) == [11, 30]
    same(whole, last._replace(record=replace(last.record, losses_at=whole.record.losses_at)))


def test_a_run_that_has_ended_is_left_alone(X, plan):
    ended = advance_run(X, plan, 0, 7, 30)
    assert advance_run(X, plan, 0, 7, 30, ended) is ended


def test_threads_are_the_caller_s_again(X, plan):
    torch.set_num_threads(2)
    try:
        advance_run(X, plan, 0, 7, 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_stop_ends_a_run_gently(X, plan):
    class Monitor:
        seen = 0

        def report(self, run, iteration, loss):
            self.seen = iteration

        def should_stop(self):
            return self.seen == 9

    state = advance_run(X, plan, 0, 7, 30, monitor=Monitor())
    assert state.record.outcome is Outcome.INTERRUPTED
    assert state.record.n_iter == 9
    assert np.isfinite(state.record.loss)


def test_stages_halve_but_keep_enough():
    assert stages(4, 1, 100, halving=True) == [(13, 4), (25, 2), (50, 1), (100, 1)]
    assert stages(5, 3, 100, halving=True) == [(13, 5), (25, 3), (50, 3), (100, 3)]
    assert stages(1, 1, 1, halving=True) == [(1, 1)] * 4


def snapshots_of(state):
    return {name: value for name, value in state.tensors.items() if name.startswith("kept.snapshot.")}


def test_looking_changes_nothing(X, plan):
    looking = replace(plan, callbacks=(Snapshots((0, 2, 5)),))  # three batches an epoch
    blind, seeing = advance_run(X, plan, 0, 7, 30), advance_run(X, looking, 0, 7, 30)
    taken = snapshots_of(seeing)
    assert sorted(taken) == ["kept.snapshot.0", "kept.snapshot.2", "kept.snapshot.5"]
    assert {tuple(t.shape) for t in taken.values()} == {(150, 3)}
    rest = {name: value for name, value in seeing.tensors.items() if name not in taken}
    same(blind, seeing._replace(tensors=rest))


@pytest.mark.parametrize("cut", [1, 5, 6, 7, 15, 29])
def test_snapshots_survive_a_checkpoint(X, plan, tmp_path, cut):
    """Killed at any iteration, also at that of a snapshot, the run ends with all of them."""
    looking = replace(plan, callbacks=(Snapshots((0, 2, 5, 10)),))
    undisturbed = advance_run(X, looking, 0, 7, 30)

    class StopAt:
        seen = 0

        def report(self, run, iteration, loss):
            self.seen = iteration

        def should_stop(self):
            return self.seen == cut

    store = RunStore(tmp_path)
    stopped = advance_run(X, looking, 0, 7, 30, store=store, monitor=StopAt())
    assert stopped.record.outcome is Outcome.INTERRUPTED
    resumed = advance_run(X, looking, 0, 7, 30, store=RunStore(tmp_path))
    assert len(snapshots_of(resumed)) == 4
    same(undisturbed, resumed)
    same(undisturbed, store.load(0))


def test_a_run_that_diverges_says_so_though_it_is_watched(X):
    wild = plan_of(X, callbacks=(Snapshots(range(10)),), learning_rate=ConstantRate(1e30))
    state = advance_run(X, wild, 0, 7, 30)
    assert state.record.outcome is Outcome.FAILED
    assert "not finite" in state.record.error


def test_a_run_that_need_not_begin_is_waiting(X, plan):
    class Stopped:
        def report(self, run, iteration, loss):
            raise AssertionError

        def should_stop(self):
            return True

    state = advance_run(X, plan, 2, 7, 30, monitor=Stopped())
    assert (state.record.run, state.record.seed, state.record.outcome) == (2, 7, Outcome.WAITING)
    assert not state.tensors


def test_early_stopping_waits_until_the_loss_has_settled(X):
    from ddclust import EarlyStopping

    impatient = {"max_iter": 600, "early_stopping": EarlyStopping(patience=1, tol=0.9)}
    sized = DDCLoss(cluster_sizes=(1, 1, 1))
    plain, waiting = (
        advance_run(X, plan_of(X, loss=loss, **impatient), 0, 7, 600) for loss in (DDCLoss(), sized)
    )
    assert (plain.record.outcome, plain.record.n_iter) == (Outcome.CONVERGED, 2 * 51)
    # 200 iterations of change; the record that ends at 204 is of both, so those that end at 255 and 306 count.
    assert (waiting.record.outcome, waiting.record.n_iter) == (Outcome.CONVERGED, 306)


class Counting(torch.nn.Module):
    """A network that counts the items that pass through it in evaluation."""

    seen = 0

    def __init__(self, input_shape, n_clusters):
        super().__init__()
        self.network = Network("mlp")(input_shape, n_clusters)

    def forward(self, x):
        Counting.seen += 0 if self.training else len(x)
        return self.network(x)


def test_judging_and_labelling_share_one_pass(X, monkeypatch):
    """After training every item passes once through the network, and never again for labels or for what is known of items."""
    options = {"network": Counting, "augment": None, "neighbors": None}
    first = quick(**options).fit(X)  # also tries the network out on two items
    padded = 256 * math.ceil(len(X) / 256)
    Counting.seen = 0
    model = quick(**options).fit(X)
    assert Counting.seen == 2 + padded
    monkeypatch.setattr("ddclust.training.run.MOST_OUTPUT_BYTES", 0)
    Counting.seen = 0
    again = quick(**options).fit(X)
    assert Counting.seen == 2 + 2 * padded
    for other in (first, again):
        assert_same(model, other)
        assert np.array_equal(model.known_items_.means, other.known_items_.means)
    assert np.array_equal(model.predict_proba(X), model.probabilities_)


def test_outputs_of_the_judged_batches_are_those_of_rows_in_turn(plan, source):
    torch.manual_seed(0)
    module = plan.build().eval()
    kept = judge(plan, module, source, keeps_outputs=True).outputs
    with torch.inference_mode():
        found = [(hidden, logits.softmax(1)) for _, hidden, logits in outputs(module, source)]
    hidden, assignments = (torch.cat(parts).numpy() for parts in zip(*found, strict=True))
    assert np.array_equal(kept.assignments, assignments)
    assert np.array_equal(kept.hidden, hidden)
    assert judge(plan, module, source).outputs is None


def test_outputs_are_not_kept_of_weighted_items(X, source):
    plan = replace(plan_of(X), weights=np.linspace(0.5, 1.5, len(X)))
    torch.manual_seed(0)
    assert judge(plan, plan.build(), plan.source(X), keeps_outputs=True).outputs is None
