import json
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import MLP
from ddclust.training.inference import NonFiniteOutputError, outputs
from ddclust.training.trainer import EarlyStopping, NonFiniteLossError, Trainer, split_batches


class Terms(NamedTuple):
    fit: torch.Tensor
    size: torch.Tensor


def objective(module, x, indices, iteration):
    """Something to minimise that has nothing to do with clustering."""
    return Terms(
        (module(x) - x.sum(dim=1, keepdim=True)).square().mean(), 1e-3 * module.weight.square().sum()
    )


def source(n=230, d=3):
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return BatchSource(X, Scaling((d,), np.zeros(()), np.ones(())))


def trainer(seed=0, n=230, **options):
    torch.manual_seed(seed)
    return Trainer(nn.Linear(3, 1), source(n), objective, seed=seed, learning_rate=1e-2, **options)


@pytest.mark.parametrize(
    ("n", "size"), [(2, 100), (3, 2), (100, 100), (101, 100), (230, 100), (7, 3), (70_000, 100)]
)
def test_batches_cover_everything_once_and_none_is_tiny(n, size):
    batches = split_batches(np.arange(n), size)
    assert np.array_equal(np.concatenate(batches), np.arange(n))
    assert min(map(len, batches)) >= 2
    assert max(map(len, batches)) <= max(size, 3)
    assert max(map(len, batches)) - min(map(len, batches)) <= 1


def test_every_epoch_visits_all_items_in_an_order_of_its_own():
    seen = []

    def spy(module, x, indices, iteration):
        seen.append(indices)
        assert iteration == len(seen) - 1
        return objective(module, x, indices, iteration)

    t = trainer()
    t.objective = spy
    t.advance(6)  # two epochs of three batches
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert sorted(first) == sorted(second) == list(range(230))
    assert not np.array_equal(first, second)


def test_history_has_every_term_averaged():
    t = trainer(n=6000)  # 60 batches an epoch
    losses = []
    t.advance(120, on_step=lambda _, loss: losses.append(loss))
    assert [record["epoch"] for record in t.history] == [1, 2]
    assert [record["iteration"] for record in t.history] == [60, 120]
    assert set(t.history[0]) == {"epoch", "iteration", "loss", "fit", "size"}
    assert t.history[0]["loss"] == pytest.approx(np.mean(losses[:60]), rel=1e-5)
    assert t.history[1]["loss"] == pytest.approx(t.history[1]["fit"] + t.history[1]["size"])


def test_records_on_small_data_span_at_least_fifty_iterations():
    t = trainer()  # three batches an epoch
    t.advance(200)
    t.close_record()
    assert [record["iteration"] for record in t.history] == [51, 102, 153, 200]


def test_budget_is_kept_to_the_iteration():
    t = trainer()
    assert t.advance(7) == "budget"
    assert t.iteration == 7


def test_convergence_ends_a_run_early():
    t = trainer()
    assert t.advance(10**5, early_stopping=EarlyStopping(patience=3, tol=1e-3)) == "converged"
    assert t.iteration < 5000


def test_without_early_stopping_it_never_converges():
    t = trainer()
    t.objective = lambda module, x, indices, iteration: Terms(
        module(x).sum() * 0, module.weight.sum() * 0 + 1
    )
    assert t.advance(700) == "budget"
    t = trainer()
    t.objective = lambda module, x, indices, iteration: Terms(
        module(x).sum() * 0, module.weight.sum() * 0 + 1
    )
    assert t.advance(700, early_stopping=EarlyStopping(patience=2)) == "converged"
    assert t.iteration == 3 * 51


def test_early_stopping_waits_until_the_objective_has_settled():
    """The record that was open when it settled does not count either."""
    t = trainer()
    t.objective = lambda module, x, indices, iteration: Terms(
        module(x).sum() * 0, module.weight.sum() * 0 + 1
    )
    assert t.advance(2000, early_stopping=EarlyStopping(patience=2), settled=230) == "converged"
    assert [record["iteration"] for record in t.history] == [51, 102, 153, 204, 255, 306, 357, 408]


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5, 4, 3], False),  # no more than patience records
        ([5, 4, 4, 4, 4], True),
        ([5, 4, 4, 4, 3.9], False),
        ([5, 4, 4, 4, 3.97], True),  # less than a hundredth
        ([-4, -4, -4, -4, -4.1], False),
    ],
)
def test_when_losses_have_stopped_falling(losses, expected):
    assert EarlyStopping(patience=3, tol=0.01).has_converged(losses) is expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0}, "patience must be a whole number of at least 1, got 0"),
        ({"patience": 2.5}, "patience must be a whole number .* got 2.5"),
        ({"tol": -1}, "tol must be a non-negative number, got -1"),
        ({"tol": float("nan")}, "tol must be"),
    ],
)
def test_wrong_early_stopping_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        EarlyStopping(**options)


def test_a_step_s_observer_sees_the_trainer_and_can_stop_it():
    seen = []

    def observe(t, loss):
        if t.history and t.history[-1]["iteration"] == t.iteration:
            seen.append((t.iteration, t.history[-1]["loss"]))
        return len(seen) == 2

    t = trainer()
    assert t.advance(1000, on_step=observe) == "stopped"
    assert [iteration for iteration, _ in seen] == [51, 102]
    assert t.iteration == 102


def test_a_scheduled_rate_is_that_of_the_iteration():
    rates = []
    torch.manual_seed(0)
    t = Trainer(nn.Linear(3, 1), source(), objective, learning_rate=lambda iteration: 0.1 / (iteration + 1))
    t.advance(3, on_step=lambda t, _: rates.append(t.optimizer.param_groups[0]["lr"]))
    assert rates == [0.1, 0.05, 0.1 / 3]


def test_restored_trainer_goes_on_exactly():
    whole, part = trainer(), trainer()
    whole.advance(130)
    part.advance(71)  # in the middle of an epoch and of a record
    tensors, plain = part.state()
    fresh = trainer(seed=0)
    fresh.restore({name: value.clone() for name, value in tensors.items()}, plain)
    fresh.advance(130)
    assert torch.equal(fresh.module.weight, whole.module.weight)
    assert fresh.history == whole.history
    assert fresh.state()[1] == whole.state()[1]


def test_a_state_saved_after_any_step_leads_to_the_same_end():
    options = {"early_stopping": EarlyStopping(patience=2, tol=0.05)}
    whole, states = trainer(), []

    def save(t, loss):
        tensors, plain = t.state()
        states.append(
            ({name: value.clone() for name, value in tensors.items()}, json.loads(json.dumps(plain)))
        )

    ending = whole.advance(2000, on_step=save, **options)
    assert ending == "converged"
    assert len(states) > 150
    for iteration in {1, 50, 51, 52, 102, 103, whole.iteration - 1, whole.iteration}:
        resumed = trainer()
        resumed.restore(*states[iteration - 1])
        assert resumed.advance(2000, **options) == ending
        assert resumed.history == whole.history
        assert torch.equal(resumed.module.weight, whole.module.weight)


def test_non_finite_input_is_named():
    t = trainer()
    t.source.items[17] = np.nan
    with pytest.raises(NonFiniteLossError, match=r"iteration [123]: the input batch holds NaN"):
        t.advance(10)


def test_diverged_weights_are_named():
    t = trainer()
    t.advance(4)
    with torch.no_grad():
        t.module.weight.fill_(float("inf"))
    with pytest.raises(NonFiniteLossError, match=r"iteration 5: the weights .* learning_rate=0.01"):
        t.advance(10)


def test_a_broken_loss_is_named():
    t = trainer()
    t.objective = lambda module, x, *_: Terms(module(x).mean() * 0, module(x).mean() / 0)
    with pytest.raises(NonFiniteLossError, match="iteration 1: .* the loss term size is not"):
        t.advance(10)


def test_outputs_do_not_depend_on_the_company():
    torch.manual_seed(0)
    module = MLP((3,), 4)
    whole = source(700)
    together = torch.cat([logits for _, _, logits in outputs(module, whole)])
    for start, stop in [(0, 1), (5, 8), (100, 555), (699, 700)]:
        part = BatchSource(whole.items[start:stop], whole.scaling)
        alone = torch.cat([logits for _, _, logits in outputs(module, part)])
        assert torch.equal(alone, together[start:stop])


def test_output_that_is_not_finite_names_the_item():
    data = source(300)
    data.items[280] = 3e38
    with pytest.raises(NonFiniteOutputError, match="item 280"):
        list(outputs(MLP((3,), 4), data))
