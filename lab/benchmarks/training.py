"""The training step against the machine's matrix product and a plain PyTorch step, and the cost of the loop around it."""

from __future__ import annotations

import multiprocessing
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from ddclust import DDC, DDCLoss
from ddclust.data.batches import BatchSource, Scaling
from ddclust.networks import MLP, ConvNet
from ddclust.training.memory import freed_memory_kept
from ddclust.training.trainer import Trainer
from lab.benchmarks.measure import ratio, seconds, summary

K, BATCH = 10, 100
IMAGE, VECTOR = (1, 28, 28), (2000,)


# --- the peer: the same network, loss and optimiser, as one writes them down from the formulas ------


class PlainNetwork(nn.Module):
    """Features, ReLU, batch normalisation and softmax outputs."""

    def __init__(self, features: nn.Module, n_hidden: int) -> None:
        super().__init__()
        self.features = features
        self.head = nn.Sequential(nn.ReLU(), nn.BatchNorm1d(n_hidden))
        self.output = nn.Linear(n_hidden, K)

    def forward(self, x):
        hidden = self.head(self.features(x))
        return hidden, torch.softmax(self.output(hidden), dim=1)


def plain_conv() -> PlainNetwork:
    return PlainNetwork(
        nn.Sequential(
            nn.Conv2d(1, 32, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(1024, 100),
        ),
        100,
    )


def plain_mlp() -> PlainNetwork:
    layers = (nn.Linear(2000, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 500))
    return PlainNetwork(nn.Sequential(*layers), 500)


def plain_loss(hidden, A):
    """Eq. (4), averaged over pairs. The distances come from one matrix product: cdist was no faster."""
    n, k = A.shape
    norms = hidden.square().sum(dim=1)
    squared = torch.relu(norms[:, None] - 2 * hidden @ hidden.T + norms[None, :])
    row, column = torch.triu_indices(n, n, 1)
    sigma_squared = 0.15 * squared.detach()[row, column].median()
    kernel = torch.exp(-squared / (2 * sigma_squared))
    corners = torch.exp(-torch.cdist(A, torch.eye(k)).square())

    def similarity(U):
        products = U.T @ kernel @ U
        own = torch.diag(products)
        norm = torch.sqrt(torch.clamp(own[:, None] * own[None, :], min=1e-18))
        return 2 / (k * (k - 1)) * torch.triu(products / norm, 1).sum()

    orthogonality = 2 / (n * (n - 1)) * torch.triu(A @ A.T, 1).sum()
    return similarity(A) + orthogonality + similarity(corners)


def plain_step(network, optimizer, x) -> float:
    loss = plain_loss(*network(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# --- ours --------------------------------------------------------------------------------------------


def objective(module, x, indices, iteration=0):
    hidden, logits = module(x)
    return DDCLoss()(hidden, logits.softmax(dim=1))


def data(shape, n=3000):
    """Bytes for images, as of MNIST; numbers of unit variance for vectors."""
    random = np.random.default_rng(0)
    if len(shape) == 3:
        return random.integers(0, 256, size=(n, *shape[1:]), dtype=np.uint8)
    return random.normal(size=(n, *shape)).astype(np.float32)


def trainer(network, shape) -> Trainer:
    X = data(shape)
    return Trainer(network, BatchSource(X, Scaling.of(X)), objective, batch_size=BATCH, learning_rate=1e-5)


def same_weights(ours, plain) -> None:
    with torch.no_grad():
        for mine, other in zip(ours.parameters(), plain.parameters(), strict=True):
            other.copy_(mine)


def check_same(ours, plain, x) -> None:
    """Loss within 1e-5 and the gradient, as one long vector, within 1e-4 of the peer's."""
    same_weights(ours, plain)
    loss, reference = sum(objective(ours, x, None)), plain_loss(*plain(x))
    loss.backward(), reference.backward()
    torch.testing.assert_close(loss, reference, rtol=1e-5, atol=0)
    mine, other = (torch.cat([p.grad.flatten() for p in net.parameters()]) for net in (ours, plain))
    assert (mine - other).norm() <= 1e-4 * other.norm()


def against_plain(name, ours, plain, shape, steps, repeats=30) -> dict:
    """Steps of ours, as the training loop makes them, and plain ones, on the same batch."""
    x, indices = torch.rand(BATCH, *shape), np.arange(BATCH)
    check_same(ours, plain, x)
    loop = trainer(ours, shape)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-5)

    def our_steps():
        for _ in range(steps):
            loop._step(x, indices)

    def plain_steps():
        for _ in range(steps):
            plain_step(plain, optimizer, x)

    threads = torch.get_num_threads()
    return {
        "what": f"throughput of training steps / of plain PyTorch steps, {name}, {threads} threads",
        "target": ">= 1.5",
        **ratio(plain_steps, our_steps, repeats),
    }


def loss_share(name, network, shape) -> dict:
    """Loss, forward and backward, in a whole training step."""
    loop, x = trainer(network, shape), torch.rand(BATCH, *shape)
    hidden, logits = (output.detach().requires_grad_() for output in network(x))

    def loss_alone():
        sum(DDCLoss()(hidden, logits.softmax(dim=1))).backward()

    return {
        "what": f"loss / training step, {name}",
        "target": "(to know)",
        **ratio(loss_alone, partial(loop._step, x, np.arange(BATCH)), 60),
    }


# --- the machine's limit -----------------------------------------------------------------------------


def conv_step_operations() -> int:
    """Floating-point operations of the matrix products in a step of the convolutional network.

    A layer multiplies and adds once per weight and output position, forward, for the gradient of its
    weights and, but for the first layer, for the gradient of its input: 2.21 GFLOP for a batch of 100.
    """
    forward = {
        "conv1": 24 * 24 * 32 * 25,
        "conv2": 8 * 8 * 64 * 25 * 32,
        "hidden": 1024 * 100,
        "output": 100 * K,
    }
    passes = {"conv1": 2, "conv2": 3, "hidden": 3, "output": 3}
    return 2 * BATCH * sum(forward[layer] * passes[layer] for layer in forward)


def rates_in_worker(barrier, results, repeats, steps=12, products=10, size=1024) -> None:
    """(of training, of the matrix product) in FLOP/s, in turns, on one thread, in step with the other workers."""
    torch.set_num_threads(1)
    loop, A = trainer(ConvNet(IMAGE, K), IMAGE), torch.rand(size, size)

    def train():
        loop.advance(loop.iteration + steps)

    def multiply():
        for _ in range(products):
            torch.mm(A, A)

    rates = []
    for _ in range(repeats + 1):
        pair = []
        for function, operations in (
            (train, steps * conv_step_operations()),
            (multiply, products * 2 * size**3),
        ):
            barrier.wait()
            pair.append(operations / seconds(function))
        rates.append(pair)
    results.put(rates[1:])


def share_of_peak(repeats=20) -> dict:
    """Two runs side by side, one thread each, over the matrix product in the same two processes."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=rates_in_worker, args=(barrier, results, repeats), daemon=True)
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    rates = np.sum([results.get() for _ in workers], axis=0)  # (repeats, 2): of both cores together
    for worker in workers:
        worker.join()
    return {
        "what": f"two conv runs side by side ({conv_step_operations() / 1e9:.2f} GFLOP a step)"
        " / matrix-product peak of two cores",
        "target": ">= 0.55",
        **summary((rates[:, 0] / rates[:, 1]).tolist()),
        "GFLOP/s": round(float(np.median(rates[:, 1])) / 1e9, 1),
    }


# --- the whole of fit --------------------------------------------------------------------------------


def bare_steps(network, shape, steps):
    """A function that makes so many updates of a network on one batch that lies ready."""
    x = torch.rand(BATCH, *shape)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5, fused=True)

    @freed_memory_kept()  # as in the loop, so that the ratio is of the rest
    def bare():
        for _ in range(steps):
            loss = sum(objective(network, x, None))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return bare


def fit_overhead(epochs, n, repeats) -> dict:
    """A fit, with its batches, history, final judgement and labels, over as many bare steps on a ready batch."""
    X, steps = data(IMAGE, n), epochs * n // BATCH
    model = DDC(
        K,
        augment=None,
        n_init=1,
        max_iter=steps,
        batch_size=BATCH,
        early_stopping=None,
        precision="float32",  # as the bare steps
        random_state=0,
    )
    return {
        "what": f"fit of {epochs} epochs of {n:,} 28x28 images / its bare training steps",
        "target": "<= 1.15",
        **ratio(partial(model.fit, X), bare_steps(ConvNet(IMAGE, K), IMAGE, steps), repeats),
    }


def loop_overhead(name, kind, shape, steps, repeats=15) -> dict:
    """The training loop over its bare steps: gathering of batches, reading of the loss, history."""
    loop = trainer(kind(shape, K), shape)
    return {
        "what": f"training loop / its bare steps, {name}",
        "target": "<= 1.1",
        **ratio(
            lambda: loop.advance(loop.iteration + steps), bare_steps(kind(shape, K), shape, steps), repeats
        ),
    }


# --- precision ---------------------------------------------------------------------------------------


def trainer_by_default(X, precision) -> Trainer:
    """What trains a run of a default fit of images in a precision; their neighbours are any."""
    model = DDC(K, n_init=2, precision=precision, encoder=None, random_state=0)
    items = model._items(X)
    plan = model._plan(items)
    drawn = np.random.default_rng(0).integers(len(X), size=(len(X), plan.setup.neighbors), dtype=np.int32)
    plan = replace(plan, pairs=replace(plan.pairs, neighbors=drawn))
    return plan.trainer(plan.build(), plan.source(items), seed=0)


def gain_of_bfloat16(shape, n, steps, repeats=9) -> dict:
    """Steps with pairs in float32 over such steps in bfloat16."""
    X = np.random.default_rng(0).integers(0, 256, size=(n, *shape), dtype=np.uint8)
    half, full = (trainer_by_default(X, precision) for precision in ("bfloat16", "float32"))
    return {
        "what": f"step with pairs in float32 / in bfloat16, {' x '.join(map(str, shape))}",
        "target": "> 1.5",
        **ratio(
            lambda: full.advance(full.iteration + steps),
            lambda: half.advance(half.iteration + steps),
            repeats,
        ),
    }


def figures() -> list[dict]:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    return [
        share_of_peak(),
        against_plain("conv 28x28", ConvNet(IMAGE, K), plain_conv(), IMAGE, steps=4),
        against_plain("mlp 2000", MLP(VECTOR, K), plain_mlp(), VECTOR, steps=20),
        loss_share("conv 28x28", ConvNet(IMAGE, K), IMAGE),
        loss_share("mlp 2000", MLP(VECTOR, K), VECTOR),
        loop_overhead("conv 28x28", ConvNet, IMAGE, steps=15),
        loop_overhead("mlp 2000", MLP, VECTOR, steps=30),
        fit_overhead(epochs=2, n=2000, repeats=6),
        fit_overhead(epochs=10, n=2000, repeats=3),
        gain_of_bfloat16((28, 28), n=2000, steps=4),
        gain_of_bfloat16((64, 64, 3), n=500, steps=1, repeats=5),
    ]
