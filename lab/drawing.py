"""How each figure is drawn: ``(bunch, fit, **options) -> (figure, facts)``. Facts are the numbers that the figure shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils import Bunch
from torch import Tensor, nn

from ddclust import DDC
from ddclust.choosing.metrics import clustering_accuracy
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.networks import ConvNet
from ddclust.objective.kernels import gaussian_kernel
from ddclust.objective.loss import DDCLoss, ddc_loss
from ddclust.scan import scan
from ddclust.show import plots
from ddclust.training.inference import outputs
from ddclust.training.randomness import own_randomness
from ddclust.training.trainer import Trainer
from lab.runner import Fitted, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn = tuple["Figure", dict[str, Any]]
KERNEL_ITEMS = 1000
EXPLAINED = 10
# Items from one record of supervised training to the next. It learns fast, and the curves should show how it begins.
SUPERVISED_RECORD_ITEMS = 1400


def ring_and_disc(bunch: Bunch, fit: Fitted) -> Drawn:
    """k-means cuts the ring in two; DDC separates it from the disc."""
    labels = {
        "k-means": KMeans(2, n_init=10, random_state=0).fit_predict(bunch.data),
        "DDC": fit.labels[0],
    }
    facts = {name: round(clustering_accuracy(bunch.target, found), 4) for name, found in labels.items()}
    titles = {f"{name}: ACC {facts[name]:.3f}": found for name, found in labels.items()}
    return plots.clusterings(bunch.data, {"Data": bunch.target, **titles}), {"ACC": facts}


def simplex(bunch: Bunch, fit: Fitted) -> Drawn:
    """Soft assignments of three digits before, during and after training."""
    return plots.simplex(fit.snapshots[0], bunch.target), _accuracies(bunch, fit)


def gallery(bunch: Bunch, fit: Fitted) -> Drawn:
    """The most certain images of each cluster. A box marks a class that is not the cluster's."""
    truth = [bunch.target_names[label] for label in bunch.target]
    return plots.gallery(bunch.data, fit.model.probabilities_, truth), _accuracy(bunch, fit)


def gallery_without_classes(bunch: Bunch, fit: Fitted) -> Drawn:
    """The most certain images of each cluster, where there are more clusters than classes."""
    return plots.gallery(bunch.data, fit.model.probabilities_), _accuracy(bunch, fit)


def _accuracy(bunch: Bunch, fit: Fitted) -> dict[str, Any]:
    return {"ACC": round(clustering_accuracy(bunch.target, fit.model.labels_), 4)}


def loss_terms(bunch: Bunch, fit: Fitted) -> Drawn:
    """The terms of the loss and the accuracy while the best run trains."""
    facts = _accuracies(bunch, fit)
    return plots.training_curves(fit.model, (facts["epochs"], facts["ACC"])), facts


def _accuracies(bunch: Bunch, fit: Fitted) -> dict[str, list[float]]:
    """ACC of the best run at the epochs of its snapshots."""
    points = curve(fit.snapshots[0], bunch.target)
    return {"epochs": [point["epoch"] for point in points], "ACC": [point["ACC"] for point in points]}


class MonitoredTerms(NamedTuple):
    """The cross entropy, which is minimised, and the terms of DDC's loss, which are only watched and have no gradient."""

    cross_entropy: Tensor
    divergence: Tensor
    orthogonality: Tensor
    corners: Tensor


def monitored(module: nn.Module, x: Tensor, classes: Tensor) -> MonitoredTerms:
    """The objective of supervised training, and DDC's terms."""
    hidden, logits = module(x)
    cross_entropy = nn.functional.cross_entropy(logits, classes)
    with torch.no_grad():
        watched = ddc_loss(hidden, logits.softmax(dim=1))
    return MonitoredTerms(cross_entropy, *watched)


def supervised(bunch: Bunch, fit: None, *, n_epochs: float) -> Drawn:
    """DDC's loss while the same network is trained with the classes."""
    history, accuracy = train_supervised(bunch.data, bunch.target, n_epochs)
    facts = {"epochs": accuracy[0], "ACC": accuracy[1]}
    names = {"cross_entropy": "cross entropy", "loss": "DDC's loss"}
    return plots.training_curves(history, accuracy, names=names), facts


def train_supervised(
    images: NDArray, classes: NDArray, n_epochs: float, *, seed: int = 0
) -> tuple[list[dict[str, float]], tuple[list[float], list[float]]]:
    """Train DDC's network by cross entropy. Returns records of it and of DDC's loss, and (epochs, accuracy)."""
    source = BatchSource(images, Scaling.of(images))
    n_classes = int(classes.max()) + 1
    truth = torch.from_numpy(np.asarray(classes, dtype=np.int64))

    def objective(module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int) -> MonitoredTerms:
        return monitored(module, x, truth[indices])

    history: list[dict[str, float]] = []
    epochs, accuracies = [], []
    with own_randomness(seed):
        module = ConvNet(input_shape(source.scaling.item_shape), n_classes)
        trainer = Trainer(module, source, objective, batch_size=100, learning_rate=1e-3, seed=seed)
        last = max(1, round(n_epochs * trainer.batches_per_epoch))
        step = max(1, SUPERVISED_RECORD_ITEMS // 100)
        for until in [*range(step, last, step), last]:
            trainer.advance(until)
            trainer.close_record()
            predicted = torch.cat([logits.argmax(dim=1) for _, _, logits in _sampled(module, source)])
            epochs.append(trainer.history[-1]["epoch"])
            accuracies.append(round(float((predicted == truth[:: _stride(source)]).float().mean()), 4))
        for record in trainer.history:
            terms = {name: record[name] for name in MonitoredTerms._fields}
            loss = sum(terms.values()) - terms["cross_entropy"]
            history.append(
                {"epoch": record["epoch"], "iteration": record["iteration"], "loss": loss, **terms}
            )
    return history, (epochs, accuracies)


def _stride(source: BatchSource) -> int:
    return max(1, len(source) // 2000)


def _sampled(module: nn.Module, source: BatchSource) -> Any:
    """Outputs for about 2,000 of the items."""
    places = np.arange(0, len(source), _stride(source))
    sample = BatchSource(source.items[places], source.scaling)
    return outputs(module, sample)


def kernel_matrix(bunch: Bunch, fit: Fitted) -> Drawn:
    """The kernel on the hidden representation of the best run, items sorted by their classes."""
    chosen = np.sort(np.random.default_rng(0).choice(len(bunch.target), KERNEL_ITEMS, replace=False))
    hidden = fit.model.transform(bunch.data[chosen])
    loss = DDCLoss.paper()
    K = gaussian_kernel(
        torch.from_numpy(hidden), bandwidth=loss.bandwidth, bandwidth_rule=loss.bandwidth_rule
    ).numpy()
    return plots.kernel_matrix(K, bunch.target[chosen]), {"items": KERNEL_ITEMS}


def guided_backpropagation(bunch: Bunch, fit: Fitted) -> Drawn:
    """The pixels that count for an image's cluster, for images drawn at random."""
    chosen = np.random.default_rng(0).choice(len(bunch.target), EXPLAINED, replace=False)
    return plots.explanations(bunch.data[chosen], fit.model), {"items": chosen.tolist()}


def restarts(bunch: Bunch, fit: Fitted) -> Drawn:
    """The loss of every run, and the accuracy of those that reached the end."""
    histories = [run["history"] for run in fit.model.runs_]
    curves = [curve(snapshots, bunch.target) for snapshots in fit.snapshots]
    return plots.runs(histories, fit.model.voters_, curves), {"curves": curves}


def numbers_of_clusters(bunch: Bunch, fit: None, *, ks: list[int], n_init: int, max_iter: int) -> Drawn:
    """The number of clusters that runs agree on."""
    found = scan(bunch.data, ks, model=DDC(n_init=n_init, max_iter=max_iter, random_state=0))
    advice = found.recommendation
    said = "unclear" if advice.n_clusters is None else f"{advice.n_clusters} clusters"
    sure = "no confidence" if advice.confidence is None else f"confidence {advice.confidence:.2f}"
    facts = {
        "said": f"The scan says: {said} ({sure}, {advice.n_pairs} pairs of runs); {advice.reason}.",
        "rows": found.rows,
    }
    return plots.scan(found), facts
