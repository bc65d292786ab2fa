"""Pairs and links in the objective, against the same worked out one by one."""

import numpy as np
import pytest
import torch
from torch import nn

from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.links import Links
from ddclust.networks import MLP
from ddclust.objective.augment import Noise
from ddclust.objective.loss import TERMS, DDCLoss
from ddclust.objective.objective import Objective
from ddclust.objective.pairs import Pairs, attraction, repulsion

NEIGHBORS = np.array([[1, 2], [2, 0], [0, 1], [4, 5], [5, 3], [3, 4], [7, 0], [6, 1]])
MUST, CANNOT = np.array([[0, 3], [1, 4], [2, 7]]), np.array([[5, 6], [0, 2]])


def links(must=(), cannot=()):
    return Links(*(np.array(pairs, dtype=np.intp).reshape(-1, 2) for pairs in (must, cannot)))


@pytest.fixture
def source(rng):
    X = rng.normal(size=(8, 5))
    return BatchSource(X, Scaling.of(X))


@pytest.fixture
def module():
    torch.manual_seed(0)
    return MLP((5,), 3).eval()  # in evaluation mode items have no influence on each other


INDICES = np.array([6, 0, 3, 5])


def evaluated(source, module, n_links=50, seed=4, weights=None, **pairs):
    objective = Objective(DDCLoss(weights=weights), Pairs(**pairs), source, n_links, n_iterations=10)
    torch.manual_seed(seed)
    terms, logits = objective.evaluated(module, source.batch(INDICES), INDICES)
    return terms, logits


def copies_of_batch(source, seed=4):
    """The augmented copies of the batch, as the seed has them."""
    torch.manual_seed(seed)
    return Noise(0.5)(source.batch(INDICES))


def test_without_pairs_it_is_the_loss(source, module):
    terms, logits = evaluated(source, module)
    hidden, expected = module(source.batch(INDICES))
    assert terms == DDCLoss()(hidden, expected.softmax(1))
    assert torch.equal(logits, expected)


def test_augmented_copies(source, module):
    terms, logits = evaluated(source, module, augment=Noise(0.5), weights={"pairs": 3.0})
    copies = copies_of_batch(source)
    (h, l), (h_copy, l_copy) = module(source.batch(INDICES)), module(copies)
    losses = DDCLoss()(h, l.softmax(1)), DDCLoss()(h_copy, l_copy.softmax(1))
    for name in TERMS:
        expected = (getattr(losses[0], name) + getattr(losses[1], name)) / 2
        torch.testing.assert_close(getattr(terms, name), expected)
    torch.testing.assert_close(terms.pairs, 3 * attraction(l, l_copy))
    torch.testing.assert_close(logits, l)
    assert terms._fields == ("divergence", "orthogonality", "corners", "pairs")


def test_with_both_an_item_is_paired_with_a_copy_of_the_item_or_of_a_neighbour(source, module):
    seen = set()

    def shifted(x):
        nearest = torch.cdist(x, source.batch(np.arange(8))).argmin(dim=1)
        seen.update(zip(INDICES.tolist(), nearest.tolist(), strict=True))
        return x + 0.5

    for seed in range(40):
        terms, own = evaluated(source, module, seed=seed, augment=shifted, neighbors=NEIGHBORS)
    assert seen == {(item, near) for item in INDICES.tolist() for near in (item, *NEIGHBORS[item].tolist())}

    torch.manual_seed(39)
    chosen = torch.randint(3, (4,)).tolist()
    paired = [(*NEIGHBORS[item], item)[choice] for item, choice in zip(INDICES, chosen, strict=True)]
    _, theirs = module(source.batch(np.array(paired)) + 0.5)
    torch.testing.assert_close(terms.pairs, attraction(own, theirs))


def test_every_neighbour_has_its_turn(source, module):
    seen = set()

    class Spy(nn.Module):
        def forward(self, x):
            nearest = torch.cdist(x[len(INDICES) :], source.batch(np.arange(8))).argmin(dim=1)
            seen.update(zip(INDICES.tolist(), nearest.tolist(), strict=True))
            return module(x)

    for seed in range(30):
        evaluated(source, Spy(), seed=seed, neighbors=NEIGHBORS)
    assert seen == {(item, near) for item in INDICES.tolist() for near in NEIGHBORS[item].tolist()}


def test_links_of_both_kinds(source, module):
    terms, _ = evaluated(
        source, module, links=links(MUST, CANNOT), weights={"must_link": 2.0, "cannot_link": 3.0}
    )
    _, l = module(source.batch(np.arange(8)))
    torch.testing.assert_close(terms.must_link, 2 * attraction(l[MUST[:, 0]], l[MUST[:, 1]]))
    torch.testing.assert_close(terms.cannot_link, 3 * repulsion(l[CANNOT[:, 0]], l[CANNOT[:, 1]]))
    plain, _ = evaluated(source, module)
    torch.testing.assert_close(tuple(terms)[:3], tuple(plain))


def test_with_copies_it_is_copies_that_are_linked(source, module):
    def doubled(x):
        return 2 * x

    terms, _ = evaluated(source, module, augment=doubled, links=links(MUST, CANNOT))
    l = module(2 * source.batch(np.arange(len(source))))[1]
    torch.testing.assert_close(terms.must_link, attraction(l[MUST[:, 0]], l[MUST[:, 1]]))
    torch.testing.assert_close(terms.cannot_link, repulsion(l[CANNOT[:, 0]], l[CANNOT[:, 1]]))


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_one_kind_of_links_has_one_term(source, module, kind):
    pairs = links(MUST) if kind == "must_link" else links((), CANNOT)
    terms, _ = evaluated(source, module, links=pairs)
    assert terms._fields == ("divergence", "orthogonality", "corners", kind)


def test_of_many_links_some_are_drawn(source, module):
    _, l = module(source.batch(np.arange(8)))
    single = {i: attraction(l[MUST[[i], 0]], l[MUST[[i], 1]]).item() for i in range(3)}
    drawn = [
        evaluated(source, module, n_links=1, seed=seed, links=links(MUST))[0].must_link.item()
        for seed in range(30)
    ]
    found = {min(single, key=lambda i: abs(single[i] - value)) for value in drawn}
    assert all(min(abs(value - one) for one in single.values()) < 1e-5 for value in drawn)
    assert found == {0, 1, 2}


def test_one_pass_of_the_network(source):
    passes = []

    class Counting(nn.Module):
        def forward(self, x):
            passes.append(len(x))
            return x, x[:, :3]

    evaluated(source, Counting(), augment=Noise(), neighbors=NEIGHBORS, links=links(MUST, CANNOT))
    assert passes == [2 * 4 + 2 * 3 + 2 * 2]


class Scheduled:
    """A loss of a user's own that changes in the course of training."""

    def __init__(self, log, pairs=1.0):
        self.log, self.weights = log, {"pairs": pairs}

    def at(self, progress):
        self.log.append(progress)
        return Scheduled(self.log, pairs=10 * progress)

    def __call__(self, hidden, assignments):
        return DDCLoss()(hidden, assignments)


def test_a_loss_of_a_user_s_own_is_asked_for_its_form_and_weights(source, module):
    log = []
    objective = Objective(Scheduled(log), Pairs(neighbors=NEIGHBORS), source, n_links=1, n_iterations=20)
    values = []
    for iteration in (0, 5, 19):
        torch.manual_seed(4)
        values.append(objective(module, source.batch(INDICES), INDICES, iteration).pairs.item())
    assert log == [0, 0.25, 0.95]
    torch.manual_seed(4)
    final = objective.evaluated(module, source.batch(INDICES), INDICES)[0].pairs.item()
    assert len(log) == 3  # judged by the final form, which is the loss itself
    assert values == pytest.approx([0, 2.5 * final, 9.5 * final])


def test_without_an_iteration_the_final_weights_count(source, module):
    loss = DDCLoss(start_weights={"orthogonality": 50, "pairs": 7})
    objective = Objective(loss, Pairs(neighbors=NEIGHBORS), source, n_links=1, n_iterations=30)
    x = source.batch(INDICES)

    def terms(iteration):
        torch.manual_seed(4)
        return objective.evaluated(module, x, INDICES, iteration)[0]

    torch.testing.assert_close(terms(0).orthogonality, 50 * terms(None).orthogonality)
    torch.testing.assert_close(terms(0).pairs, 7 * terms(None).pairs)
    torch.testing.assert_close(terms(5).pairs, 4 * terms(None).pairs)
    assert terms(10) == terms(29) == terms(None)


@pytest.mark.parametrize("neighbors", [None, NEIGHBORS])
def test_anchors_are_those_of_the_items_of_the_batch(source, module, neighbors):
    anchors = np.random.default_rng(3).dirichlet(np.ones(3), size=8).astype(np.float32)
    terms, logits = evaluated(source, module, anchors=anchors, neighbors=neighbors, weights={"anchor": 3.0})
    wanted, found = torch.from_numpy(anchors[INDICES]), logits.softmax(dim=1)
    assert terms.anchor.item() == pytest.approx(
        3 * (wanted * (wanted / found).log()).sum(dim=1).mean().item(), rel=1e-5
    )
    without, _ = evaluated(source, module, neighbors=neighbors)
    assert terms[: len(without)] == tuple(without)
