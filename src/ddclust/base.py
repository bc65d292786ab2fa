"""What clusterers with trained networks have in common: predict, transform, save and load."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ddclust.choosing.consensus import Vote, aligning_order, averaged_with_neighbors, combine
from ddclust.choosing.merging import merged_assignments
from ddclust.choosing.metrics import order_by_size
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.items import Items
from ddclust.data.neighbors import neighbor_indices
from ddclust.data.text import StemVectorizer, checked_texts, is_text
from ddclust.data.validation import (
    check_items,
    check_items_can_be_clustered,
    check_view_items,
    resolve_device,
)
from ddclust.data.views import is_views
from ddclust.earlier_formats import upgraded
from ddclust.progress import Bar
from ddclust.saving import describe, params_from_plain, params_to_plain, restore
from ddclust.storage.model_folder import ModelFormatError, load_model, save_model
from ddclust.training.inference import outputs


class NetworkClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """A clusterer with one or several networks that map items to (hidden, logits).

    A subclass has the parameters ``n_clusters``, ``language``, ``device`` and ``verbose``, builds its
    network in :meth:`_build`, and hands the trained ones to :meth:`_keep`.
    """

    n_clusters: int
    language: str
    device: str | torch.device
    verbose: bool | int
    # Whether images reach the network in [0, 1]; if so, new images on another scale can be noticed.
    scales_images_to_unit_range = True
    takes_views = False

    def _build(self) -> nn.Module:
        """A newly initialised network for items of ``item_shape_``, from torch's random state."""
        raise TypeError(f"{type(self).__name__} does not say what its network is.")

    def _network_is_built_in(self) -> bool:
        """Whether the network is one of ours, of which all shapes are known without building it."""
        return True

    def _items(self, X: Any) -> Items:
        """The data of a fit, checked."""
        X = self._checked(X, reset=True)
        check_items_can_be_clustered(X, self.n_clusters)
        return X

    def _keep(
        self,
        source: BatchSource,
        records: list[dict[str, Any]],
        voters: list[int],
        modules: list[nn.Module],
        groups: list[NDArray[np.int64]] | None = None,
    ) -> None:
        """Align the networks of the runs that are kept, let them vote, and set the fitted attributes.

        ``groups`` says for each network which merged cluster each of its outputs belongs to; by default none are merged.
        """
        as_they_are = np.arange(self.n_clusters)
        raw = list(_probabilities(modules, [as_they_are] * len(modules), source, self.verbose))
        groups = [as_they_are] * len(modules) if groups is None else groups
        orders = _aligned_by_size([merged_assignments(p, g) for p, g in zip(raw, groups, strict=True)])
        self.cluster_orders_, self.cluster_groups_, members = [], [], []
        for fine, own_groups, order in zip(raw, groups, orders, strict=True):
            group = np.argsort(order)[own_groups]  # of each output, in the final numbering
            sizes = np.bincount(fine.argmax(axis=1), minlength=len(group))
            by_group = np.lexsort((-sizes, group))
            self.cluster_orders_.append(by_group)
            self.cluster_groups_.append(group[by_group])
            members.append(merged_assignments(fine[:, by_group], group[by_group]))
        self.scaling_: Scaling = source.scaling
        self.modules_ = modules
        vote, self.probabilities_ = combine(members)
        self.labels_, self.agreement_ = vote
        self.member_labels_ = np.stack([p.argmax(axis=1) for p in members])
        self.runs_ = records
        self.voters_ = voters
        self.history_ = records[voters[0]]["history"]
        self.n_iter_ = records[voters[0]]["n_iter"]
        self._fitted_params = params_to_plain(self.get_params(deep=False))

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of the fitted model."""
        check_is_fitted(self, "modules_")
        return int(self.cluster_groups_[0].max()) + 1

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each item: the largest output of the trained network, or the vote of the networks."""
        return self.vote(X)[0].labels

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Soft assignments, of shape (n, n_clusters_). They do not depend on the other items of X.

        With several networks, the mean of those that voted for the item's cluster.
        """
        return self.vote(X)[1]

    def vote(self, X: Any) -> tuple[Vote, NDArray[np.float32]]:
        """Labels and agreement of the voting networks, and soft assignments, all at once."""
        return combine(self.member_probabilities(X))

    def member_probabilities(self, X: Any) -> list[NDArray[np.float32]]:
        """Soft assignments by each network that was kept, the best first, aligned to it."""
        return self._member_probabilities(self._source(X))

    def predict_smooth(self, X: Any, n_neighbors: int = 5) -> NDArray[np.int64]:
        """The clusters of items after averaging with their nearest neighbours in X.

        Use it if many items are clustered at once. Unlike :meth:`predict`, the result for an item depends on the other
        items and, beyond 30,000 items, on an approximate search.

        Parameters
        ----------
        X : whatever :meth:`predict` takes
        n_neighbors : int, default=5
            Less than the number of items.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return combine(self.smooth_member_probabilities(X, n_neighbors))[0].labels

    def smooth_member_probabilities(self, X: Any, n_neighbors: int = 5) -> list[NDArray[np.float32]]:
        """As :meth:`member_probabilities`, each item's averaged with those of its nearest neighbours in X.

        Neighbours are those in the direction of the network's own hidden representation
        (:func:`ddclust.data.neighbors.neighbor_indices` by the cosine).
        """
        source = self._source(X)
        smooth = []
        for module, probabilities in zip(self.modules_, self._member_probabilities(source), strict=True):
            near = neighbor_indices(
                self._hidden(module, source), n_neighbors, metric="cosine", verbose=self.verbose
            )
            smooth.append(averaged_with_neighbors(probabilities, near))
        return smooth

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The hidden representation, of shape (n, d_hidden)."""
        return self._hidden(self.modules_[0], self._source(X))

    def _hidden(self, module: nn.Module, source: BatchSource) -> NDArray[np.float32]:
        representation = np.empty((len(source), self._n_features_out), dtype=np.float32)
        for rows, hidden, _ in outputs(module, source):
            representation[rows] = hidden.numpy()
        return representation

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model to a new folder of JSON and safetensors, whole or not at all.

        A callable ``network`` or ``loss`` is not saved, only its name; give it to :meth:`load` again.
        A RandomState instance is saved as None.
        """
        check_is_fitted(self, "modules_")
        description, tensors = describe(self)
        save_model(path, description, tensors, overwrite=overwrite)

    @classmethod
    def _load(
        cls, path: str | os.PathLike[str], given: dict[str, Any], device: str | torch.device | None
    ) -> Self:
        """Read a model that :meth:`save` wrote; ``given`` are the parameters that are not saved."""
        description, tensors = load_model(path)
        if device is not None:
            resolve_device(device)  # the caller's mistake, not the file's
        try:
            description = upgraded(description)
            if description["estimator"] != cls.__name__:
                raise ModelFormatError(
                    f"The model in {str(path)!r} is a {description['estimator']}, not a {cls.__name__}."
                )
            model = cls(**params_from_plain(description["params"], given))
            if device is not None:
                model.device = device
            model._validate_params()
            restore(model, path, description, tensors)
        except ModelFormatError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise ModelFormatError(
                f"The description of the model in {str(path)!r} is damaged: {type(error).__name__}: {error}"
            ) from error
        return model

    def _vectors(self, X: Any, *, reset: bool) -> Any:
        """Texts as TF-IDF vectors, anything else as it is."""
        if isinstance(X, str):
            raise ValueError("X is a single text; give a list of texts.")
        if not is_text(X):
            return X
        texts = checked_texts(X)
        if reset:
            self.vectorizer_ = StemVectorizer(self.language)
        elif not hasattr(self, "vectorizer_"):
            raise ValueError(
                f"X is texts, but this {type(self).__name__} was fitted on items of shape {self.item_shape_}."
            )
        shown = Bar(texts, unit="text", desc="counting words", delay=2, disable=not self.verbose)
        vectors = self.vectorizer_.fit_transform(shown) if reset else self.vectorizer_.transform(shown)
        wordless = int((np.diff(vectors.indptr) == 0).sum())
        if wordless:
            warnings.warn(
                f"{wordless:,} of {len(texts):,} texts hold none of the {vectors.shape[1]:,} word stems that are"
                " counted; nothing tells these texts apart.",
                UserWarning,
                stacklevel=5,
            )
        return vectors

    def _checked(self, X: Any, *, reset: bool) -> Items:
        """Texts, views or anything else as items, compared with those of the fit unless ``reset``."""
        if reset:
            for name in ("vectorizer_", "view_shapes_"):
                self.__dict__.pop(name, None)
        if is_views(X):
            if not self.takes_views:
                raise ValueError(f"{type(self).__name__} takes one view of the items, got {len(X)}.")
            return check_view_items(self, X, reset=reset)
        if hasattr(self, "view_shapes_"):
            raise ValueError(
                f"X is one view, but this {type(self).__name__} was fitted on {len(self.view_shapes_)}; give a list of them."
            )
        return check_items(self, self._vectors(X, reset=reset), reset=reset)

    def _source(self, X: Any) -> BatchSource:
        check_is_fitted(self, "modules_")
        X = self._checked(X, reset=False)
        source = BatchSource(X, self.scaling_)
        if len(self.item_shape_) > 1 and self.scales_images_to_unit_range:
            self._warn_of_another_scale(source)
        return source

    def _warn_of_another_scale(self, source: BatchSource) -> None:
        """Images are scaled to [0, 1] as those of the fit were; see whether the first of the new ones fit in there."""
        x = source.batch(slice(0, 256))
        as_fractions = self.scaling_.is_of_bytes and source.items.dtype != np.uint8 and x.max() <= 1 / 255
        if as_fractions or x.max() > 3 or x.min() < -2:
            warnings.warn(
                "The values of X are on another scale than those that the model was fitted on"
                + (" (0 to 255)." if self.scaling_.is_of_bytes else "."),
                UserWarning,
                stacklevel=5,
            )

    def _member_probabilities(self, source: BatchSource) -> list[NDArray[np.float32]]:
        """The soft assignments of each voting network, merged and aligned."""
        fine = self._fine_probabilities(source, len(self.modules_))
        return [merged_assignments(p, groups) for p, groups in zip(fine, self.cluster_groups_, strict=True)]

    def _fine_probabilities(self, source: BatchSource, n_members: int) -> Iterator[NDArray[np.float32]]:
        """The soft assignments of the first networks to all of their outputs, in the order of their clusters."""
        return _probabilities(
            self.modules_[:n_members], self.cluster_orders_[:n_members], source, self.verbose
        )

    def _outputs_of(self, source: BatchSource, clusters: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each item the best network's output that stands for a cluster; of a merged one the item's largest."""
        order, groups = self.cluster_orders_[0], self.cluster_groups_[0]
        if len(groups) == self.n_clusters_:
            return order[clusters]
        fine = next(self._fine_probabilities(source, 1))
        fine[groups != clusters[:, None]] = -1
        return order[fine.argmax(axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []  # the network computes in float32
        return tags


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """If the block fails, the estimator is what it was before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _probabilities(
    modules: list[nn.Module], orders: list[NDArray[np.int64]], source: BatchSource, verbose: bool | int
) -> Iterator[NDArray[np.float32]]:
    """The soft assignments by each network, its outputs in an order of their own."""
    total = len(source) * len(modules)
    with Bar(total=total, unit="item", desc="assigning", delay=2, disable=not verbose) as bar:
        for module, order in zip(modules, orders, strict=True):
            probabilities = np.empty((len(source), len(order)), dtype=np.float32)
            for rows, _, logits in outputs(module, source):
                probabilities[rows] = logits.softmax(dim=1)[:, order].numpy()
                bar.update(len(logits))
            yield probabilities


def _aligned_by_size(raw: list[NDArray[np.float32]]) -> list[NDArray[np.int64]]:
    """For each network the order of its outputs that aligns it to the first, largest cluster of the vote first."""
    n_clusters = raw[0].shape[1]
    reference = raw[0].argmax(axis=1)
    orders = [aligning_order(reference, p.argmax(axis=1), n_clusters) for p in raw]
    vote, _ = combine([p[:, order] for p, order in zip(raw, orders, strict=True)])
    by_size = order_by_size(vote.labels, n_clusters)
    return [order[by_size] for order in orders]
