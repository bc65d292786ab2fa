"""Our DEC against ClustPy's on MNIST: the same layers, epochs and batch size. Classes only score.

ClustPy pre-trains only the whole autoencoder, so the layer-wise part is left out here too.
"""

from __future__ import annotations

import time
import warnings

from ddclust.baselines import DEC
from lab.benchmarks.measure import mnist_or_none
from lab.benchmarks.peers import curve, elsewhere

EPOCHS = 5
BATCH = 256


def ours(X):
    steps = EPOCHS * -(-len(X) // BATCH)
    model = DEC(10, layer_iter=0, finetune_iter=steps, max_iter=steps, tol=0.0, random_state=0)
    start = time.perf_counter()
    labels = model.fit_predict(X)
    return [(time.perf_counter() - start, labels)]


def figures() -> list[dict] | None:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    mnist = mnist_or_none()
    if mnist is None:
        return None
    rows = [
        curve(f"ClustPy DEC, {EPOCHS} + {EPOCHS} epochs", elsewhere("clustpy-dec", mnist.data), mnist.target),
        curve(f"ddclust DEC, {EPOCHS} + {EPOCHS} epochs", ours(mnist.data), mnist.target),
    ]
    seconds = [row["curve"][-1][0] for row in rows]
    ratio = {
        "what": "time of ClustPy's DEC / of ddclust's",
        "target": "> 1",
        "median": round(seconds[0] / seconds[1], 3),
    }
    return [*rows, ratio]
