"""Memory that is kept between the steps of a training, in a process without other tests."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")

SCRIPT = """
import json
import resource
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ddclust.training.memory import freed_memory_kept
from ddclust.training.trainer import Trainer

LARGE = 64 * 2**20


def new_pages(times):
    '''How many pages the system gives for allocating and freeing a large block several times, as shares of a block.'''
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(LARGE // 4)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return (after - before) * resource.getpagesize() / LARGE


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / LARGE


class Items(list):
    def batch(self, indices):
        return torch.ones(len(indices), 2)

    def order(self, rng):
        return rng.permutation(len(self))


class Terms(NamedTuple):
    square: Tensor


in_training = []


def objective(module, x, indices, iteration):
    in_training.append(new_pages(1))
    return Terms(module(x).square().mean())


new_pages(1)
found = {"outside": new_pages(5), "resident before": resident()}
try:
    with freed_memory_kept():
        new_pages(20)  # until aligned blocks have found their places
        found |= {"inside": new_pages(5), "resident inside": resident()}
        1 / 0
except ZeroDivisionError:
    found["resident afterwards"] = resident()
Trainer(nn.Linear(2, 1), Items(range(10)), objective).advance(25)
found["in training"] = sum(in_training[20:])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_freed_block_is_used_again(found):
    assert found["outside"] > 4
    assert found["inside"] < 0.5


def test_memory_is_given_back_after_an_error_too(found):
    assert found["resident inside"] > found["resident before"] + 0.5
    assert found["resident afterwards"] < found["resident before"] + 0.5


def test_training_keeps_memory(found):
    assert found["in training"] < 0.5
