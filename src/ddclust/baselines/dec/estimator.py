"""The estimator: pre-training, clustering and its record, all on the same training loop as DDC."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from torch import Tensor, nn
from torch.nn import functional

from ddclust.base import NetworkClusterer, all_or_nothing
from ddclust.baselines.dec.network import DECNetwork, denoising_pair, initialise
from ddclust.baselines.dec.target import Target, target_distribution
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import SparseItems
from ddclust.data.validation import Interval, StrOptions, fit_context, resolve_device
from ddclust.progress import Bar
from ddclust.training.inference import outputs
from ddclust.training.randomness import own_randomness
from ddclust.training.record import RunRecord
from ddclust.training.trainer import NonFiniteLossError, Objective, Trainer

KMEANS_STARTS = 20
MIN_INTERVAL = 140
DECAY_EVERY = 20_000
# Learning rates of the pre-training by optimiser: Adam's usual one, and the paper's own for gradient descent.
PRETRAINING_RATES = {"adam": 1e-3, "sgd": 0.1}


class Reconstruction(NamedTuple):
    """The loss of an autoencoder: the mean squared error per value."""

    error: Tensor


class Divergence(NamedTuple):
    """The loss of the clustering: the Kullback-Leibler divergence KL(P || Q) per item."""

    kl: Tensor


class DEC(NetworkClusterer):
    """Deep embedded clustering (Xie, Girshick, Farhadi, ICML 2016).

    First an autoencoder is trained, layer by layer as a denoising autoencoder and then as a whole. k-means finds
    centres in its code. Then encoder and centres minimise KL(P || Q) = sum p log(p / q). Q are Student-t assignments,
    q_ij ~ 1 / (1 + ||z_i - mu_j||^2). P is their sharpened form, p_ij ~ q_ij^2 / sum_i q_ij, which is updated on the
    whole data at regular intervals. Training ends when fewer than 0.1 % of the items change their cluster.

    Departs from the paper: by default, pre-training is shorter and uses Adam with He's initialisation, because it takes
    a fraction of the time (:meth:`paper` has the original schedule). The reconstruction error is averaged over values,
    so that learning rates do not depend on the data's dimension. On large data P is updated every half epoch, instead
    of every 160 batches.

    Parameters
    ----------
    n_clusters : int, default=8
    layers : tuple of int, default=(500, 500, 2000, 10)
        Sizes of the encoder's layers. All but the last one have a ReLU. The decoder mirrors them.
    pretraining : {"adam", "sgd"}, default="adam"
        Optimiser of the autoencoder. ``"sgd"`` has the paper's learning rate of 0.1, which is divided by ten every
        20,000 iterations.
    layer_iter : int, default=1000
        Number of iterations (batches) for each layer; 0 for none. The paper has 50,000.
    finetune_iter : int, default=5000
        Number of iterations for the whole autoencoder. The paper has 100,000.
    max_iter : int, default=20000
        Maximum number of iterations of the clustering itself.
    tol : float, default=1e-3
        The clustering ends when the share of items that change their cluster between two updates of P is smaller.
    update_interval : int or None, default=None
        Number of iterations between two updates of P. None is half an epoch, but at least 140 (half an epoch of
        MNIST).
    center : bool, default=False
        Whether to subtract the mean of all values first; for dense data only. Use it for photographs: their mean
        otherwise outweighs the differences between them, and the code becomes nearly constant.
    batch_size : int, default=256
    learning_rate : float, default=0.01
        Learning rate of the clustering, which uses gradient descent with a momentum of 0.9.
    language : str, default="auto"
        Language of texts, whose word stems are counted; "auto" finds it. See :class:`ddclust.data.text.StemVectorizer`.
    device : str or torch.device, default="auto"
        ``"auto"`` is the GPU if there is one.
    random_state : int, RandomState instance or None, default=None
    verbose : bool or int, default=False
        Show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        The assignments Q.
    runs_ : list of dict
        The record of the one run: ``seed``, ``loss`` (the divergence on the whole data), ``n_iter``,
        ``clusters_used``, ``seconds``, ``outcome``, ``history``, and ``pretraining``: the last loss of each
        phase.
    history_ : list of dict
        The divergence for every epoch of the clustering; on small data, for as many epochs as make 50 iterations.
    n_iter_ : int
        Number of iterations of the clustering.
    modules_ : list of nn.Module
        The :class:`DECNetwork`, without the decoder.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=3)
    >>> model = DEC(3, layers=(20, 5), layer_iter=100, finetune_iter=200, random_state=0).fit(X)
    >>> model.predict(X[:5]).shape, model.transform(X[:5]).shape
    ((5,), (5, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "layers": [tuple, list],
        "pretraining": [StrOptions(set(PRETRAINING_RATES))],
        "layer_iter": [Interval(Integral, 0, None, closed="left")],
        "finetune_iter": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="both")],
        "update_interval": [Interval(Integral, 1, None, closed="left"), None],
        "center": ["boolean"],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "language": [str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        layers: tuple[int, ...] = (500, 500, 2000, 10),
        pretraining: str = "adam",
        layer_iter: int = 1000,
        finetune_iter: int = 5000,
        max_iter: int = 20_000,
        tol: float = 1e-3,
        update_interval: int | None = None,
        center: bool = False,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        language: str = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.layers = layers
        self.pretraining = pretraining
        self.layer_iter = layer_iter
        self.finetune_iter = finetune_iter
        self.max_iter = max_iter
        self.tol = tol
        self.update_interval = update_interval
        self.center = center
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.language = language
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters: int, *, random_state: Any = None, verbose: bool | int = False) -> Self:
        """The paper's schedule: gradient descent, with 50,000 iterations per layer and 100,000 for the whole.

        Examples
        --------
        >>> DEC.paper(10).finetune_iter
        100000
        """
        return cls(
            n_clusters,
            pretraining="sgd",
            layer_iter=50_000,
            finetune_iter=100_000,
            update_interval=160,
            random_state=random_state,
            verbose=verbose,
        )

    scales_images_to_unit_range = False

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : vectors, images or texts
            Anything that :meth:`ddclust.DDC.fit` takes. All values are multiplied by one factor that brings their
            mean square to 1, as in the paper. Standardise features on different scales first.
        y : Ignored

        Returns
        -------
        self
        """
        start = time.perf_counter()
        with all_or_nothing(self):
            given, X = X, self._items(X)
            self._check_layers()
            if self.center and isinstance(X, SparseItems):
                raise ValueError("center=True is for dense data: the zeros of sparse X must stay zeros.")
            source = BatchSource(X, Scaling.to_unit_mean_square(X, center=self.center))
            device = resolve_device(self.device)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            record = RunRecord(0, seed).public()
            total = len(self.layers) * self.layer_iter + self.finetune_iter + self.max_iter
            with (
                own_randomness(seed, device),
                Bar(total=total, unit="it", disable=not self.verbose) as bar,
            ):
                module = self._build().to(device)
                run = _Run(source, self.batch_size, seed, bar)
                try:
                    record["pretraining"] = self._pretrain(module, run)
                except NonFiniteLossError as error:
                    remedy = (
                        " Use pretraining='adam', whose steps do not grow."
                        if self.pretraining == "sgd"
                        else ""
                    )
                    raise NonFiniteLossError(f"Pre-training failed. {error}{remedy}") from error
                record |= self._cluster(module, run)
            self._n_features_out = self.layers[-1]
            self._keep(source, [record], [0], [module.eval()])
            self._remember_images(given, X)
            self._judge(record)
            record["seconds"] = round(time.perf_counter() - start, 3)
        return self

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | torch.device | None = None) -> Self:
        """Load a model written by :meth:`save`, on any machine. No code from the folder is run.

        Raises
        ------
        ddclust.storage.model_folder.ModelFormatError
            If the folder is missing, incomplete, damaged, not a model, or of a newer version.
        """
        return cls._load(path, {}, device)

    def _check_layers(self) -> None:
        if not self.layers or not all(isinstance(size, Integral) and size >= 1 for size in self.layers):
            raise ValueError(f"layers={self.layers!r} must hold at least one size, each a positive integer.")

    def _build(self) -> DECNetwork:
        self._check_layers()
        module = DECNetwork(input_shape(self.item_shape_), self.n_clusters, tuple(self.layers))
        initialise(module, self.pretraining)
        return module

    def _pretrain(self, module: DECNetwork, run: _Run) -> dict[str, float]:
        """Train the encoder as a part of an autoencoder; returns the last loss of each phase."""
        encoders = [step for step in module.encoder if isinstance(step, nn.Linear)]
        decoders = [nn.Linear(layer.out_features, layer.in_features) for layer in encoders]
        decoder = nn.Sequential(
            *[step for layer in reversed(decoders) for step in (nn.ReLU(), layer)][1:]
        ).to(module.centers.device)
        initialise(decoder, self.pretraining)
        last = {}
        for i, (encoding, decoding) in enumerate(zip(encoders, decoders, strict=True)):
            run.bar.set_description(f"layer {i + 1} of {len(encoders)}")
            if self.layer_iter:
                pair = denoising_pair(encoding, decoding, is_first=i == 0, is_last=i == len(encoders) - 1)
                before = module.encoder[: 1 + 2 * i]
                last[f"layer {i + 1}"] = self._reconstruct(pair, before, self.layer_iter, run)
        run.bar.set_description("autoencoder")
        if self.finetune_iter:
            whole = nn.Sequential(module.encoder, decoder)
            last["autoencoder"] = self._reconstruct(whole, nn.Flatten(), self.finetune_iter, run)
        return last

    def _reconstruct(self, module: nn.Module, before: nn.Module, n_iterations: int, run: _Run) -> float:
        """Train ``module`` to reproduce what ``before`` makes of a batch; returns the last loss."""

        def objective(
            module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int
        ) -> Reconstruction:
            with torch.no_grad():
                x = before(x)
            return Reconstruction(functional.mse_loss(module(x), x))

        rate = PRETRAINING_RATES[self.pretraining]
        trainer, _ = run.train(
            module,
            objective,
            n_iterations,
            optimizer=self.pretraining,
            learning_rate=step_decay(rate) if self.pretraining == "sgd" else rate,
        )
        return trainer.history[-1]["loss"]

    def _cluster(self, module: DECNetwork, run: _Run) -> dict[str, Any]:
        """Start from k-means and sharpen the assignments; returns the run's outcome, iterations and history."""
        run.bar.set_description("clustering")
        codes = np.concatenate([code.numpy() for _, code, _ in outputs(module, run.source)])
        k_means = KMeans(self.n_clusters, n_init=KMEANS_STARTS, random_state=run.seed).fit(codes)
        with torch.no_grad():
            module.centers.copy_(torch.from_numpy(k_means.cluster_centers_))
        target = Target(module, run.source, self.tol)

        def objective(module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int) -> Divergence:
            _, logits = module(x)
            p = target.distribution[indices].to(x.device)
            return Divergence(functional.kl_div(logits.log_softmax(dim=1), p, reduction="batchmean"))

        def has_settled(trainer: Trainer) -> bool:
            interval = self.update_interval or max(trainer.batches_per_epoch // 2, MIN_INTERVAL)
            return trainer.iteration % interval == 0 and target.refresh()

        trainer, ending = run.train(
            module,
            objective,
            self.max_iter,
            optimizer="sgd",
            learning_rate=self.learning_rate,
            stop=has_settled,
        )
        return {
            "outcome": "converged" if ending == "stopped" else ending,
            "n_iter": trainer.iteration,
            "history": trainer.history,
        }

    def _judge(self, record: dict[str, Any]) -> None:
        """Add the divergence on the whole data to the record; warn if clusters are empty."""
        q = torch.from_numpy(self.probabilities_).double()
        kl = functional.kl_div(q.log(), target_distribution(q), reduction="batchmean").item()
        used = len(np.unique(self.labels_))
        record |= {"loss": kl, "terms": {"kl": kl}, "clusters_used": used}
        if used < self.n_clusters:
            warnings.warn(
                f"The clustering uses {used} of the {self.n_clusters} clusters asked for. Another random_state, longer"
                " pre-training (finetune_iter) or a smaller n_clusters may help.",
                ConvergenceWarning,
                stacklevel=4,
            )


class _Run(NamedTuple):
    """What all phases of a fit share, and the one place where they use the training loop."""

    source: BatchSource
    batch_size: int
    seed: int
    bar: Bar

    def train(
        self,
        module: nn.Module,
        objective: Objective,
        n_iterations: int,
        *,
        optimizer: str,
        learning_rate: float | Callable[[int], float],
        stop: Callable[[Trainer], bool] = lambda trainer: False,
    ) -> tuple[Trainer, str]:
        """Train a module in place, until ``stop`` or for ``n_iterations``; returns the trainer and how it ended."""
        trainer = Trainer(
            module,
            self.source,
            objective,
            batch_size=self.batch_size,
            learning_rate=learning_rate,
            seed=self.seed,
            optimizer=optimizer,
        )

        def on_step(trainer: Trainer, loss: float) -> bool:
            self.bar.update()
            return stop(trainer)

        ending = trainer.advance(n_iterations, on_step=on_step)
        trainer.close_record()
        return trainer, ending


def step_decay(rate: float) -> Callable[[int], float]:
    """The learning rate as a function of the iteration: divided by ten every 20,000 iterations.

    Examples
    --------
    >>> [step_decay(0.1)(i) for i in (0, 19_999, 20_000, 40_000)]
    [0.1, 0.1, 0.01, 0.001]
    """
    return lambda iteration: rate / 10 ** (iteration // DECAY_EVERY)
