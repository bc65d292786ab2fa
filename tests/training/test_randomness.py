"""Torch's threads and random state in unusual processes."""

import subprocess
import sys

import pytest

FORKED_FIT = """
import multiprocessing, warnings
import numpy as np, torch
from ddclust import DDC

warnings.simplefilter("ignore")
torch.set_num_threads(2)
wide = torch.ones(500, 500)
wide @ wide  # starts the threads
X = np.random.default_rng(0).normal(size=(300, 64))

def fit(seed):
    return DDC(2, n_init=1, n_vote=1, max_iter=2, n_final=None, random_state=seed).fit(X).predict(X)

with multiprocessing.get_context("fork").Pool(2) as pool:
    labels = pool.map(fit, [0, 0])
assert np.array_equal(*labels)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are not forked elsewhere")
def test_a_forked_process_fits_although_torch_had_threads_before():
    subprocess.run([sys.executable, "-c", FORKED_FIT], check=True, timeout=120)
