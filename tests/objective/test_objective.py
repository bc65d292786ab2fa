"""Partners and links in the objective, against the same worked out one by one."""

import numpy as np
import pytest
import torch
from torch import nn

from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.links import Links
from ddclust.networks import MLP
from ddclust.objective.augment import Noise
from ddclust.objective.loss import DDCLoss, attraction, repulsion
from ddclust.objective.pairs import Knowledge, Objective

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


def evaluated(source, module, n_links=50, seed=4, loss=None, **knowledge):
    objective = Objective(loss or DDCLoss(), Knowledge(**knowledge), source, n_links)
    torch.manual_seed(seed)
    terms, logits = objective.evaluated(module, source.batch(INDICES), INDICES)
    return terms, logits


def copies_of_batch(source, seed=4):
    """The changed copies of the batch, as the seed has them."""
    torch.manual_seed(seed)
    return Noise(0.5)(source.batch(INDICES))


def test_without_knowledge_it_is_the_loss(source, module):
    terms, logits = evaluated(source, module)
    hidden, expected = module(source.batch(INDICES))
    assert terms == DDCLoss()(hidden, expected.softmax(1))
    assert torch.equal(logits, expected)


def test_changed_copies(source, module):
    terms, logits = evaluated(source, module, augment=Noise(0.5), partner_weight=3.0)
    copies = copies_of_batch(source)
    (h, l), (h_copy, l_copy) = module(source.batch(INDICES)), module(copies)
    losses = DDCLoss()(h, l.softmax(1)), DDCLoss()(h_copy, l_copy.softmax(1))
    for name in DDCLoss().terms:
        expected = (getattr(losses[0], name) + getattr(losses[1], name)) / 2
        torch.testing.assert_close(getattr(terms, name), expected)
    torch.testing.assert_close(terms.partners, 3 * attraction(l, l_copy))
    torch.testing.assert_close(logits, l)
    assert terms._fields == ("divergence", "orthogonality", "corners", "partners")


def test_with_both_a_partner_is_a_copy_of_the_item_or_of_a_neighbour(source, module):
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
    partners = [(*NEIGHBORS[item], item)[choice] for item, choice in zip(INDICES, chosen, strict=True)]
    _, theirs = module(source.batch(np.array(partners)) + 0.5)
    torch.testing.assert_close(terms.partners, attraction(own, theirs))


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
    terms, _ = evaluated(source, module, links=links(MUST, CANNOT), link_weight=2.0)
    _, l = module(source.batch(np.arange(8)))
    torch.testing.assert_close(terms.must_link, 2 * attraction(l[MUST[:, 0]], l[MUST[:, 1]]))
    torch.testing.assert_close(terms.cannot_link, 2 * repulsion(l[CANNOT[:, 0]], l[CANNOT[:, 1]]))
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

    evaluated(
        source, Counting(), augment=Noise(), neighbors=NEIGHBORS, links=links(MUST, CANNOT), loss=DDCLoss()
    )
    assert passes == [2 * 4 + 2 * 3 + 2 * 2]
