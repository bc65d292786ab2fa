"""How time and memory grow with the number of items and with the batch size, and what saving costs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load, load_file, save_file

from ddclust import DDC, DDCLoss
from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import ConvNet
from ddclust.saving import describe
from ddclust.training.trainer import Trainer
from lab.benchmarks.measure import PEAK, ratio, seconds, summary

ITEMS = (2_000, 4_000, 8_000, 16_000)
BATCHES = (1_000, 2_000, 4_000, 8_000)
WORKSPACE_MB = 1024
# Peak memory of a loss with its gradient beyond what torch needs anyway.
LOSS = f"""{PEAK}
import sys, torch
from ddclust import DDCLoss
def step(m):
    hidden = torch.randn(m, 100, requires_grad=True)
    logits = torch.randn(m, 10, requires_grad=True)
    sum(DDCLoss()(hidden, logits.softmax(dim=1))).backward()
step(200)
before = peak()
step(int(sys.argv[1]))
print(peak() - before)
"""


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """The slope of the line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def objective(loss):
    def terms(module, x, indices, iteration):
        hidden, logits = module(x)
        return loss(hidden, logits.softmax(dim=1))

    return terms


def time_of_an_epoch() -> list[dict]:
    """An epoch of the conv network for each number of items, all in turns."""
    X = np.random.default_rng(0).integers(0, 255, size=(max(ITEMS), 28, 28), dtype=np.uint8)
    network = ConvNet((1, 28, 28), 10)
    scaling = Scaling.of(X)

    def epoch(n):
        trainer = Trainer(network, BatchSource(X[:n], scaling), objective(DDCLoss()))
        return seconds(lambda: trainer.advance(n // 100))

    epoch(ITEMS[0])
    rounds = [[epoch(n) for n in ITEMS] for _ in range(5)]
    return [
        {
            "what": f"exponent of the time of an epoch in the number of items ({ITEMS[0]:,} to {ITEMS[-1]:,})",
            "target": "1",
            **summary([exponent(ITEMS, times) for times in rounds]),
        },
        {
            "what": f"time of an epoch, {ITEMS[-1]:,} items / {ITEMS[0]:,} items",
            "target": f"{ITEMS[-1] / ITEMS[0]:g}",
            **summary([times[-1] / times[0] for times in rounds]),
        },
    ]


def workspace(m: int) -> float:
    return float(subprocess.check_output([sys.executable, "-c", LOSS, str(m)], text=True))


def memory_of_a_batch() -> list[dict]:
    """Peak memory of the loss and its gradient for each batch size, and the largest batch in 1 GB."""
    peaks = [workspace(m) for m in BATCHES]
    fits, fails = BATCHES[0], 2 * BATCHES[-1]
    while fails - fits > 250:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if workspace(middle) <= WORKSPACE_MB else (fits, middle)
    return [
        *(
            {"what": f"workspace of the loss and its gradient (MB), batch of {m:,}", "target": "(to know)", "median": round(peak, 1)}
            for m, peak in zip(BATCHES, peaks, strict=True)
        ),
        {
            "what": f"exponent of that workspace in the batch size ({BATCHES[1]:,} to {BATCHES[-1]:,})",
            "target": "2",
            "median": round(exponent(BATCHES[1:], peaks[1:]), 3),
        },
        {"what": "largest batch whose loss works within 1 GB (to 250)", "target": "(to know)", "median": fits},
    ]  # fmt: skip


def read_and_check(file: Path) -> bool:
    """What no loading that checks its file can do without; bare reading only maps the file."""
    content = file.read_bytes()
    hashlib.sha256(content).hexdigest()
    return all(bool(torch.isfinite(tensor).all()) for tensor in load(content).values())


def saving() -> list[dict]:
    """A model's save and load against its bare tensors."""
    X = np.random.default_rng(0).integers(0, 255, size=(70_000, 28, 28), dtype=np.uint8)
    model = DDC(10, augment=None, n_init=1, max_iter=2, random_state=0).fit(X)
    _, tensors = describe(model)
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with tempfile.TemporaryDirectory() as folder:
        path, bare = Path(folder) / "model", Path(folder) / "bare.safetensors"
        return [
            {
                "what": "save a model of 70,000 items / write its tensors alone",
                "target": "(to know)",
                **ratio(lambda: model.save(path, overwrite=True), lambda: save_file(tensors, bare), 9),
            },
            {
                "what": "load it, checked / read its tensors alone",
                "target": "(to know)",
                **ratio(lambda: DDC.load(path), lambda: load_file(bare), 9),
            },
            {
                "what": "load it, checked / read its tensors, hash them and see whether they are finite",
                "target": "(to know)",
                **ratio(lambda: DDC.load(path), lambda: read_and_check(bare), 9),
            },
        ]


def figures() -> list[dict]:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    return [*time_of_an_epoch(), *memory_of_a_batch(), *saving()]
