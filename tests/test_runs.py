import numpy as np
import pytest
import torch

from ddclust._runs import Plan, judge, rank_runs, run_restart
from ddclust.losses import DDCLoss
from ddclust.networks import MLP
from ddclust.sources import ArraySource, Scaling


@pytest.fixture
def plan(blobs):
    X, _ = blobs
    return Plan(
        source=ArraySource(X, Scaling.of(X)),
        network=MLP,
        n_clusters=3,
        loss=DDCLoss(),
        max_iter=30,
        tol=0.0,
        patience=None,
        batch_size=50,
        learning_rate=1e-3,
        device=torch.device("cpu"),
    )


def test_judgement_repeats_exactly_and_leaves_the_module_as_it_was(plan):
    torch.manual_seed(0)
    module = plan.build()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    first = judge(plan, module)
    assert judge(plan, module) == first
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_judgement_is_the_mean_of_the_batches(plan):
    torch.manual_seed(0)
    module = plan.build().eval()
    terms, used = judge(plan, module)
    order = np.random.default_rng(0).permutation(150)
    with torch.no_grad():
        outputs = [module(plan.source.batch(indices)) for indices in np.array_split(order, 3)]
        expected = np.mean([[t.item() for t in plan.loss(h, l.softmax(1))] for h, l in outputs], axis=0)
    assert list(terms.values()) == pytest.approx(expected.tolist(), rel=1e-5)
    assert used == len(np.unique(torch.cat([l.argmax(1) for _, l in outputs])))


def test_a_restart_repeats_exactly(plan):
    first, second = run_restart(plan, 0, 7), run_restart(plan, 0, 7)
    assert all(torch.equal(value, second.weights[name]) for name, value in first.weights.items())
    timeless = [
        {key: value for key, value in run.record.items() if key != "seconds"} for run in (first, second)
    ]
    assert timeless[0] == timeless[1]


def test_ranking():
    def record(loss, used):
        return {"loss": loss, "clusters_used": used}

    records = [record(0.9, 3), record(0.1, 2), record(None, 0), record(0.7, 3), record(0.05, 1)]
    # Full ones by loss, then collapsed ones by loss; the failed one not at all.
    assert rank_runs(records, 3) == [3, 0, 4, 1]
