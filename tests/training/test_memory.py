"""Memory that is kept between the steps of a training."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from ddclust.training.memory import freed_memory_kept
from ddclust.training.trainer import Trainer

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
LARGE = 64 * 2**20
PAGES = LARGE // resource.getpagesize()


def new_pages(times: int) -> int:
    """How many pages the system has to give for allocating and freeing a large block several times."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(LARGE // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_freed_block_is_used_again():
    assert new_pages(5) > 4 * PAGES
    with freed_memory_kept():
        new_pages(1)
        assert new_pages(5) < PAGES / 2
    assert new_pages(5) > 4 * PAGES


def test_memory_is_given_back_afterwards():
    before = resident_bytes()
    with freed_memory_kept():
        new_pages(1)
        assert resident_bytes() > before + LARGE / 2
    assert resident_bytes() < before + LARGE / 2


def test_it_is_given_back_after_an_error():
    with pytest.raises(ZeroDivisionError), freed_memory_kept():
        _ = 1 / 0
    assert new_pages(5) > 4 * PAGES


class Items(list):
    def batch(self, indices):
        return torch.ones(len(indices), 2)

    def order(self, rng):
        return rng.permutation(len(self))


class Terms(NamedTuple):
    square: Tensor


def test_training_keeps_memory():
    pages = []

    def objective(module, x, indices, iteration):
        pages.append(new_pages(1))
        return Terms(module(x).square().mean())

    Trainer(nn.Linear(2, 1), Items(range(10)), objective).advance(6)
    assert sum(pages[1:]) < PAGES / 2
