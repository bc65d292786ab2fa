"""What a user might choose instead, on MNIST: k-means, UMAP and a Gaussian mixture, ClustPy's DEC, and a plain DDC.

One after the other, with NMI and accuracy over time. The other libraries live in their own environment,
``.venv-peers``, which is made at the first run. Classes only score.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans

from ddclust import DDCLoss
from ddclust.choosing.metrics import clustering_accuracy, nmi
from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import ConvNet
from ddclust.training.inference import outputs
from ddclust.training.trainer import Trainer
from lab.benchmarks.measure import mnist_or_none
from lab.benchmarks.training import plain_conv, plain_step

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
PACKAGES = ("torch==2.13.0", "torchvision==0.28.0", "clustpy==0.0.3", "umap-learn==0.5.12")
FIGURE = ROOT / "docs" / "time_to_nmi.png"
EPOCHS = 5
SEEDS = (0, 1)


def peers_python() -> Path:
    """The interpreter of the peers' environment; torch first, since a looser request pulls gigabytes."""
    python = PEERS / "bin" / "python"
    if not (PEERS / ".complete").exists():
        print("making .venv-peers ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
        subprocess.run([*install, *PACKAGES[:2]], check=True)
        subprocess.run([*install, *PACKAGES], check=True)
        (PEERS / ".complete").touch()
    return python


def curve(name: str, points: list[tuple[float, np.ndarray]], truth: np.ndarray) -> dict:
    scores = [
        (round(t, 1), round(nmi(truth, y), 4), round(clustering_accuracy(truth, y), 4)) for t, y in points
    ]
    seconds, information, accuracy = scores[-1]
    print(name, scores, flush=True)
    return {
        "what": f"{name}: NMI after {seconds:.0f} s (ACC {accuracy:.3f})",
        "target": "(to know)",
        "median": information,
        "name": name,
        "curve": scores,
    }


def elsewhere(method: str, X: np.ndarray) -> list[tuple[float, np.ndarray]]:
    with tempfile.TemporaryDirectory() as folder:
        images, labels = Path(folder) / "images.npy", Path(folder) / "labels.npy"
        np.save(images, X)
        script = Path(__file__).with_name("in_peers_env.py")
        output = subprocess.check_output([peers_python(), script, method, images, labels], text=True)
        return [(float(output.split()[-1]), np.load(labels))]


def k_means(X: np.ndarray) -> list[tuple[float, np.ndarray]]:
    flat = X.reshape(len(X), -1).astype(np.float32) / 255
    start = time.perf_counter()
    labels = KMeans(10, n_init=10, random_state=0).fit_predict(flat)
    return [(time.perf_counter() - start, labels)]


def ddc(X: np.ndarray, seed: int) -> list[tuple[float, np.ndarray]]:
    """One run on all threads; labels after every epoch, whose making is not counted."""
    torch.manual_seed(seed)
    source = BatchSource(X, Scaling.of(X))
    network = ConvNet((1, 28, 28), 10)

    def objective(module, x, indices):
        hidden, logits = module(x)
        return DDCLoss()(hidden, logits.softmax(dim=1))

    trainer = Trainer(network, source, objective, seed=seed)
    points, spent = [], 0.0
    for epoch in range(1, EPOCHS + 1):
        start = time.perf_counter()
        trainer.advance(epoch * trainer.batches_per_epoch)
        spent += time.perf_counter() - start
        labels = np.concatenate([logits.argmax(dim=1).numpy() for _, _, logits in outputs(network, source)])
        points.append((spent, labels))
    return points


def plain_ddc(X: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """The same by a plain PyTorch loop, for one epoch; the network starts as ours do, in a soft way."""
    torch.manual_seed(0)
    network = plain_conv()
    with torch.no_grad():
        network.output.weight.mul_(0.1)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    images = torch.from_numpy(X)[:, None].float() / 255
    start = time.perf_counter()
    for indices in torch.randperm(len(X)).split(100):
        plain_step(network, optimizer, images[indices])
    spent = time.perf_counter() - start
    network.eval()
    with torch.no_grad():
        labels = torch.cat([network(part)[1].argmax(dim=1) for part in images.split(1000)])
    return [(spent, labels.numpy())]


def plot(rows: list[dict]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for row, marker in zip(rows, "osD^vPX", strict=False):
        seconds, information = zip(*[(t, value) for t, value, _ in row["curve"]], strict=True)
        axes.plot(seconds, information, marker=marker, label=row["name"])
    axes.set(
        xscale="log", xlabel="seconds on two cores", ylabel="NMI", ylim=(0, 1), title="MNIST, 70,000 images"
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(FIGURE, dpi=120)


def figures() -> list[dict] | None:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    mnist = mnist_or_none()
    if mnist is None:
        return None
    X, truth = mnist.data, mnist.target
    rows = [
        curve("k-means, best of 10", k_means(X), truth),
        *(curve(f"DDC, seed {seed}, epoch by epoch", ddc(X, seed), truth) for seed in SEEDS),
        curve("plain PyTorch DDC, one epoch", plain_ddc(X), truth),
        curve("UMAP + Gaussian mixture", elsewhere("umap+gmm", X), truth),
        curve("ClustPy DEC, 5 + 5 epochs", elsewhere("clustpy-dec", X), truth),
    ]
    plot(rows)
    return rows
