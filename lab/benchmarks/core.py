"""The core's promises: the loss is cheap, prediction costs what the network costs, memory stays flat."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import torch

from ddclust import DDC, DDCLoss
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.datasets import load_circles
from ddclust.networks import MLP, ConvNet
from ddclust.storage.json_files import parsed
from ddclust.training.inference import CHUNK
from lab.benchmarks.measure import PEAK, ratio, seconds, summary


def loss_share(name, network, shape) -> dict:
    """Loss, forward and backward, in a whole training step of batch 100 with k = 10."""
    x, loss = torch.rand(100, *shape), DDCLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-6, fused=True)

    def step():
        hidden, logits = network(x)
        total = sum(loss(hidden, logits.softmax(dim=1)))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    hidden, logits = (output.detach().requires_grad_() for output in network(x))

    def loss_alone():
        sum(loss(hidden, logits.softmax(dim=1))).backward()

    return {"what": f"loss / training step, {name}", "target": "< 0.10 (conv)", **ratio(loss_alone, step, 30)}


def predict_speed(n=70_000) -> dict:
    """The bare network on ready float batches of the same size, over predict on uint8 images."""
    X = np.random.default_rng(0).integers(0, 255, size=(n, 28, 28), dtype=np.uint8)
    model = DDC(10, augment=None, n_init=1, max_iter=2, random_state=0, n_jobs=1).fit(X[:1000])
    batches = [torch.rand(CHUNK, 1, 28, 28) for _ in range(4)]
    network = model.modules_[0]

    def bare():
        network.eval()
        with torch.inference_mode():
            for i in range(n // CHUNK):
                network(batches[i % 4])

    return {
        "what": f"bare network / predict, {n:,} 28x28 images",
        "target": ">= 0.9",
        **ratio(bare, lambda: model.predict(X), 5),
    }


MEMORY = f"""{PEAK}
import json, sys
import numpy as np
from ddclust import DDC
n = int(sys.argv[1])
X = np.random.default_rng(0).integers(0, 255, size=(n, 28, 28), dtype=np.uint8)
DDC(10, augment=None, n_init=1, max_iter=50, random_state=0).fit(X)
print(json.dumps({{"peak": peak(), "data": X.nbytes / 2**20}}))
"""


def memory() -> list[dict]:
    rows = []
    for n in (20_000, 70_000, 280_000):
        printed = subprocess.check_output([sys.executable, "-W", "ignore", "-c", MEMORY, str(n)])
        result = parsed(printed, dict[str, float], what="What the fit printed", remedy="see its output")
        beyond = round(result["peak"] - result["data"], 1)
        rows.append(
            {
                "what": f"peak memory of fit beyond the data (MB), {n:,} uint8 images",
                "target": "<= 600",
                "median": beyond,
            }
        )
    return rows


def ring_and_disc() -> dict:
    """Single runs of 2,000 iterations on ten draws of the data with ten seeds."""
    accuracies = []
    for seed in range(10):
        circles = load_circles(random_state=seed)
        model = DDC(2, augment=None, n_init=1, max_iter=2000, random_state=seed).fit(circles.data)
        accuracies.append(clustering_accuracy(circles.target, model.labels_))
    good = sum(accuracy >= 0.99 for accuracy in accuracies)
    return {
        "what": "ring and disc, single runs of ten with ACC >= 0.99",
        "target": "> 5",
        "median": good,
        "ACC": accuracies,
    }


def fit_overhead() -> dict:
    """A whole fit over its bare training steps."""
    X = np.random.default_rng(0).integers(0, 255, size=(10_000, 28, 28), dtype=np.uint8)
    steps = 200
    network, loss = ConvNet((1, 28, 28), 10), DDCLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    x = torch.rand(100, 1, 28, 28)

    def bare():
        for _ in range(steps):
            hidden, logits = network(x)
            total = sum(loss(hidden, logits.softmax(dim=1)))
            optimizer.zero_grad()
            total.backward()
            optimizer.step()

    model = DDC(10, augment=None, n_init=1, max_iter=steps, random_state=0)
    values = [seconds(lambda: model.fit(X)) / seconds(bare) for _ in range(5)]
    return {
        "what": "fit of 200 steps on 10,000 images / its bare steps",
        "target": "(to know)",
        **summary(values),
    }


def figures() -> list[dict]:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    return [
        loss_share("conv 28x28", ConvNet((1, 28, 28), 10), (1, 28, 28)),
        loss_share("mlp 2000", MLP((2000,), 10), (2000,)),
        predict_speed(),
        fit_overhead(),
        *memory(),
        ring_and_disc(),
    ]
