"""DDC, the estimator: scikit-learn's interface to the runs of a fit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from torch import nn

from ddclust.base import NetworkClusterer, all_or_nothing
from ddclust.choosing.merging import merged_groups, network_tree, renumbered_tree
from ddclust.choosing.selection import CRITERIA, Selection, chosen_runs, note_agreement
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items
from ddclust.data.links import checked_links
from ddclust.data.neighbors import neighbors_of
from ddclust.data.validation import Interval, StrOptions, fit_context
from ddclust.data.views import ViewItems, scaling_of_views
from ddclust.defaults import AUTO, resolve, resolved_network
from ddclust.networks import KINDS, Network, NetworkFactory
from ddclust.objective.augment import BUILT_IN, Augmentation
from ddclust.objective.loss import DDCLoss
from ddclust.objective.objective import ClusteringLoss
from ddclust.objective.pairs import Pairs
from ddclust.progress import say
from ddclust.storage.plain import to_plain
from ddclust.training.callbacks import Callback, kept_arrays
from ddclust.training.checkpoints import RunState, RunStore
from ddclust.training.engine import run_all
from ddclust.training.rates import ConstantRate, CosineRate
from ddclust.training.setup import Plan, Setup
from ddclust.training.trainer import EarlyStopping
from ddclust.trial import try_out

NEIGHBORS_FILE = "neighbors"
OPTIONAL_ATTRIBUTES = ("snapshots_", "member_snapshots_", "merge_tree_", "fine_labels_")


class DDC(NetworkClusterer):
    """Deep divergence-based clustering (Kampffmeyer et al., Neural Networks 2019).

    A network maps items to a hidden representation and soft cluster assignments. One unsupervised loss trains it from
    scratch, end to end. Several runs are made, and the one with the lowest loss is kept, or the best ones vote.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, k.
    n_final : int or None, default=None
        Number of clusters after merging. The two clusters with the smallest Cauchy-Schwarz divergence are merged
        until ``n_final`` are left. See :mod:`ddclust.choosing.merging`.
    network : {"auto", "conv", "mlp"}, Network or callable, default="auto"
        ``"conv"`` is the paper's network for images, ``"mlp"`` the one for vectors. ``"auto"`` takes ``"conv"`` for images
        of at least 8x8 pixels. ``Network(init="he")`` also sets how the output layer starts. A callable
        ``(input_shape, n_clusters)`` returns a module whose forward returns ``(hidden, logits)``; images reach it as
        (n, c, h, w).
    loss : "auto", DDCLoss or callable, default="auto"
        ``DDCLoss(weights={"orthogonality": 10})`` changes the weight of a term, ``DDCLoss(cluster_sizes=[60, 30, 10])`` the
        sizes that clusters are drawn to. A callable ``(hidden, assignments)`` returns a named tuple of scalars; it may
        have a method ``at(progress)`` that gives its form at a moment of training, from 0 to 1, ``settles_at``, the
        moment from which on it stays the same, and a mapping ``weights`` of the terms of pairs.
    augment : {"auto", "affine", "photo", "noise", "dropout"}, augmentation, callable or None, default="auto"
        Each item is paired with a randomly augmented copy, which should be in the same cluster. ``"affine"`` rotates,
        shifts, scales and shears images; ``"photo"`` also flips them and changes brightness and colour;
        ``"noise"`` is for dense vectors, ``"dropout"`` for texts and other sparse vectors. ``Affine(rotation=20)`` and the
        like set the strength. A callable maps a batch to a changed one of the same shape, and draws from
        torch's random state on the CPU. ``"auto"`` depends on the data, see ``neighbors``.
    neighbors : int, "auto" or None, default="auto"
        Each item is paired with one of this many nearest neighbours, which should be in the same cluster. With ``augment``
        it is paired with a copy of itself or of a neighbour. If both are ``"auto"``, images get affine copies and 2
        neighbours, texts copies without most words and 20 neighbours, dense vectors 10 neighbours, and views no
        pairs. If only one is ``"auto"``, it is None. So ``augment=None`` alone means no pairs, as in the paper.
    n_init : int, default=4
        Number of runs, from different seeds. The paper has 20.
    n_vote : int, default=1
        How many of the best runs vote on each item. The paper's DDC-VOTE has 3.
    selection : {"loss", "divergence", "pairs", "agreement"} or Selection, default="loss"
        Which runs are the best, without labels. ``Selection(halving=True)`` stops hopeless runs early.
    max_iter : int, default=3500
        Iterations (batches) of a run at most: five epochs of MNIST. The paper has 70,000.
    batch_size : int, default=100
    learning_rate : float, "auto", ConstantRate or CosineRate, default="auto"
        Learning rate of Adam. ``"auto"`` depends on network and data (:mod:`ddclust.defaults`). With pairs it falls along a
        cosine, unless ``ConstantRate`` says otherwise.
    early_stopping : EarlyStopping, "auto" or None, default="auto"
        When a run has converged. None: never. ``"auto"``: never if the learning rate falls to zero, else
        ``EarlyStopping()``.
    language : str, default="english"
        Language of texts, for their word stems. See :class:`ddclust.data.text.StemVectorizer`.
    n_jobs : int or None, default=-1
        Runs to train side by side, by joblib's conventions. Several runs train on one thread each, so the result does not
        depend on ``n_jobs``; a single run uses all threads.
    device : str or torch.device, default="auto"
        ``"auto"`` takes the GPU where there is one.
    checkpoint_dir : path-like or None, default=None
        Folder for checkpoints. A fit that was killed continues from there when it is repeated with the same data and
        parameters, and ends with the same labels.
    callbacks : list of Callback or None, default=None
        Called in the course of every run: see :class:`ddclust.training.callbacks.Callback`, and :class:`ddclust.Snapshots`.
    random_state : int, RandomState instance or None, default=None
        Determines the seeds of the runs. The same value gives the same labels.
    verbose : bool or int, default=False
        Show what items are paired with, and a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each item. Clusters are numbered by size, the largest is 0.
    probabilities_ : ndarray of shape (n_samples, n_clusters_)
        Soft assignments; with ``n_vote`` the mean of the networks that voted for the item's cluster.
    agreement_ : ndarray of shape (n_samples,)
        Share of the voting networks that agree on the item's cluster.
    member_labels_ : ndarray of shape (n_kept, n_samples)
        Clusters by each network that was kept, the best first. Not saved with the model.
    n_clusters_ : int
        ``n_final``, or ``n_clusters`` without it.
    merge_tree_ : ndarray of shape (n_clusters - 1, 4)
        How the best network's clusters merge, in SciPy's linkage format. Only with ``n_final``.
    fine_labels_ : ndarray of shape (n_samples,)
        The best network's clusters before merging. Only with ``n_final``.
    runs_ : list of dict
        A record for each run: ``seed``, ``loss`` and ``terms`` on the whole data, ``n_iter``, ``clusters_used``,
        ``seconds``, ``outcome``, ``history``.
    voters_ : list of int
        Positions in ``runs_`` of the runs that were kept, the best first.
    history_ : list of dict
        Loss and terms of the best run for every epoch (for 50 iterations and more on small data).
    n_iter_ : int
        Iterations of the best run.
    setup_ : Setup
        All parameters with every "auto" resolved; ``print(model.setup_)`` shows them.
    modules_ : list of nn.Module
        The networks that were kept.
    item_shape_ : tuple
        Shape of an item of ``X``.
    n_features_in_ : int
        Values of an item.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has column names.
    vectorizer_ : StemVectorizer
        Only if ``X`` is texts.
    view_shapes_ : list of tuple
        Shape of an item in each view. Only if ``X`` is a list of views.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=3)
    >>> model = DDC(n_clusters=3, n_init=1, max_iter=200, random_state=0).fit(X)
    >>> model.predict(X[:5]).shape, model.predict_proba(X[:5]).shape
    ((5,), (5, 3))
    """

    takes_views = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_final": [Interval(Integral, 1, None, closed="left"), None],
        "network": [StrOptions(set(KINDS)), callable],
        "loss": [StrOptions({AUTO}), callable],
        "augment": [StrOptions({AUTO, *BUILT_IN}), callable, None],
        "neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_vote": [Interval(Integral, 1, None, closed="left")],
        "selection": [StrOptions(set(CRITERIA)), Selection],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [
            StrOptions({AUTO}),
            Interval(Real, 0, None, closed="neither"),
            ConstantRate,
            CosineRate,
        ],
        "early_stopping": [StrOptions({AUTO}), EarlyStopping, None],
        "language": [str],
        "n_jobs": [Integral, None],
        "device": [str, torch.device],
        "checkpoint_dir": [str, os.PathLike, None],
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_final: int | None = None,
        network: str | NetworkFactory = AUTO,
        loss: str | ClusteringLoss = AUTO,
        augment: str | Augmentation | None = AUTO,
        neighbors: int | str | None = AUTO,
        n_init: int = 4,
        n_vote: int = 1,
        selection: str | Selection = "loss",
        max_iter: int = 3500,
        batch_size: int = 100,
        learning_rate: float | str | ConstantRate | CosineRate = AUTO,
        early_stopping: str | EarlyStopping | None = AUTO,
        language: str = "english",
        n_jobs: int | None = -1,
        device: str | torch.device = AUTO,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_final = n_final
        self.network = network
        self.loss = loss
        self.augment = augment
        self.neighbors = neighbors
        self.n_init = n_init
        self.n_vote = n_vote
        self.selection = selection
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.language = language
        self.n_jobs = n_jobs
        self.device = device
        self.checkpoint_dir = checkpoint_dir
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls, n_clusters: int, *, n_vote: int = 1, random_state: Any = None, verbose: bool | int = False
    ) -> Self:
        """The paper's protocol: 20 runs of 70,000 iterations each and no pairs; with ``n_vote=3`` it is DDC-VOTE.

        Loss and initialisation are the reading of the paper that comes closest to its results, see docs/readings.md.
        Change anything else by ``set_params``.

        Examples
        --------
        >>> DDC.paper(10).n_init
        20
        """
        return cls(
            n_clusters,
            loss=DDCLoss.paper(),
            augment=None,
            neighbors=None,
            n_init=20,
            n_vote=n_vote,
            max_iter=70_000,
            early_stopping=None,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : data of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w), or texts
            Vectors or images of any numeric dtype; uint8 images stay uint8. With four axes, the
            shorter one of the second and the last holds the channels. It may be an array, memory map, data frame, SciPy
            sparse matrix, torch tensor or map-style ``Dataset`` (labels are ignored), anything
            with shape, dtype and slices such as a zarr array, or a list of texts. A list of two to nine such arrays with a
            row for each item is taken as views of the same items; each view gets a network of its own.
        y : Ignored
        must_link, cannot_link : array-like of int of shape (m, 2), optional
            Positions of items in ``X`` that must, or must not, share a cluster. The result may break some of them.

        Returns
        -------
        self

        Raises
        ------
        ddclust.data.links.LinkError
            The pairs are not items of X, or contradict each other.
        """
        with all_or_nothing(self):
            X = self._items(X)
            plan = self._plan(X, must_link, cannot_link)
            setup = plan.setup
            self._n_features_out = try_out(plan, X)
            if self.verbose:
                say(f"Pairs: {setup.pairs_in_words}.")
            seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_init)
            states = self._train(X, plan, seeds.tolist())
            source = BatchSource(X, plan.scaling)
            if setup.criterion == "agreement":
                note_agreement(states, plan, source)
            records = [state.record for state in states]
            voters, complaints = chosen_runs(records, setup, can_resume=self.checkpoint_dir is not None)
            for complaint in complaints:
                warnings.warn(complaint, ConvergenceWarning, stacklevel=3)  # the caller of fit
            for name in OPTIONAL_ATTRIBUTES:
                self.__dict__.pop(name, None)  # of an earlier fit
            modules = [plan.build_from(states[run].tensors) for run in voters]
            self._keep_or_merge(source, setup, [record.public() for record in records], voters, modules)
            self.setup_ = setup
            kept = [kept_arrays(state.tensors) for state in states]
            for callback in plan.callbacks:
                callback.on_fit_end(self, kept)
        return self

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        network: NetworkFactory | None = None,
        loss: ClusteringLoss | None = None,
        augment: Augmentation | None = None,
        device: str | torch.device | None = None,
    ) -> Self:
        """Read a model that :meth:`save` wrote, on any machine. No code from the folder is run.

        Parameters
        ----------
        path : path-like
            A model folder, or the result folder of ``ddclust fit``.
        network, loss, augment : callable, optional
            The ones that the model was made with, if they were the user's own.
        device : str or torch.device, optional
            Where to put the model, if not where the ``device`` parameter says.

        Raises
        ------
        ModelFormatError
            The folder is missing, incomplete, damaged, foreign or of a newer version.
        """
        return cls._load(path, {"network": network, "loss": loss, "augment": augment}, device)

    def predict_fine(self, X: Any) -> NDArray[np.int64]:
        """The best network's cluster of each item before merging, in the numbering of ``fine_labels_``."""
        return self._fine_labels(self._source(X))

    def fit_identity(self, X: Any) -> dict[str, Any]:
        """What the runs of a fit of X depend on, as JSON: versions, the data, the setup and the seed."""
        other = clone(self)  # so that this model, if it is fitted, stays as it is
        other._validate_params()
        items = other._items(X)
        return other._plan(items).identity(items) | {"random_state": to_plain(self.random_state)}

    def _plan(self, X: Items, must_link: Any = None, cannot_link: Any = None) -> Plan:
        """What all runs have in common, with everything resolved against the data."""
        self._check_parameters(len(X))
        links = checked_links(must_link, cannot_link, n_items=len(X), n_clusters=self.n_clusters)
        scaling = scaling_of_views(X) if isinstance(X, ViewItems) else Scaling.of(X)
        setup = resolve(self, X, scaling)
        return Plan(setup, scaling, Pairs(setup.augment, links=links), tuple(self.callbacks or ()))

    def _check_parameters(self, n_samples: int) -> None:
        """Refuse parameters that contradict each other or the data, and callbacks that are none."""
        if self.n_vote > self.n_init:
            raise ValueError(
                f"n_vote={self.n_vote} should be <= n_init={self.n_init}: only runs that are made can vote."
            )
        if isinstance(self.neighbors, Integral) and self.neighbors >= n_samples:
            raise ValueError(
                f"neighbors={self.neighbors} should be < n_samples={n_samples}: an item is not its own neighbour."
            )
        if self.n_final is not None and self.n_final > self.n_clusters:
            raise ValueError(
                f"n_final={self.n_final} should be <= n_clusters={self.n_clusters}: clusters can only be merged."
            )
        for callback in self.callbacks or ():
            if not isinstance(callback, Callback):
                raise TypeError(
                    f"callbacks must be objects of subclasses of ddclust.Callback, got {callback!r}."
                )

    def _train(self, X: Items, plan: Plan, seeds: list[int]) -> list[RunState]:
        """The last state of every run; with a ``checkpoint_dir`` from where an earlier fit left it."""
        if self.checkpoint_dir is None:
            return self._run_all(X, plan, seeds)
        store = RunStore(self.checkpoint_dir)
        identity = plan.identity(X)
        if self.random_state is not None:  # else the seeds are those of the folder
            identity["seeds"] = seeds
        with store.claimed(identity, seeds=seeds) as found:
            return self._run_all(X, plan, found["seeds"], store)

    def _run_all(
        self, X: Items, plan: Plan, seeds: list[int], store: RunStore | None = None
    ) -> list[RunState]:
        """Find the neighbours, if there are to be any, and train all runs."""
        n_neighbors = plan.setup.neighbors
        if n_neighbors is not None:

            def found() -> NDArray[np.int32]:
                return neighbors_of(BatchSource(X, plan.scaling), n_neighbors, verbose=self.verbose)

            neighbors = found() if store is None else store.remembered(NEIGHBORS_FILE, found)
            plan = replace(plan, pairs=replace(plan.pairs, neighbors=neighbors))
        return run_all(X, plan, seeds, n_jobs=self.n_jobs, store=store, verbose=bool(self.verbose))

    def _keep_or_merge(
        self,
        source: BatchSource,
        setup: Setup,
        records: list[dict[str, Any]],
        voters: list[int],
        modules: list[nn.Module],
    ) -> None:
        """Keep the networks; with ``n_final``, merge the clusters of each first."""
        if setup.n_final is None:
            self._keep(source, records, voters, modules)
            return
        # Before merging, clusters of different networks divide the data differently and do not match one to one.
        loss = setup.loss if isinstance(setup.loss, DDCLoss) else DDCLoss()
        trees = [network_tree(module, source, loss) for module in modules]
        groups = [merged_groups(tree, setup.n_final) for tree in trees]
        self._keep(source, records, voters, modules, groups)
        self.merge_tree_ = renumbered_tree(trees[0], self.cluster_orders_[0])
        self.fine_labels_ = self._fine_labels(source)

    def _fine_labels(self, source: BatchSource) -> NDArray[np.int64]:
        return next(self._fine_probabilities(source, 1)).argmax(axis=1)

    def _build(self) -> nn.Module:
        factory = resolved_network(self.network, self.item_shape_, getattr(self, "view_shapes_", None))
        return factory(input_shape(self.item_shape_), self.n_clusters)

    def _network_is_built_in(self) -> bool:
        return isinstance(self.network, (str, Network))
