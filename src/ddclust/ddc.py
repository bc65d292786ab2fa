"""DDC, the estimator: scikit-learn's interface on top of the restarts."""

from __future__ import annotations

import itertools
import os
import sys
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
from tqdm import tqdm

from ddclust import __version__
from ddclust.base import NetworkClusterer, all_or_nothing
from ddclust.choosing.merging import merged_assignments, merged_groups, network_tree, renumbered_tree
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items, SparseItems, fingerprint
from ddclust.data.links import Links, checked_links
from ddclust.data.neighbors import neighbor_indices, topic_vectors
from ddclust.data.validation import Interval, StrOptions, fit_context, resolve_device
from ddclust.data.views import ViewItems, ViewsNetwork, scaling_of_views
from ddclust.defaults import AUTO, Partners, chosen_partners
from ddclust.networks import INITS, MLP, SMALLEST_IMAGE, ConvNet, NetworkFactory
from ddclust.objective.augment import BUILT_IN as BUILT_IN_AUGMENTATIONS
from ddclust.objective.augment import Augmentation
from ddclust.objective.losses import DDCLoss
from ddclust.objective.pairs import CANNOT_LINK, MUST_LINK, NO_LINKS, PARTNERS, ClusteringLoss, Knowledge
from ddclust.saving import params_to_json
from ddclust.training import engine as _engine
from ddclust.training import run as _runs
from ddclust.training.checkpoints import RunState, RunStore

BUILT_IN_NETWORKS: dict[str, Callable[..., nn.Module]] = {"conv": ConvNet, "mlp": MLP}
LEARNING_RATES = {"conv": 1e-3, "mlp": 1e-5}
PARTNERS_LEARNING_RATES = {"conv": 3e-3, "mlp": 1e-4}
SPARSE_PARTNERS_LEARNING_RATES = {"mlp": 3e-3}
PATIENCE = 10
# Weight of the overlap with partners and given sizes, which stay true to the end; a stronger start, which is towards equal
# ones, would divide large classes and merge small ones.
SIZED_BALANCE = 25.0
NEIGHBORS_FILE = "neighbors"


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
        With ``n_vote`` each network's clusters are merged before the vote. See :mod:`ddclust.choosing.merging`.
    network : {"auto", "conv", "mlp"} or callable, default="auto"
        ``"conv"`` is the paper's network for images, ``"mlp"`` the one for vectors; ``"auto"`` takes
        the former for images of at least 8x8 pixels. A callable ``(input_shape, n_clusters)`` returns
        a module whose forward returns ``(hidden, logits)``; images reach it as (n, c, h, w).
    loss : "auto" or callable, default="auto"
        ``(hidden, assignments) -> LossTerms``; any named tuple of scalars will do. ``"auto"``: ``DDCLoss()``, or
        ``DDCLoss.for_partners(n_clusters)`` if items have partners.
    augment : {"auto", "affine", "photo", "noise", "dropout"}, callable or None, default="auto"
        A partner of every item: a randomly changed copy, which should be in the same cluster. ``"affine"`` turns,
        moves, stretches and slants images; ``"photo"`` also mirrors them and changes their light and colour;
        ``"noise"`` is for dense vectors, ``"dropout"`` leaves out words of texts and other sparse vectors. For other
        strengths give an object of :mod:`ddclust.objective.augment`, such as ``Affine(rotation=20)``. A callable takes a batch
        as the network does, (n, c, h, w) or (n, d), and returns one of the same shape; what it draws should come from
        torch's random state on the CPU, the one that fits set and checkpoints hold. ``"auto"``, if ``neighbors`` and
        ``loss`` are so too: what goes with the data, see ``neighbors``; else None.
    neighbors : int, "auto" or None, default="auto"
        A partner of every item: one of so many nearest neighbours, drawn anew each time. They are found before
        training, in all the data at once: for sparse vectors and texts by the cosine of their topics
        (:func:`ddclust.data.neighbors.topic_vectors`), else by the Euclidean distance of what the network takes. See
        :func:`ddclust.data.neighbors.neighbor_indices`. With ``augment`` the partner is a changed
        copy of the item itself or of one of these, each of them as likely. ``"auto"``, if ``augment`` and ``loss`` are
        so too: images get affine copies of themselves and of two neighbours, texts and other sparse vectors get copies
        of themselves and of 20 neighbours without most of the words, dense vectors get ten neighbours, and views
        nothing; no neighbours of dense data of more than 2 GiB as float32. Else None.
    partner_weight : float, default=1
        Of the mean of -log<alpha(x), alpha(partner of x)> beside the loss.
    link_weight : float, default=1
        Of the same for the pairs that are given to :meth:`fit`.
    balance : float or None, default=None
        Weight of the term that spreads items evenly over the clusters, if not the loss's own (1, and with partners 50 at
        the start, which falls to 5, or 25 throughout with ``cluster_sizes``). 10 to 50 where clusters are known to be of
        about one size. Only with a ``DDCLoss``.
    cluster_sizes : array-like of n_clusters numbers, "k-means" or None, default=None
        Shares of the items, or counts, that clusters are drawn to, in any order; training starts with equal ones and goes
        over to these in its first third. By default clusters of one size, as in the paper. ``"k-means"``: the sizes that
        k-means finds, which are no better than its clusters. Only with a ``DDCLoss``.
    init : {"soft", "he"}, default="soft"
        How the output layer of the built-in networks starts: near zero, so that all points start
        undecided, or as in the paper. See :func:`ddclust.networks.initialise`.
    n_init : int, default=4
        Restarts. The paper has 20.
    n_vote : int, default=1
        How many of the best restarts, by unsupervised loss, vote on each item; the others are aligned
        to the best one, which also decides ties. The paper's DDC-VOTE has 3.
    criterion : {"loss", "divergence", "partners", "agreement"}, default="loss"
        Which restarts are the best: those with the lowest total loss, with the lowest divergence term (the later
        practice of the paper's authors), with the lowest partners term (whose assignments change least from an item to
        its partners), or those whose labels agree most with the labels of the other restarts, by
        the mean adjusted Rand index (for which every restart labels the data once more, or 10,000 of its items). None
        of them needs labels from outside; docs/selection.md has what each is worth.
    early_elimination : bool, default=False
        Stop hopeless restarts early: successive halving by the unsupervised loss at an eighth, a
        quarter and a half of ``max_iter``, whatever the ``criterion``.
    max_iter : int, default=3500
        Iterations (batches) per restart: five epochs of MNIST. The paper has 70,000.
    tol : float, default=1e-3
        Relative improvement of the loss that counts as one.
    patience : int, "auto" or None, default="auto"
        A restart has converged after this many history records (see ``history_``) without an
        improvement. None: always ``max_iter``. ``"auto"``: 10, and None with a learning rate that falls to the end.
    batch_size : int, default=100
    language : str, default="english"
        Of texts: whose word stems are counted. See :class:`ddclust.data.text.StemVectorizer`.
    learning_rate : float or "auto", default="auto"
        Of Adam. ``"auto"``: 1e-3, and 1e-5 for the built-in mlp; with partners 3e-3 for the built-in conv, and for the
        built-in mlp 3e-3 on texts and other sparse vectors and 1e-4 on dense vectors and on views.
    schedule : {"auto", "constant", "cosine"}, default="auto"
        Whether that is the rate of all iterations, or the first one's, from which it falls along half a cosine to 0 at
        ``max_iter``. ``"auto"``: the latter with partners.
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
        Say which partners items have and show a progress bar, also for predictions that take more than two seconds.

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
        :mod:`scipy.cluster.hierarchy`, see :func:`ddclust.choosing.merging.merge_tree`. Only with ``n_final``.
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
    view_shapes_ : list of tuple
        Shape of one item in each view. Only if ``X`` is a list of views; ``item_shape_`` then counts all their values.
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

    takes_views = True
    _params_of_before: ClassVar[dict[str, Any]] = {"augment": None, "neighbors": None}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_final": [Interval(Integral, 1, None, closed="left"), None],
        "network": [StrOptions({"auto", *BUILT_IN_NETWORKS}), callable],
        "loss": [StrOptions({"auto"}), callable],
        "augment": [StrOptions({AUTO, *BUILT_IN_AUGMENTATIONS}), callable, None],
        "neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "partner_weight": [Interval(Real, 0, None, closed="left")],
        "link_weight": [Interval(Real, 0, None, closed="left")],
        "balance": [Interval(Real, 0, None, closed="left"), None],
        "cluster_sizes": ["array-like", StrOptions({"k-means"}), None],
        "init": [StrOptions(set(INITS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_vote": [Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions(set(_runs.CRITERIA))],
        "early_elimination": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "language": [str],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"auto", "constant", "cosine"})],
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
        loss: str | ClusteringLoss = "auto",
        augment: str | Augmentation | None = AUTO,
        neighbors: int | str | None = AUTO,
        partner_weight: float = 1.0,
        link_weight: float = 1.0,
        balance: float | None = None,
        cluster_sizes: Any = None,
        init: str = "soft",
        n_init: int = 4,
        n_vote: int = 1,
        criterion: str = "loss",
        early_elimination: bool = False,
        max_iter: int = 3500,
        tol: float = 1e-3,
        patience: int | str | None = AUTO,
        batch_size: int = 100,
        language: str = "english",
        learning_rate: float | str = "auto",
        schedule: str = "auto",
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
        self.augment = augment
        self.neighbors = neighbors
        self.partner_weight = partner_weight
        self.link_weight = link_weight
        self.balance = balance
        self.cluster_sizes = cluster_sizes
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
        self.schedule = schedule
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
        """The paper's protocol: 20 restarts of 70,000 iterations each; with ``n_vote=3`` it is DDC-VOTE.

        Loss and initialisation are the reading of the paper that comes closest to its results, not the text's
        letter: see docs/readings.md. Change anything else by ``set_params``.

        Examples
        --------
        >>> DDC.paper(10).n_init
        20
        """
        return cls(
            n_clusters,
            loss=DDCLoss.paper(),
            init="soft",
            n_init=20,
            n_vote=n_vote,
            max_iter=70_000,
            tol=0.0,
            patience=None,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: object = None, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : data of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w), or texts
            Vectors or images, of any numeric dtype; uint8 images stay uint8. With four axes, the
            shorter one of the second and the last holds the channels. An array or memory map, a SciPy
            sparse matrix (made dense a batch at a time), a torch tensor or map-style ``Dataset`` (labels
            are ignored), anything with shape, dtype and slices such as a zarr array (read in blocks, see
            :class:`ddclust.data.items.BlockItems`), or a list of texts, of which the TF-IDF of the 2,000 most
            frequent word stems is clustered. Or a list of two to nine such arrays with a row for each item: views of
            the same items, such as photographs and measurements. Each gets a network of its own, and what these find
            is added up with learnt weights (:class:`ddclust.networks.MultiViewNet`).
        y : Ignored
        must_link, cannot_link : array-like of int of shape (m, 2), optional
            Positions of items in ``X`` that must, or must not, share a cluster. They, or changed copies of them with
            ``augment``, are drawn into every batch and add -log<alpha_i, alpha_j> and -log(1 - <alpha_i, alpha_j>) to the
            loss; the result may break some.

        Returns
        -------
        self

        Raises
        ------
        ddclust.data.links.LinkError
            The pairs are none of X, or contradict each other.
        """
        with all_or_nothing(self):
            X = self._items(X)
            if self.n_vote > self.n_init:
                raise ValueError(
                    f"n_vote={self.n_vote} should be <= n_init={self.n_init}: only restarts can vote."
                )
            if isinstance(self.neighbors, Integral) and self.neighbors >= len(X):
                raise ValueError(
                    f"neighbors={self.neighbors} should be < n_samples={len(X)}: an item is not its own neighbour."
                )
            if self.n_final is not None and self.n_final > self.n_clusters:
                raise ValueError(
                    f"n_final={self.n_final} should be <= n_clusters={self.n_clusters}: clusters can only be merged."
                )
            epochs = self._snapshot_epochs()
            links = checked_links(must_link, cannot_link, n_items=len(X), n_clusters=self.n_clusters)
            plan = self._plan(X, links)
            if self.verbose:
                tqdm.write(f"Partners: {self._partners(X)}", file=sys.stderr)
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
                self._merge_and_keep(source, records, voters, modules, plan.loss, self.n_final)
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
        loss: ClusteringLoss | None = None,
        augment: Augmentation | None = None,
        device: str | torch.device | None = None,
    ) -> Self:
        """Read a model that :meth:`save` wrote, on any machine. No code from the folder is run.

        Parameters
        ----------
        path : path-like
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

    def _fine_labels(self, source: BatchSource) -> NDArray[np.int64]:
        return next(self._fine_probabilities(source, 1)).argmax(axis=1)

    def _merge_and_keep(
        self,
        source: BatchSource,
        records: list[dict[str, Any]],
        voters: list[int],
        modules: list[nn.Module],
        loss: ClusteringLoss,
        n_final: int,
    ) -> None:
        """Merge each network's clusters, then as :meth:`_keep`."""
        # Clusters of different networks, when there are more than wanted, divide the data differently and would not
        # match one to one; merged ones do.
        loss = loss if isinstance(loss, DDCLoss) else DDCLoss()
        trees = [network_tree(module, source, loss) for module in modules]
        self._keep(source, records, voters, modules, [merged_groups(tree, n_final) for tree in trees])
        self.merge_tree_ = renumbered_tree(trees[0], self.cluster_orders_[0])
        self.fine_labels_ = self._fine_labels(source)

    def _partners(self, X: Items) -> Partners:
        return chosen_partners(self.augment, self.neighbors, X, has_own_loss=not isinstance(self.loss, str))

    def _plan(self, X: Items, links: Links = NO_LINKS) -> _runs.Plan:
        """Resolve every "auto" against the data."""
        partners = self._partners(X)
        kinds = self._network_kinds()
        rate_decays = partners.exist if self.schedule == AUTO else self.schedule == "cosine"
        patience = self.patience
        if isinstance(patience, str):
            patience = None if rate_decays else PATIENCE
        scaling = scaling_of_views(X) if isinstance(X, ViewItems) else Scaling.of(X)
        return _runs.Plan(
            scaling=scaling,
            network=self._network_factory(kinds),
            n_clusters=self.n_clusters,
            loss=self._sized_loss(X, scaling, partners.exist),
            max_iter=self.max_iter,
            tol=self.tol,
            patience=patience,
            batch_size=self.batch_size,
            learning_rate=self._rate(kinds, partners.exist, is_sparse=isinstance(X, SparseItems)),
            rate_decays=rate_decays,
            device=resolve_device(self.device),
            threads=1 if self.n_init > 1 else torch.get_num_threads(),
            knowledge=Knowledge(
                augment=partners.augment,
                links=links,
                partner_weight=self.partner_weight,
                link_weight=self.link_weight,
            ),
        )

    def _sized_loss(self, X: Items, scaling: Scaling, has_partners: bool) -> ClusteringLoss:
        """The loss, with the sizes of clusters that it is to aim at."""
        loss, sizes = self._loss(has_partners), self.cluster_sizes
        if sizes is None or not isinstance(loss, DDCLoss):
            return loss
        if isinstance(sizes, str):
            sizes = k_means_sizes(BatchSource(X, scaling).vectors(), self.n_clusters)
        if len(sizes) != self.n_clusters:
            raise ValueError(f"cluster_sizes holds {len(sizes)} sizes for n_clusters={self.n_clusters}.")
        return replace(loss, cluster_sizes=tuple(float(size) for size in sizes))

    def _loss(self, has_partners: bool) -> ClusteringLoss:
        """The loss, the one that goes with partners if none is given, with the weight of its balance."""
        loss, balance = self.loss, self.balance
        if isinstance(loss, str):
            loss = DDCLoss.for_partners(self.n_clusters) if has_partners else DDCLoss()
            if balance is None and self.cluster_sizes is not None and has_partners:
                balance = SIZED_BALANCE
        if self.cluster_sizes is None and self.balance is None:
            return loss
        if not isinstance(loss, DDCLoss):
            raise ValueError(
                "cluster_sizes and balance need a DDCLoss; a loss of one's own has to deal with sizes itself."
            )
        if balance is None:
            return loss
        divergence, _, corners = loss.weights
        return replace(loss, weights=(divergence, balance, corners), start_balance=None)

    def _rate(self, kinds: Sequence[str], has_partners: bool, *, is_sparse: bool) -> float:
        """The learning rate, that for networks of these kinds if none is given."""
        if not isinstance(self.learning_rate, str):
            return float(self.learning_rate)
        rates = LEARNING_RATES
        if has_partners:
            rates = SPARSE_PARTNERS_LEARNING_RATES if is_sparse else PARTNERS_LEARNING_RATES
        return max(rates.get(kind, 1e-3) for kind in kinds)

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
                replace(plan, knowledge=self._with_neighbors(X, plan, store), snapshots=snapshots),
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

    def _with_neighbors(self, X: Items, plan: _runs.Plan, store: RunStore | None) -> Knowledge:
        """What is known of the items, and each one's neighbours, if they are asked for."""
        n_neighbors = self._partners(X).neighbors
        if n_neighbors is None:
            return plan.knowledge

        def found() -> NDArray[np.int32]:
            vectors, metric = BatchSource(X, plan.scaling).vectors(), "euclidean"
            if isinstance(X, SparseItems):
                vectors, metric = topic_vectors(vectors, verbose=self.verbose), "cosine"
            return neighbor_indices(vectors, n_neighbors, metric=metric, verbose=self.verbose)

        return replace(
            plan.knowledge, neighbors=found() if store is None else store.remembered(NEIGHBORS_FILE, found)
        )

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
        params = params_to_json(self.get_params(deep=False) | {"loss": plan.loss})
        indifferent = ["n_jobs", "device", "checkpoint_dir", "random_state", "verbose"]
        indifferent += ["n_final", "criterion"]  # which come after the training
        if not self.early_elimination:
            indifferent.append("n_vote")  # with elimination, so many survive
        return {
            "ddclust": __version__,
            "torch": torch.__version__,
            "data": fingerprint(X),
            "must_link": fingerprint(plan.knowledge.links.must),
            "cannot_link": fingerprint(plan.knowledge.links.cannot),
            "parameters": {name: value for name, value in params.items() if name not in indifferent},
            "threads": plan.threads,
        }

    def _network_kinds(self) -> list[str]:
        """Which network for each view, of which there is one as a rule: "conv", "mlp" or "custom"."""
        if callable(self.network):
            return ["custom"]
        return [self._network_kind(shape) for shape in getattr(self, "view_shapes_", [self.item_shape_])]

    def _network_kind(self, item_shape: tuple[int, ...]) -> str:
        """Which built-in network for items of a shape."""
        is_image = len(item_shape) > 1
        if self.network == "conv" and not is_image:
            raise ValueError(
                f"network='conv' needs images of shape (n, h, w), (n, h, w, c) or (n, c, h, w), got vectors of"
                f" {item_shape[0]} features; reshape X, or use network='mlp'."
            )
        if self.network == "auto":
            large_enough = is_image and min(input_shape(item_shape)[1:]) >= SMALLEST_IMAGE
            return "conv" if large_enough else "mlp"
        return str(self.network)

    def _build(self) -> nn.Module:
        return self._network_factory(self._network_kinds())(input_shape(self.item_shape_), self.n_clusters)

    def _network_factory(self, kinds: list[str]) -> NetworkFactory:
        if callable(self.network):
            return self.network
        if hasattr(self, "view_shapes_"):
            return partial(_views_network, view_shapes=self.view_shapes_, networks=kinds, init=self.init)
        return partial(BUILT_IN_NETWORKS[kinds[0]], init=self.init)

    def _check_network_and_loss(self, plan: _runs.Plan, X: Items) -> int:
        """Try both, and the augmentation, on a few items, so that a wrong one fails with a clear message; returns the hidden size."""
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
            if plan.knowledge.augment is not None:
                _check_copy(x, plan.knowledge.augment(x.clone()))
        scalars = hasattr(terms, "_fields") and all(
            isinstance(t, torch.Tensor) and t.ndim == 0 for t in terms
        )
        if not scalars or not any(term.requires_grad for term in terms):
            raise TypeError(
                "loss must return a named tuple of scalar tensors that depend on its arguments, such as"
                f" ddclust.objective.losses.LossTerms; it returned {terms!r:.200}."
            )
        taken = {PARTNERS, MUST_LINK, CANNOT_LINK} & set(terms._fields)
        if taken:
            raise ValueError(
                f"A term of the loss is called {min(taken)!r}, as that of partners or links is; rename it."
            )
        if self.criterion == "divergence" and "divergence" not in terms._fields:
            raise ValueError(
                f"criterion='divergence' needs a loss with a term of that name; this one has {terms._fields}."
            )
        if self.criterion == PARTNERS and not (self._partners(X).exist and self.partner_weight > 0):
            raise ValueError(
                "criterion='partners' needs partners (augment or neighbors) and a partner_weight above 0."
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


def k_means_sizes(vectors: Any, n_clusters: int) -> list[int]:
    """How many items are in each cluster of k-means, none of them taken for empty."""
    from sklearn.cluster import KMeans

    labels = KMeans(n_clusters, n_init=4, random_state=0).fit_predict(vectors)
    return np.maximum(np.bincount(labels, minlength=n_clusters), 1).tolist()


def _views_network(
    input_shape: tuple[int, ...], n_clusters: int, *, view_shapes: Any, networks: list[str], init: Any
) -> nn.Module:
    return ViewsNetwork(view_shapes, n_clusters, networks, init=init)


def _check_copy(x: torch.Tensor, copy: Any) -> None:
    """Refuse what is no changed copy of a batch."""
    if not isinstance(copy, torch.Tensor) or copy.shape != x.shape or copy.dtype != x.dtype:
        got = (
            f"{tuple(copy.shape)} of {copy.dtype}" if isinstance(copy, torch.Tensor) else type(copy).__name__
        )
        raise TypeError(
            f"augment must return a tensor like the batch it is given, of shape {tuple(x.shape)} and {x.dtype}; it"
            f" returned {got}."
        )


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
