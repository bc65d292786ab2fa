from dataclasses import replace

import numpy as np
import pytest
import torch

from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import MLP, ConvNet
from ddclust.objective.losses import DDCLoss
from ddclust.training.checkpoints import RunStore
from ddclust.training.run import Plan, SnapshotPlan, advance_run, judge, rank_runs, stages


@pytest.fixture
def X(blobs):  # noqa: N802
    return blobs[0]


@pytest.fixture
def source(X):
    return BatchSource(X, Scaling.of(X))


@pytest.fixture
def plan(X):
    return Plan(
        scaling=Scaling.of(X),
        network=MLP,
        n_clusters=3,
        loss=DDCLoss(),
        max_iter=30,
        tol=0.0,
        patience=None,
        batch_size=50,
        learning_rate=1e-3,
        device=torch.device("cpu"),
        threads=1,
    )


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
    terms, used = judge(plan, module, source)
    order = np.random.default_rng(0).permutation(150)
    with torch.no_grad():
        outputs = [module(source.batch(indices)) for indices in np.array_split(order, 3)]
        expected = np.mean([[t.item() for t in plan.loss(h, l.softmax(1))] for h, l in outputs], axis=0)
    assert list(terms.values()) == pytest.approx(expected.tolist(), rel=1e-5)
    assert used == len(np.unique(torch.cat([l.argmax(1) for _, l in outputs])))


def timeless(state):
    return {key: value for key, value in state.record.items() if key not in ("seconds", "saves")}


def same(first, second):
    assert first.tensors.keys() == second.tensors.keys()
    assert all(torch.equal(value, second.tensors[name]) for name, value in first.tensors.items())
    assert timeless(first) == timeless(second)


def test_a_run_repeats_exactly(X, plan):
    same(advance_run(X, plan, 0, 7, 30), advance_run(X, plan, 0, 7, 30))


@pytest.mark.parametrize("network", [MLP, ConvNet])
def test_stages_lead_to_the_same_end_as_one_run(X, plan, network, images):
    if network is ConvNet:
        X, plan = images, replace(plan, network=ConvNet, scaling=Scaling.of(images), n_clusters=2)
    whole = advance_run(X, plan, 0, 7, 30)
    first = advance_run(X, plan, 0, 7, 11)
    assert first.record["outcome"] == "running"
    assert first.record["n_iter"] == 11
    last = advance_run(X, plan, 0, 7, 30, first)
    assert list(last.record["rungs"]) == ["11", "30"]
    same(whole, last._replace(record=last.record | {"rungs": whole.record["rungs"]}))


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
    assert state.record["outcome"] == "interrupted"
    assert state.record["n_iter"] == 9
    assert np.isfinite(state.record["loss"])


def test_ranking():
    def record(loss, used, outcome="budget"):
        return {"loss": loss, "clusters_used": used, "outcome": outcome}

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


def test_stages_halve_but_keep_enough():
    assert stages(4, 1, 100, eliminate=True) == [(13, 4), (25, 2), (50, 1), (100, 1)]
    assert stages(5, 3, 100, eliminate=True) == [(13, 5), (25, 3), (50, 3), (100, 3)]
    assert stages(1, 1, 1, eliminate=True) == [(1, 1)] * 4


def snapshots_of(state):
    return {name: value for name, value in state.tensors.items() if name.startswith("snapshot.")}


def test_looking_changes_nothing(X, plan):
    looking = replace(plan, snapshots=SnapshotPlan((0, 2, 5), np.arange(0, 150, 7)))  # three batches an epoch
    blind, seeing = advance_run(X, plan, 0, 7, 30), advance_run(X, looking, 0, 7, 30)
    taken = snapshots_of(seeing)
    assert sorted(taken) == ["snapshot.0", "snapshot.2", "snapshot.5"]
    assert {tuple(t.shape) for t in taken.values()} == {(22, 3)}
    rest = {name: value for name, value in seeing.tensors.items() if name not in taken}
    same(blind, seeing._replace(tensors=rest))


@pytest.mark.parametrize("cut", [1, 5, 6, 7, 15, 29])
def test_snapshots_survive_a_checkpoint(X, plan, tmp_path, cut):
    """Killed at any iteration, also at that of a snapshot, the run ends with all of them."""
    looking = replace(plan, snapshots=SnapshotPlan((0, 2, 5, 10), np.arange(150)))
    undisturbed = advance_run(X, looking, 0, 7, 30)

    class StopAt:
        seen = 0

        def report(self, run, iteration, loss):
            self.seen = iteration

        def should_stop(self):
            return self.seen == cut

    store = RunStore(tmp_path)
    assert advance_run(X, looking, 0, 7, 30, store=store, monitor=StopAt()).record["outcome"] == "interrupted"
    resumed = advance_run(X, looking, 0, 7, 30, store=RunStore(tmp_path))
    assert len(snapshots_of(resumed)) == 4
    same(undisturbed, resumed)
    same(undisturbed, store.load(0))


def test_a_run_that_diverges_says_so_though_it_is_watched(X, plan):
    wild = replace(plan, learning_rate=1e30, snapshots=SnapshotPlan(tuple(range(10)), np.arange(150)))
    state = advance_run(X, wild, 0, 7, 30)
    assert state.record["outcome"] == "failed"
    assert "not finite" in state.record["error"]
