"""DDC, the estimator: scikit-learn's interface on top of the restarts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn
from tqdm import tqdm

from ddclust import __version__, _runs
from ddclust._validation import (
    Interval,
    StrOptions,
    check_items,
    check_items_can_be_clustered,
    fit_context,
    resolve_device,
)
from ddclust.inference import evaluation_mode, outputs
from ddclust.losses import DDCLoss
from ddclust.networks import INITS, MLP, SMALLEST_IMAGE, ConvNet, NetworkFactory
from ddclust.persistence import ModelFormatError, check_tensors, load_model, save_model
from ddclust.sources import ArraySource, Scaling, input_shape

BUILT_IN_NETWORKS: dict[str, Callable[..., nn.Module]] = {"conv": ConvNet, "mlp": MLP}
LEARNING_RATES = {"conv": 1e-3, "mlp": 1e-5}


class DDC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Deep divergence-based clustering (Kampffmeyer et al., Neural Networks 2019).

    A network maps items to a hidden representation and soft cluster assignments; one unsupervised
    loss trains both from scratch. Of several restarts the one with the lowest loss is kept.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, k.
    network : {"auto", "conv", "mlp"} or callable, default="auto"
        ``"conv"`` is the paper's network for images, ``"mlp"`` the one for vectors; ``"auto"`` takes
        the former for images of at least 8x8 pixels. A callable ``(input_shape, n_clusters)`` returns
        a module whose forward returns ``(hidden, logits)``; images reach it as (n, c, h, w).
    loss : callable, default=DDCLoss()
        ``(hidden, assignments) -> LossTerms``; any named tuple of scalars will do.
    init : {"soft", "he"}, default="soft"
        How the output layer of the built-in networks starts: near zero, so that all points start
        undecided, or as in the paper. See :func:`ddclust.networks.initialise`.
    n_init : int, default=4
        Restarts. The paper has 20.
    max_iter : int, default=7000
        Iterations (batches) per restart: ten epochs of MNIST. The paper has 70,000.
    tol : float, default=1e-3
        Relative improvement of the loss that counts as one.
    patience : int or None, default=10
        A restart has converged after this many history records (see ``history_``) without an
        improvement. None: always ``max_iter``.
    batch_size : int, default=100
    learning_rate : float or "auto", default="auto"
        Of Adam. ``"auto"``: 1e-5 for the built-in mlp, else 1e-3.
    device : str or torch.device, default="auto"
        ``"auto"`` takes the GPU where there is one.
    random_state : int, RandomState instance or None, default=None
        Determines the restarts' seeds. The same seed gives the same labels.
    verbose : bool or int, default=False
        Show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        Soft assignments of the training data.
    runs_ : list of dict
        One record per restart: ``seed``, ``loss`` and its ``terms`` on the whole data, ``n_iter``,
        ``clusters_used``, ``seconds``, ``outcome`` (how it ended), ``history``.
    best_run_ : int
        Position in ``runs_`` of the run that was kept.
    history_ : list of dict
        Of that run: loss and terms for every epoch (for every 50 iterations and up on small data).
    n_iter_ : int
        Iterations of that run.
    module_ : nn.Module
        Its network.
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Values per item.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has string column names.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=3)
    >>> model = DDC(n_clusters=3, n_init=1, max_iter=200, random_state=0).fit(X)
    >>> model.predict(X[:5]).shape, model.predict_proba(X[:5]).shape
    ((5,), (5, 3))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "network": [StrOptions({"auto", *BUILT_IN_NETWORKS}), callable],
        "loss": [callable],
        "init": [StrOptions(set(INITS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        network: str | NetworkFactory = "auto",
        loss: _runs.ClusteringLoss = DDCLoss(),  # noqa: B008 - frozen
        init: str = "soft",
        n_init: int = 4,
        max_iter: int = 7000,
        tol: float = 1e-3,
        patience: int | None = 10,
        batch_size: int = 100,
        learning_rate: float | str = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.network = network
        self.loss = loss
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters: int, *, random_state: Any = None, verbose: bool | int = False) -> Self:
        """The paper's protocol: 20 restarts of 70,000 iterations each, He initialisation throughout.

        The loss is ``DDCLoss()``, the reading that comes close to the paper's results, not the text's
        letter. Change anything else by ``set_params``.

        Examples
        --------
        >>> DDC.paper(10).n_init
        20
        """
        return cls(
            n_clusters,
            loss=DDCLoss(),
            init="he",
            n_init=20,
            max_iter=70_000,
            tol=0.0,
            patience=None,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w)
            Vectors or images, of any numeric dtype; uint8 images stay uint8. With four axes, the
            shorter one of the second and the last holds the channels.
        y : Ignored

        Returns
        -------
        self
        """
        X = check_items(self, X, reset=True)
        check_items_can_be_clustered(X, self.n_clusters)
        plan = self._plan(X)
        self._check_network_and_loss(plan)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_init)

        runs = []
        with tqdm(total=self.n_init * self.max_iter, disable=not self.verbose, unit="it", delay=0.5) as bar:
            for index, seed in enumerate(seeds.tolist()):
                bar.set_description(f"run {index + 1}/{self.n_init}")
                runs.append(_runs.run_restart(plan, index, seed, on_step=partial(_show_step, bar)))
                bar.update((index + 1) * self.max_iter - bar.n)

        records = [run.record for run in runs]
        ranking = _runs.rank_runs(records, self.n_clusters)
        self._report_runs(records, ranking)
        best = ranking[0]
        self.module_ = plan.build_from(runs[best].weights)
        self.scaling_ = plan.source.scaling
        self.cluster_order_ = np.arange(self.n_clusters)
        probabilities = self._probabilities(plan.source)
        self.cluster_order_ = _order_by_size(probabilities.argmax(axis=1), self.n_clusters)
        self.probabilities_ = probabilities[:, self.cluster_order_]
        self.labels_ = self.probabilities_.argmax(axis=1)
        self.runs_ = records
        self.best_run_ = best
        self.history_ = records[best]["history"]
        self.n_iter_ = records[best]["n_iter"]
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The cluster of each item: the largest output of the trained network."""
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Soft assignments, of shape (n, n_clusters); the same for an item whatever its company."""
        return self._probabilities(self._source(X))

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """The hidden representation, of shape (n, d_hidden)."""
        source = self._source(X)
        representation = np.empty((len(source), self._n_features_out), dtype=np.float32)
        for rows, hidden, _ in outputs(self.module_, source):
            representation[rows] = hidden.numpy()
        return representation

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model to a new folder of JSON and safetensors, whole or not at all.

        A callable ``network`` or ``loss`` is not saved, only its name; give it to :meth:`load` again.
        A RandomState instance is saved as None.
        """
        check_is_fitted(self)
        description = {
            "ddclust_version": __version__,
            "estimator": type(self).__name__,
            "params": _params_to_json(self.get_params(deep=False)),
            "item_shape": list(self.item_shape_),
            "feature_names": self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            "cluster_order": self.cluster_order_.tolist(),
            "best_run": self.best_run_,
            "runs": self.runs_,
        }
        tensors = {f"network.{name}": value for name, value in self.module_.state_dict().items()}
        tensors["scaling.shift"] = torch.from_numpy(self.scaling_.shift)
        tensors["scaling.scale"] = torch.from_numpy(self.scaling_.scale)
        tensors["probabilities"] = torch.from_numpy(self.probabilities_)
        save_model(path, description, tensors, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        network: NetworkFactory | None = None,
        loss: _runs.ClusteringLoss | None = None,
        device: str | torch.device | None = None,
    ) -> Self:
        """Read a model that :meth:`save` wrote, on any machine. No code from the folder is run.

        Parameters
        ----------
        path : path-like
        network, loss : callable, optional
            The ones that the model was made with, if they were the user's own.
        device : str or torch.device, optional
            Where to put the model, if not where the ``device`` parameter says.

        Raises
        ------
        ModelFormatError
            The folder is missing, incomplete, damaged, foreign or of a newer version.
        """
        description, tensors = load_model(path)
        try:
            model = cls(**_params_from_json(description["params"], network=network, loss=loss))
            if device is not None:
                model.device = device
            model._validate_params()
            model._restore(path, description, tensors)
        except ModelFormatError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise ModelFormatError(
                f"The description of the model in {str(path)!r} is damaged: {type(error).__name__}: {error}"
            ) from error
        return model

    def _plan(self, X: NDArray) -> _runs.Plan:
        """Resolve every "auto" against the data."""
        kind = self._network_kind()
        rate = self.learning_rate
        return _runs.Plan(
            source=ArraySource(X, Scaling.of(X)),
            network=self._network_factory(kind),
            n_clusters=self.n_clusters,
            loss=self.loss,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=float(LEARNING_RATES.get(kind, 1e-3) if isinstance(rate, str) else rate),
            device=resolve_device(self.device),
        )

    def _network_kind(self) -> str:
        """Which network: "conv", "mlp" or "custom"."""
        if callable(self.network):
            return "custom"
        is_image = len(self.item_shape_) > 1
        if self.network == "conv" and not is_image:
            raise ValueError(
                f"network='conv' needs images of shape (n, h, w), (n, h, w, c) or (n, c, h, w), got vectors of"
                f" {self.n_features_in_} features; reshape X, or use network='mlp'."
            )
        if self.network == "auto":
            large_enough = is_image and min(input_shape(self.item_shape_)[1:]) >= SMALLEST_IMAGE
            return "conv" if large_enough else "mlp"
        return self.network

    def _network_factory(self, kind: str) -> NetworkFactory:
        if callable(self.network):
            return self.network
        return partial(BUILT_IN_NETWORKS[kind], init=self.init)

    def _check_network_and_loss(self, plan: _runs.Plan) -> None:
        """Try the network and the loss on a few items, so that a wrong one fails with a clear message."""
        with torch.random.fork_rng(devices=[]):
            module = plan.build()
        x = plan.source.batch(slice(0, 2)).to(plan.device)
        with evaluation_mode(module):
            result = module(x)
            if not (isinstance(result, tuple) and len(result) == 2):
                raise TypeError("The network's forward must return a tuple (hidden, logits).")
            hidden, logits = result
            if hidden.ndim != 2 or logits.shape != (len(x), self.n_clusters):
                raise ValueError(
                    f"The network must return hidden of shape (n, d) and logits of shape (n, {self.n_clusters}),"
                    f" got {tuple(hidden.shape)} and {tuple(logits.shape)} for n={len(x)}."
                )
            terms = plan.loss(hidden, logits.softmax(dim=1))
        if not hasattr(terms, "_fields"):
            raise TypeError(
                "loss must return a named tuple of scalar tensors, such as ddclust.losses.LossTerms,"
                f" it returned {type(terms).__name__}."
            )
        self._n_features_out = hidden.shape[1]

    def _report_runs(self, records: list[dict[str, Any]], ranking: list[int]) -> None:
        """Fail if every restart failed; warn of single failures and of clusters left empty."""
        failed = [record for record in records if record["error"] is not None]
        if not ranking:
            raise RuntimeError(f"All {len(records)} restarts failed. The first one: {failed[0]['error']}")
        if failed:
            warnings.warn(
                f"{len(failed)} of {len(records)} restarts failed. The first one: {failed[0]['error']}",
                ConvergenceWarning,
                stacklevel=4,
            )
        used = records[ranking[0]]["clusters_used"]
        if used < self.n_clusters:
            warnings.warn(
                f"The clustering uses {used} of the {self.n_clusters} clusters asked for. More restarts"
                " (n_init), more iterations (max_iter) or a smaller n_clusters may help.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _source(self, X: ArrayLike) -> ArraySource:
        check_is_fitted(self)
        return ArraySource(check_items(self, X, reset=False), self.scaling_)

    def _probabilities(self, source: ArraySource) -> NDArray[np.float32]:
        probabilities = np.empty((len(source), self.n_clusters), dtype=np.float32)
        for rows, _, logits in outputs(self.module_, source):
            probabilities[rows] = logits.softmax(dim=1)[:, self.cluster_order_].numpy()
        return probabilities

    def _restore(
        self, path: str | os.PathLike[str], description: dict[str, Any], tensors: dict[str, torch.Tensor]
    ) -> None:
        """Set every fitted attribute from a description and tensors, checking them on the way."""
        self.item_shape_ = tuple(int(side) for side in description["item_shape"])
        self.n_features_in_ = int(np.prod(self.item_shape_))
        if description["feature_names"] is not None:
            self.feature_names_in_ = np.array(description["feature_names"], dtype=object)
        self.cluster_order_ = np.array(description["cluster_order"], dtype=np.int64)
        order = self.cluster_order_
        if len(order) != self.n_clusters or not np.array_equal(np.sort(order), np.arange(len(order))):
            raise ValueError("cluster_order is not a permutation of the clusters.")
        self.runs_ = description["runs"]
        self.best_run_ = description["best_run"]
        self.history_ = self.runs_[self.best_run_]["history"]
        self.n_iter_ = self.runs_[self.best_run_]["n_iter"]

        weights = {n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network.")}
        device = resolve_device(self.device)
        factory = self._network_factory(self._network_kind())
        shape = input_shape(self.item_shape_)
        if not callable(self.network):
            with torch.device("meta"):  # shapes without memory: a damaged description allocates nothing
                expected = factory(shape, self.n_clusters).state_dict()
            check_tensors(path, weights, {name: value.shape for name, value in expected.items()})
        with torch.random.fork_rng(devices=[]):
            self.module_ = factory(shape, self.n_clusters)
        check_tensors(path, weights, {n: v.shape for n, v in self.module_.state_dict().items()})
        self.module_.load_state_dict(weights)
        self.module_.to(device).eval()

        scaling = Scaling(
            self.item_shape_, tensors["scaling.shift"].numpy(), tensors["scaling.scale"].numpy()
        )
        np.broadcast_shapes(scaling.shift.shape, scaling.scale.shape, self.item_shape_)
        self.scaling_ = scaling
        self.probabilities_ = tensors["probabilities"].numpy()
        if self.probabilities_.ndim != 2 or self.probabilities_.shape[1] != self.n_clusters:
            raise ValueError(f"probabilities have shape {self.probabilities_.shape}.")
        self.labels_ = self.probabilities_.argmax(axis=1)
        with evaluation_mode(self.module_):
            self._n_features_out = self.module_(torch.zeros(1, *shape, device=device))[0].shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []  # the network computes in float32
        return tags


def _show_step(bar: tqdm, trainer: Any, loss: float) -> None:
    bar.update()
    if trainer.iteration % 20 == 0:
        bar.set_postfix(loss=f"{loss:.4f}", refresh=False)


def _order_by_size(indices: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Outputs of the network from the largest cluster to the smallest."""
    return np.argsort(-np.bincount(indices, minlength=n_clusters), kind="stable")


def _params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON; callables of the user's own by name only."""
    plain = dict(params)
    if callable(plain["network"]):
        plain["network"] = {"custom": _name_of(plain["network"])}
    loss = plain["loss"]
    plain["loss"] = {"DDCLoss": asdict(loss)} if isinstance(loss, DDCLoss) else {"custom": _name_of(loss)}
    plain["device"] = str(plain["device"])
    if isinstance(plain["random_state"], np.random.RandomState):
        plain["random_state"] = None
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in plain.items()}


def _name_of(function: Any) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _params_from_json(plain: dict[str, Any], *, network: Any, loss: Any) -> dict[str, Any]:
    params = dict(plain)
    given = {"network": network, "loss": loss}
    for name, replacement in given.items():
        if isinstance(params[name], dict) and "custom" in params[name] and replacement is None:
            raise ModelFormatError(
                f"The model was made with a {name} of the user's own, {params[name]['custom']!r}, which is"
                f" not saved with it; pass it: DDC.load(..., {name}=...)."
            )
        if replacement is not None:
            params[name] = replacement
    if isinstance(params["loss"], dict):
        params["loss"] = DDCLoss(**params["loss"]["DDCLoss"])
    return params
