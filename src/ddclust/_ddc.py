"""DDC, the estimator: scikit-learn's interface on top of the restarts."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from torch import nn

from ddclust import __version__, _engine, _runs
from ddclust._checkpoints import RunState, RunStore
from ddclust._model_format import params_to_json
from ddclust._network_clusterer import NetworkClusterer, all_or_nothing
from ddclust._validation import Interval, StrOptions, fit_context, resolve_device
from ddclust.items import Items, fingerprint
from ddclust.losses import DDCLoss
from ddclust.merging import merged_assignments, merged_groups, network_tree, renumbered_tree
from ddclust.networks import INITS, MLP, SMALLEST_IMAGE, ConvNet, NetworkFactory
from ddclust.sources import BatchSource, Scaling, input_shape

BUILT_IN_NETWORKS: dict[str, Callable[..., nn.Module]] = {"conv": ConvNet, "mlp": MLP}
LEARNING_RATES = {"conv": 1e-3, "mlp": 1e-5}


class Snapshots(NamedTuple):
    """Soft assignments of some training items at some epochs of the best run, in the final numbering of clusters."""

    items: NDArray[np.intp]  # (m,): their places in the training data
    epochs: NDArray[np.int64]  # (s,): those of the epochs asked for that the run reached
    probabilities: NDArray[np.float32]  # (s, m, k)


class DDC(NetworkClusterer):
    """Deep divergence-based clustering (Kampffmeyer et al., Neural Networks 2019).

    A network maps items to a hidden representation and soft cluster assignments; one unsupervised
    loss trains both from scratch. Of several restarts the one with the lowest loss is kept, or the best
    ones vote; one that leaves clusters empty is kept only if there is no other.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, k.
    n_final : int or None, default=None
        Merge the clusters into so many after training: the two with the smallest Cauchy-Schwarz divergence on the
        network's representation of the whole data (of 20,000 items drawn at random, if there are more), then again.
        With ``n_vote`` each network's clusters are merged before the vote. See :mod:`ddclust.merging`.
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
    n_vote : int, default=1
        How many of the best restarts, by unsupervised loss, vote on each item; the others are aligned
        to the best one, which also decides ties. The paper's DDC-VOTE has 3.
    criterion : {"loss", "divergence", "agreement"}, default="loss"
        Which restarts are the best: those with the lowest total loss, with the lowest divergence term (the later
        practice of the paper's authors), or those whose labels agree most with the labels of the other restarts, by
        the mean adjusted Rand index (for which every restart labels the data once more, or 10,000 of its items). None
        of them needs labels from outside.
    early_elimination : bool, default=False
        Stop hopeless restarts early: successive halving by the unsupervised loss at an eighth, a
        quarter and a half of ``max_iter``, whatever the ``criterion``.
    max_iter : int, default=7000
        Iterations (batches) per restart: ten epochs of MNIST. The paper has 70,000.
    tol : float, default=1e-3
        Relative improvement of the loss that counts as one.
    patience : int or None, default=10
        A restart has converged after this many history records (see ``history_``) without an
        improvement. None: always ``max_iter``.
    batch_size : int, default=100
    language : str, default="english"
        Of texts: whose word stems are counted. See :class:`ddclust.text.StemVectorizer`.
    learning_rate : float or "auto", default="auto"
        Of Adam. ``"auto"``: 1e-5 for the built-in mlp, else 1e-3.
    n_jobs : int or None, default=-1
        Restarts to run side by side, by joblib's conventions: -1 for all cores, None for 1 unless a
        ``joblib.parallel_config`` says otherwise. Several restarts train on one thread each, wherever
        they run, so the results do not depend on it; a single one uses all threads.
    device : str or torch.device, default="auto"
        ``"auto"`` takes the GPU where there is one.
    checkpoint_dir : path-like or None, default=None
        A folder for checkpoints. A fit that was killed goes on from there when it is repeated with the
        same data and parameters, and ends with the same labels.
    snapshots : increasing sequence of int or None, default=None
        Epochs at whose end the soft assignments of the training items (of 2,000 drawn at random, if there
        are more) are kept, see ``snapshots_``; 0 is before the first step.
    random_state : int, RandomState instance or None, default=None
        Determines the restarts' seeds. The same seed gives the same labels.
    verbose : bool or int, default=False
        Show a progress bar, also for predictions that take more than two seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters are numbered by size, the largest is 0.
    probabilities_ : ndarray of shape (n_samples, n_clusters_)
        Soft assignments of the training data; with ``n_vote``, the mean of those networks that voted for
        the item's cluster.
    agreement_ : ndarray of shape (n_samples,)
        The share of voting networks that agree on the item's cluster.
    member_labels_ : ndarray of shape (n_kept, n_samples)
        The clusters by each of the networks that were kept, in the same numbering, the best first. Not saved with the
        model.
    n_clusters_ : int
        ``n_final``, or ``n_clusters`` without it.
    merge_tree_ : ndarray of shape (n_clusters - 1, 4)
        How the best network's clusters merge down to a single one, in the linkage format of
        :mod:`scipy.cluster.hierarchy`, see :func:`ddclust.merging.merge_tree`. Only with ``n_final``.
    fine_labels_ : ndarray of shape (n_samples,)
        The best network's clusters before merging; fine cluster i went into cluster ``cluster_groups_[0][i]``. Only with
        ``n_final``; :meth:`predict_fine` gives them for other items.
    runs_ : list of dict
        One record per restart: ``seed``, ``loss`` and its ``terms`` on the whole data, ``n_iter``,
        ``clusters_used``, ``seconds``, ``outcome`` (how it ended), ``history``, with ``criterion="agreement"``
        also ``agreement``.
    voters_ : list of int
        Positions in ``runs_`` of the runs that were kept, the best first.
    history_ : list of dict
        Of the best run: loss and terms for every epoch (for every 50 iterations and up on small data).
    n_iter_ : int
        Iterations of that run.
    modules_ : list of nn.Module
        The networks of the runs that were kept.
    item_shape_ : tuple
        Shape of one item of ``X``.
    n_features_in_ : int
        Values per item.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has string column names.
    vectorizer_ : StemVectorizer
        Only if ``X`` is texts.
    snapshots_ : Snapshots
        Of the best run: ``items``, ``epochs`` (those it reached) and ``probabilities`` (epochs, items, clusters).
        Only with ``snapshots``, and not saved with the model.
    member_snapshots_ : list of Snapshots
        The same of every run that was kept, the best first.

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
        "n_final": [Interval(Integral, 1, None, closed="left"), None],
        "network": [StrOptions({"auto", *BUILT_IN_NETWORKS}), callable],
        "loss": [callable],
        "init": [StrOptions(set(INITS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_vote": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"loss", "divergence", "agreement"})],
        "early_elimination": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "language": [str],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "device": [str, torch.device],
        "checkpoint_dir": [str, os.PathLike, None],
        "snapshots": ["array-like", None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_final: int | None = None,
        network: str | NetworkFactory = "auto",
        loss: _runs.ClusteringLoss = DDCLoss(),  # noqa: B008 - frozen
        init: str = "soft",
        n_init: int = 4,
        n_vote: int = 1,
        criterion: str = "loss",
        early_elimination: bool = False,
        max_iter: int = 7000,
        tol: float = 1e-3,
        patience: int | None = 10,
        batch_size: int = 100,
        language: str = "english",
        learning_rate: float | str = "auto",
        n_jobs: int | None = -1,
        device: str | torch.device = "auto",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        snapshots: Sequence[int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_final = n_final
        self.network = network
        self.loss = loss
        self.init = init
        self.n_init = n_init
        self.n_vote = n_vote
        self.criterion = criterion
        self.early_elimination = early_elimination
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.batch_size = batch_size
        self.language = language
        self.learning_rate = learning_rate
        self.n_jobs = n_jobs
        self.device = device
        self.checkpoint_dir = checkpoint_dir
        self.snapshots = snapshots
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls, n_clusters: int, *, n_vote: int = 1, random_state: Any = None, verbose: bool | int = False
    ) -> Self:
        """The paper's protocol: 20 restarts of 70,000 iterations each, He initialisation throughout.

        With ``n_vote=3`` it is DDC-VOTE. The loss is ``DDCLoss()``, the reading that comes close to the
        paper's results, not the text's letter. Change anything else by ``set_params``.

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
            n_vote=n_vote,
            max_iter=70_000,
            tol=0.0,
            patience=None,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : data of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w), or texts
            Vectors or images, of any numeric dtype; uint8 images stay uint8. With four axes, the
            shorter one of the second and the last holds the channels. An array or memory map, a SciPy
            sparse matrix (made dense a batch at a time), a torch tensor or map-style ``Dataset`` (labels
            are ignored), anything with shape, dtype and slices such as a zarr array (read in blocks, see
            :class:`ddclust.items.BlockItems`), or a list of texts, of which the TF-IDF of the 2,000 most
            frequent word stems is clustered.
        y : Ignored

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            X = self._items(X)
            if self.n_vote > self.n_init:
                raise ValueError(
                    f"n_vote={self.n_vote} should be <= n_init={self.n_init}: only restarts can vote."
                )
            if self.n_final is not None and self.n_final > self.n_clusters:
                raise ValueError(
                    f"n_final={self.n_final} should be <= n_clusters={self.n_clusters}: clusters can only be merged."
                )
            epochs = self._snapshot_epochs()
            plan = self._plan(X)
            self._n_features_out = self._check_network_and_loss(plan, X)
            seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_init)
            states = self._run_restarts(X, plan, seeds.tolist(), epochs)
            records = [
                {key: value for key, value in state.record.items() if key != "saves"} for state in states
            ]
            source = BatchSource(X, plan.scaling)
            if self.criterion == "agreement":
                _runs.note_agreement(records, states, plan, source)
            voters = self._voters(records)
            modules = [plan.build_from(states[run].tensors) for run in voters]
            for name in ("snapshots_", "member_snapshots_", "merge_tree_", "fine_labels_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            if self.n_final is None:
                self._keep(source, records, voters, modules)
            else:
                self._merge_and_keep(source, records, voters, modules, self.n_final)
            if epochs is not None:
                items = _runs.snapshot_items(len(X), records[0]["seed"])
                self.member_snapshots_ = [
                    _developed(states[run].tensors, items, order, groups)
                    for run, order, groups in zip(
                        voters, self.cluster_orders_, self.cluster_groups_, strict=True
                    )
                ]
                self.snapshots_ = self.member_snapshots_[0]
        return self

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
        return cls._load(path, {"network": network, "loss": loss}, device)

    def predict_fine(self, X: Any) -> NDArray[np.int64]:
        """The best network's cluster of each item before merging, in the numbering of ``fine_labels_``."""
        return self._fine_labels(self._source(X))

    def _fine_labels(self, source: BatchSource) -> NDArray[np.int64]:
        return next(self._fine_probabilities(source, 1)).argmax(axis=1)

    def _merge_and_keep(
        self,
        source: BatchSource,
        records: list[dict[str, Any]],
        voters: list[int],
        modules: list[nn.Module],
        n_final: int,
    ) -> None:
        """Merge each network's clusters, then as :meth:`_keep`."""
        # Clusters of different networks, when there are more than wanted, divide the data differently and would not
        # match one to one; merged ones do.
        loss = self.loss if isinstance(self.loss, DDCLoss) else DDCLoss()
        trees = [network_tree(module, source, loss) for module in modules]
        self._keep(source, records, voters, modules, [merged_groups(tree, n_final) for tree in trees])
        self.merge_tree_ = renumbered_tree(trees[0], self.cluster_orders_[0])
        self.fine_labels_ = self._fine_labels(source)

    def _plan(self, X: Items) -> _runs.Plan:
        """Resolve every "auto" against the data."""
        kind = self._network_kind()
        rate = self.learning_rate
        return _runs.Plan(
            scaling=Scaling.of(X),
            network=self._network_factory(kind),
            n_clusters=self.n_clusters,
            loss=self.loss,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=float(LEARNING_RATES.get(kind, 1e-3) if isinstance(rate, str) else rate),
            device=resolve_device(self.device),
            threads=1 if self.n_init > 1 else torch.get_num_threads(),
        )

    def _run_restarts(
        self, X: Items, plan: _runs.Plan, seeds: list[int], snapshot_epochs: tuple[int, ...] | None
    ) -> list[RunState]:
        """Every restart's last state; with a ``checkpoint_dir`` from where an earlier fit left it."""

        def run_all(seeds: list[int], store: RunStore | None = None) -> list[RunState]:
            snapshots = None
            if snapshot_epochs is not None:
                snapshots = _runs.SnapshotPlan(snapshot_epochs, _runs.snapshot_items(len(X), seeds[0]))
            return _engine.run_all(
                X,
                replace(plan, snapshots=snapshots),
                seeds,
                n_keep=self.n_vote,
                eliminate=self.early_elimination,
                n_jobs=self.n_jobs,
                store=store,
                verbose=bool(self.verbose),
            )

        if self.checkpoint_dir is None:
            return run_all(seeds)
        store = RunStore(self.checkpoint_dir)
        try:
            seeds = store.claim(self._identity(X, plan), seeds, own_seeds=self.random_state is not None)
            return run_all(seeds, store)
        finally:
            store.release()

    def _snapshot_epochs(self) -> tuple[int, ...] | None:
        """The epochs of the snapshots, checked."""
        if self.snapshots is None:
            return None
        epochs = tuple(self.snapshots)
        numbers = all(isinstance(epoch, Integral) and epoch >= 0 for epoch in epochs)
        if not epochs or not numbers or any(a >= b for a, b in itertools.pairwise(epochs)):
            raise ValueError(
                f"snapshots={self.snapshots!r} must hold at least one epoch, whole numbers from 0 on, each larger than"
                " the one before."
            )
        return tuple(int(epoch) for epoch in epochs)

    def _identity(self, X: Items, plan: _runs.Plan) -> dict[str, Any]:
        """What a checkpoint must agree in with this fit, so that going on gives what starting would."""
        params = params_to_json(self.get_params(deep=False))
        indifferent = ["n_jobs", "device", "checkpoint_dir", "random_state", "verbose"]
        indifferent += ["n_final", "criterion"]  # which come after the training
        if not self.early_elimination:
            indifferent.append("n_vote")  # with elimination, so many survive
        return {
            "ddclust": __version__,
            "torch": torch.__version__,
            "data": fingerprint(X),
            "parameters": {name: value for name, value in params.items() if name not in indifferent},
            "threads": plan.threads,
        }

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

    def _build(self) -> nn.Module:
        return self._network_factory(self._network_kind())(input_shape(self.item_shape_), self.n_clusters)

    def _network_factory(self, kind: str) -> NetworkFactory:
        if callable(self.network):
            return self.network
        return partial(BUILT_IN_NETWORKS[kind], init=self.init)

    def _check_network_and_loss(self, plan: _runs.Plan, X: Items) -> int:
        """Try both on a few items, so that a wrong one fails with a clear message; returns the hidden size."""
        with torch.random.fork_rng(devices=[]):
            module = plan.build().eval()
            if not any(parameter.requires_grad for parameter in module.parameters()):
                raise TypeError("The network has no parameters to train.")
            x = BatchSource(X, plan.scaling).batch(slice(0, 2)).to(plan.device)
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
        scalars = hasattr(terms, "_fields") and all(
            isinstance(t, torch.Tensor) and t.ndim == 0 for t in terms
        )
        if not scalars or not any(term.requires_grad for term in terms):
            raise TypeError(
                "loss must return a named tuple of scalar tensors that depend on its arguments, such as"
                f" ddclust.losses.LossTerms; it returned {terms!r:.200}."
            )
        if self.criterion == "divergence" and "divergence" not in terms._fields:
            raise ValueError(
                f"criterion='divergence' needs a loss with a term of that name; this one has {terms._fields}."
            )
        return hidden.shape[1]

    def _voters(self, records: list[dict[str, Any]]) -> list[int]:
        """The runs to keep, best first. Fails if there is none, and warns of all that is not as asked for."""
        wanted = self.n_clusters if self.n_final is None else self.n_final
        ranking = _runs.rank_runs(records, wanted, self.criterion)
        failed = [record for record in records if record["error"] is not None]
        interrupted = any(record["outcome"] in ("interrupted", "waiting") for record in records)
        if not ranking and interrupted:
            raise KeyboardInterrupt
        if not ranking:
            raise _runs.AllRunsFailedError(
                f"All {len(records)} restarts failed. The first one: {failed[0]['error']}"
            )
        complete = [run for run in ranking if records[run]["clusters_used"] >= wanted]
        voters = (complete or ranking)[: self.n_vote]
        if failed:
            _warn(f"{len(failed)} of {len(records)} restarts failed. The first one: {failed[0]['error']}")
        if not complete:
            _warn(
                f"The clustering uses {records[ranking[0]]['clusters_used']} of the {wanted} clusters asked"
                " for. More restarts (n_init), more iterations (max_iter) or a smaller n_clusters may help."
            )
        if interrupted:
            way = (
                "Fit again"
                if self.checkpoint_dir is not None
                else "With a checkpoint_dir, fitting again is the way"
            )
            _warn(f"Interrupted: the best so far is kept. {way} to go on from where it stopped.")
        elif len(voters) < self.n_vote:
            _warn(
                f"Only {len(voters)} of the {self.n_vote} votes asked for could be cast: the other restarts failed or"
                " left clusters empty."
            )
        return voters


def _developed(
    tensors: dict[str, torch.Tensor],
    items: NDArray[np.intp],
    cluster_order: NDArray[np.int64],
    cluster_groups: NDArray[np.int64],
) -> Snapshots:
    """The snapshots of a run from its state."""
    taken = {
        int(name.removeprefix(_runs.SNAPSHOT_PREFIX)): probabilities.numpy()[:, cluster_order]
        for name, probabilities in tensors.items()
        if name.startswith(_runs.SNAPSHOT_PREFIX)
    }
    epochs = np.array(sorted(taken), dtype=np.int64)
    probabilities = np.empty((len(epochs), len(items), len(cluster_order)), dtype=np.float32)
    for place, epoch in enumerate(epochs):
        probabilities[place] = taken[epoch]
    return Snapshots(items, epochs, merged_assignments(probabilities, cluster_groups))


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=6)  # the caller of fit
