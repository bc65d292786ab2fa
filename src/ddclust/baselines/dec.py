"""DEC, deep embedded clustering, on the same training loop as DDC."""

from __future__ import annotations

import itertools
import math
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
from tqdm import tqdm

from ddclust.base import NetworkClusterer, all_or_nothing
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import SparseItems
from ddclust.data.validation import Interval, StrOptions, fit_context, resolve_device
from ddclust.training.inference import outputs
from ddclust.training.randomness import own_randomness
from ddclust.training.record import RunRecord
from ddclust.training.trainer import NonFiniteLossError, Trainer

CORRUPTION = 0.2
KMEANS_STARTS = 20
MIN_INTERVAL = 140
DECAY_EVERY = 20_000
# Of the layer-wise pre-training and the fine-tuning, by optimiser: Adam's usual rate, and the paper's own.
PRETRAINING_RATES = {"adam": 1e-3, "sgd": 0.1}


class Reconstruction(NamedTuple):
    """The loss of an autoencoder: the mean square error of a value."""

    error: Tensor


class Divergence(NamedTuple):
    """The loss of the clustering: Kullback-Leibler divergence of the assignments from their target."""

    kl: Tensor


class DECNetwork(nn.Module):
    """An encoder and cluster centres in its code space; returns (code, logits).

    The softmax of the logits is the Student-t assignment, Eq. (1) of the DEC paper.

    Parameters
    ----------
    input_shape : tuple of int
        Any shape is flattened.
    n_clusters : int
    layers : sequence of int
        Sizes of the encoder's layers; the last one is the code's.

    Examples
    --------
    >>> code, logits = DECNetwork((20,), 3, (50, 10))(torch.zeros(4, 20))
    >>> code.shape, logits.shape
    (torch.Size([4, 10]), torch.Size([4, 3]))
    """

    def __init__(self, input_shape: tuple[int, ...], n_clusters: int, layers: tuple[int, ...]) -> None:
        super().__init__()
        sizes = (math.prod(input_shape), *layers)
        steps: list[nn.Module] = [nn.Flatten()]
        for n_in, n_out in itertools.pairwise(sizes):
            steps += [nn.Linear(n_in, n_out), nn.ReLU()]
        self.encoder = nn.Sequential(*steps[:-1])  # the code itself is linear
        self.centers = nn.Parameter(torch.zeros(n_clusters, sizes[-1]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(x)  # (n, d)
        return code, student_t_logits(code, self.centers)  # (n, d), (n, k)


def student_t_logits(code: Tensor, centers: Tensor) -> Tensor:
    """Logarithm of the Student-t kernel of one degree of freedom, of shape (n, k).

    Examples
    --------
    >>> student_t_logits(torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [1.0, 0.0]])).softmax(dim=1)
    tensor([[0.6667, 0.3333]])
    """
    squared = (code[:, None] - centers).square().sum(dim=2)  # (n, k)
    return -squared.log1p()


def target_distribution(q: Tensor) -> Tensor:
    """The sharpened assignments P that Q is drawn to, Eq. (3): squares, over the clusters' sizes.

    Examples
    --------
    >>> target_distribution(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    weights = q.square() / q.sum(dim=0)
    return weights / weights.sum(dim=1, keepdim=True)


class DEC(NetworkClusterer):
    """Deep embedded clustering (Xie, Girshick, Farhadi, ICML 2016).

    An autoencoder is trained, layer by layer as a denoising one and then as a whole; k-means finds centres
    in its code. Then encoder and centres minimise KL(P || Q) = sum p log(p / q), where Q are Student-t
    assignments, q_ij ~ 1 / (1 + ||z_i - mu_j||^2), and P their sharpened form, p_ij ~ q_ij^2 / sum_i q_ij,
    computed over the whole data now and then; until under 0.1 % of the items change their cluster.

    Departs from the paper: the default pre-training is shorter and by Adam, from He's initialisation
    (:meth:`paper` has the original one); the reconstruction error is averaged over values, so that rates
    do not depend on the data's dimension; P is computed every half epoch of large data instead of every 160 batches.

    Parameters
    ----------
    n_clusters : int, default=8
    layers : tuple of int, default=(500, 500, 2000, 10)
        Sizes of the encoder's layers, all but the last one with ReLU; the decoder mirrors them.
    pretraining : {"adam", "sgd"}, default="adam"
        The optimiser of the autoencoder. ``"sgd"`` has the paper's rate of 0.1, divided by ten every 20,000
        iterations.
    layer_iter : int, default=1000
        Iterations (batches) for each layer, 0 for none. The paper has 50,000.
    finetune_iter : int, default=5000
        Iterations for the whole autoencoder. The paper has 100,000.
    max_iter : int, default=20000
        Most iterations of the clustering itself.
    tol : float, default=1e-3
        The clustering ends when a smaller share of items changes its cluster between two refreshments of P.
    update_interval : int or None, default=None
        Iterations between these. None: half an epoch, at least 140 (half an epoch of MNIST).
    center : bool, default=False
        Subtract the mean of all values first, of dense data. For photographs, whose mean otherwise outweighs all that
        tells them apart: the code then comes out nearly constant.
    batch_size : int, default=256
    learning_rate : float, default=0.01
        Of the clustering, by gradient descent with momentum 0.9.
    language : str, default="english"
        Of texts: whose word stems are counted. See :class:`ddclust.data.text.StemVectorizer`.
    device : str or torch.device, default="auto"
        ``"auto"`` takes the GPU where there is one.
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
        Of the clustering: the divergence for every epoch (for every 50 iterations and up on small data).
    n_iter_ : int
        Iterations of the clustering.
    modules_ : list of nn.Module
        The one :class:`DECNetwork`; the decoder is not kept.
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
        language: str = "english",
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
        """The original schedule: 50,000 iterations for each layer, 100,000 for the whole, by gradient descent.

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
            Whatever :meth:`ddclust.DDC.fit` takes. One factor brings the mean square of all values to 1, as
            in the paper; features on different scales are for the caller to standardise.
        y : Ignored

        Returns
        -------
        self
        """
        start = time.perf_counter()
        with all_or_nothing(self):
            X = self._items(X)
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
                tqdm(total=total, unit="it", disable=not self.verbose) as bar,
            ):
                module = self._build().to(device)
                try:
                    record["pretraining"] = self._pretrain(module, source, seed, bar)
                except NonFiniteLossError as error:
                    remedy = (
                        " Use pretraining='adam', whose steps do not grow."
                        if self.pretraining == "sgd"
                        else ""
                    )
                    raise NonFiniteLossError(f"Pre-training failed. {error}{remedy}") from error
                record |= self._cluster(module, source, seed, bar)
            self._n_features_out = self.layers[-1]
            self._keep(source, [record], [0], [module.eval()])
            self._judge(record)
            record["seconds"] = round(time.perf_counter() - start, 3)
        return self

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str | torch.device | None = None) -> Self:
        """Read a model that :meth:`save` wrote, on any machine. No code from the folder is run.

        Raises
        ------
        ddclust.storage.model_folder.ModelFormatError
            The folder is missing, incomplete, damaged, foreign or of a newer version.
        """
        return cls._load(path, {}, device)

    def _check_layers(self) -> None:
        if not self.layers or not all(isinstance(size, Integral) and size >= 1 for size in self.layers):
            raise ValueError(f"layers={self.layers!r} must hold at least one size, each a positive integer.")

    def _build(self) -> DECNetwork:
        self._check_layers()
        module = DECNetwork(input_shape(self.item_shape_), self.n_clusters, tuple(self.layers))
        _initialise(module, self.pretraining)
        return module

    def _pretrain(self, module: DECNetwork, source: BatchSource, seed: int, bar: tqdm) -> dict[str, float]:
        """Train the encoder as a part of an autoencoder; returns the last loss of each phase."""
        encoders = [step for step in module.encoder if isinstance(step, nn.Linear)]
        decoders = [nn.Linear(layer.out_features, layer.in_features) for layer in encoders]
        decoder = nn.Sequential(
            *[step for layer in reversed(decoders) for step in (nn.ReLU(), layer)][1:]
        ).to(module.centers.device)
        _initialise(decoder, self.pretraining)
        last = {}
        for i, (encoding, decoding) in enumerate(zip(encoders, decoders, strict=True)):
            frozen = module.encoder[: 1 + 2 * i]
            pair = denoising_pair(encoding, decoding, is_first=i == 0, is_last=i == len(encoders) - 1)
            bar.set_description(f"layer {i + 1} of {len(encoders)}")
            if self.layer_iter:
                trainer = self._autoencoder_trainer(pair, frozen, source, seed)
                last[f"layer {i + 1}"] = _train(trainer, self.layer_iter, bar)
        bar.set_description("autoencoder")
        whole = nn.Sequential(module.encoder, decoder)
        if self.finetune_iter:
            trainer = self._autoencoder_trainer(whole, nn.Flatten(), source, seed)
            last["autoencoder"] = _train(trainer, self.finetune_iter, bar)
        return last

    def _autoencoder_trainer(
        self, module: nn.Module, frozen: nn.Module, source: BatchSource, seed: int
    ) -> Trainer:
        """A trainer that makes ``module`` reproduce what ``frozen`` makes of a batch."""

        def objective(
            module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int
        ) -> Reconstruction:
            with torch.no_grad():
                x = frozen(x)
            return Reconstruction(functional.mse_loss(module(x), x))

        rate = PRETRAINING_RATES[self.pretraining]
        return Trainer(
            module,
            source,
            objective,
            batch_size=self.batch_size,
            learning_rate=step_decay(rate) if self.pretraining == "sgd" else rate,
            seed=seed,
            optimizer=self.pretraining,
        )

    def _cluster(self, module: DECNetwork, source: BatchSource, seed: int, bar: tqdm) -> dict[str, Any]:
        """Start from k-means and sharpen the assignments; returns what the run's record says of it."""
        bar.set_description("clustering")
        codes = np.concatenate([code.numpy() for _, code, _ in outputs(module, source)])
        k_means = KMeans(self.n_clusters, n_init=KMEANS_STARTS, random_state=seed).fit(codes)
        with torch.no_grad():
            module.centers.copy_(torch.from_numpy(k_means.cluster_centers_))
        target = _Target(module, source, self.tol)

        def objective(module: nn.Module, x: Tensor, indices: NDArray[np.intp], iteration: int) -> Divergence:
            _, logits = module(x)
            p = target.distribution[indices].to(x.device)
            return Divergence(functional.kl_div(logits.log_softmax(dim=1), p, reduction="batchmean"))

        trainer = Trainer(
            module,
            source,
            objective,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed,
            optimizer="sgd",
        )
        interval = self.update_interval or max(trainer.batches_per_epoch // 2, MIN_INTERVAL)

        def on_step(trainer: Trainer, loss: float) -> bool:
            bar.update()
            return trainer.iteration % interval == 0 and target.refresh()

        ending = trainer.advance(self.max_iter, on_step=on_step)
        trainer.close_record()
        return {
            "outcome": "converged" if ending == "stopped" else ending,
            "n_iter": trainer.iteration,
            "history": trainer.history,
        }

    def _judge(self, record: dict[str, Any]) -> None:
        """Complete the record with the divergence on the whole data; warn of empty clusters."""
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


class _Target:
    """The target distribution of the whole data, and whether the clusters still change."""

    def __init__(self, module: DECNetwork, source: BatchSource, tol: float) -> None:
        self.module = module
        self.source = source
        self.tol = tol
        self.labels: Tensor | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Compute the target anew; returns whether fewer than ``tol`` of the items changed their cluster."""
        q = torch.cat([logits.softmax(dim=1) for _, _, logits in outputs(self.module, self.source)])
        self.distribution = target_distribution(q)
        before, self.labels = self.labels, q.argmax(dim=1)
        return before is not None and float((before != self.labels).double().mean()) < self.tol


def denoising_pair(
    encoding: nn.Linear, decoding: nn.Linear, *, is_first: bool, is_last: bool
) -> nn.Sequential:
    """One layer and its mirror image as a denoising autoencoder, Eqs. (6) to (9) of the DEC paper.

    The first decoder has no ReLU, since data may be negative, and the last encoder has none, so that the
    code keeps all information.
    """
    return nn.Sequential(
        nn.Dropout(CORRUPTION),
        encoding,
        nn.Identity() if is_last else nn.ReLU(),
        nn.Dropout(CORRUPTION),
        decoding,
        nn.Identity() if is_first else nn.ReLU(),
    )


def step_decay(rate: float) -> Callable[[int], float]:
    """The rate of each iteration, a tenth after every 20,000 of them.

    Examples
    --------
    >>> [step_decay(0.1)(i) for i in (0, 19_999, 20_000, 40_000)]
    [0.1, 0.1, 0.01, 0.001]
    """
    return lambda iteration: rate / 10 ** (iteration // DECAY_EVERY)


def _initialise(module: nn.Module, pretraining: str) -> None:
    """Small random weights of every linear layer as in the paper or, for Adam, He's; in place."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            if pretraining == "sgd":
                nn.init.normal_(layer.weight, std=0.01)
            else:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)


def _train(trainer: Trainer, iterations: int, bar: tqdm) -> float:
    """Train for so many iterations; returns the last loss of the history."""
    trainer.advance(iterations, on_step=lambda trainer, loss: bool(bar.update() and False))
    trainer.close_record()
    return trainer.history[-1]["loss"]
