"""What clusterers with trained networks have in common: predict, transform, save and load."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ddclust.card import MOST_ROWS, as_html, model_card
from ddclust.choosing.calibration import (
    COPIES,
    RUNS,
    Calibration,
    confirmed,
    confirmed_by_runs,
    fitted_temperature,
)
from ddclust.choosing.consensus import Vote, agreement_of, aligning_order, averaged_with_neighbors, combine
from ddclust.choosing.copies import confirmed_by_copies
from ddclust.choosing.merging import merged_assignments
from ddclust.choosing.metrics import order_by_size
from ddclust.choosing.rejection import REFUSED, KnownItems, contrast_of
from ddclust.data.batches import BatchSource, Sample, Scaling, input_shape, random_items
from ddclust.data.containers import as_items, items_of_dataset
from ddclust.data.items import Items, SparseItems, blocks
from ddclust.data.neighbors import nearest_neighbors
from ddclust.data.readers.images import are_image_files, is_image_file, read_images
from ddclust.data.tables import Columns, Table, mixed_table
from ddclust.data.tables.table import as_table
from ddclust.data.text import (
    StemVectorizer,
    WordlessWarning,
    checked_texts,
    is_text,
    other_language,
    resolved_language,
    unusual_texts,
)
from ddclust.data.validation import (
    check_items,
    check_items_can_be_clustered,
    check_table_rows,
    check_view_items,
    resolve_device,
)
from ddclust.data.views import is_views
from ddclust.earlier_formats import upgraded
from ddclust.encoders import IMAGES, TEXTS, Encoded, Encoder, EncoderError, FittedEncoder
from ddclust.encoders.choice import default_encoder, encoder_again, encoder_of, kind_of, photo_side
from ddclust.encoders.features import expected_features, features_of
from ddclust.encoders.named import NAMED
from ddclust.exporting import INPUT_TYPES, ExportedModel, ExportError, write_onnx, write_torch
from ddclust.hub import upload
from ddclust.objective.objective import Objective
from ddclust.progress import AUTO, Bar, say, shows_progress
from ddclust.saving import describe, params_from_plain, params_to_plain, restore
from ddclust.storage.model_folder import ModelFormatError, load_model, save_model
from ddclust.training.inference import CHUNK, Gathered, Outputs, known_items, outputs
from ddclust.training.trainer import Source

# Of larger data, a random sample of so many items says how certain the model may be, and which items it knows.
CALIBRATED_ITEMS = 5_000


class NetworkClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """A clusterer with one or several networks that map items to (hidden, logits).

    A subclass has the parameters ``n_clusters``, ``language``, ``device`` and ``verbose``, builds its
    network in :meth:`_build`, and hands the trained ones to :meth:`_keep`.
    """

    n_clusters: int
    language: str
    device: str | torch.device
    verbose: bool | int | str
    # Whether images reach the network in [0, 1]; if so, new images on another scale can be noticed.
    scales_images_to_unit_range = True
    columns_: Columns  # only of tables with more than plain numbers
    encoder: Any = None  # a parameter of those that take one
    encoder_: FittedEncoder  # only if the items were encoded
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
        *,
        known: Sequence[Outputs | None] = (),
        labels_of_others: Sequence[NDArray[np.int64]] = (),
        others: str = RUNS,
        objective: Objective | None = None,
    ) -> NDArray[np.int64]:
        """Align the networks of the runs that are kept, let them vote, and set the fitted attributes.

        Returns the best network's clusters before merging.

        ``groups`` says for each network which merged cluster each of its outputs belongs to; by default none are merged.
        ``known`` are the outputs of the networks for all items, where they have been asked before.
        ``labels_of_others`` are those by the runs that finished and are not kept, or by what ``others`` names, each in a numbering of
        its own.
        ``objective`` knows copies or neighbours of the items, if there are any.
        """
        groups = [np.arange(self.n_clusters)] * len(modules) if groups is None else groups
        known = known or [None] * len(modules)
        shown = shows_progress(self.verbose)
        found = [
            outputs_of(module, source, shown) if one is None else one
            for module, one in zip(modules, known, strict=True)
        ]
        raw = [one.assignments for one in found]
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
        vote, assignments = combine(members)
        self.labels_ = vote.labels
        self.member_labels_ = np.stack([p.argmax(axis=1) for p in members])
        aligned = np.stack([*self.member_labels_, *map(self._aligned, labels_of_others)])
        self.agreement_ = agreement_of(aligned, self.labels_)
        self.calibration_ = self._fitted_calibration(assignments, aligned, others, objective)
        self.probabilities_ = self.calibration_(assignments)
        self.known_items_ = self._fitted_known_items(source, found[0])
        self.runs_ = records
        self.voters_ = voters
        self.history_ = records[voters[0]]["history"]
        self.n_iter_ = records[voters[0]]["n_iter"]
        self._fitted_params = params_to_plain(self.get_params(deep=False))
        return raw[0][:, self.cluster_orders_[0]].argmax(axis=1)

    def _aligned(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The labels by another run in the numbering of the clusters."""
        return np.argsort(aligning_order(self.labels_, labels, self.n_clusters_))[labels]

    def _fitted_calibration(
        self,
        assignments: NDArray[np.float32],
        aligned: NDArray[np.int64],
        others: str,
        objective: Objective | None,
    ) -> Calibration:
        """How certain the soft assignments may be, by the labels of the others and of copies of the items."""
        n_runs = len(aligned)
        some = random_items(len(assignments), CALIBRATED_ITEMS, seed=0)
        labels = self.labels_[some]
        by_runs = confirmed_by_runs(aligned[:, some], labels) if n_runs > 1 else None
        by_copies = None if objective is None else self._confirmed_by_copies(objective, some)
        target = confirmed(by_runs, by_copies, n_runs)
        if target is None or self.n_clusters_ == 1:
            return Calibration()
        temperature = fitted_temperature(assignments[some], labels, target)
        return Calibration(temperature, COPIES if by_runs is None else others)

    def _confirmed_by_copies(
        self, objective: Objective, items: NDArray[np.intp]
    ) -> NDArray[np.float64] | None:
        """The share of copies of these items to which the best network gives the items' labels, if there are copies."""
        order, groups = self.cluster_orders_[0], self.cluster_groups_[0]

        def label_of(fine: NDArray[np.float32]) -> NDArray[np.int64]:
            return merged_assignments(fine[:, order], groups).argmax(axis=1)

        return confirmed_by_copies(self.modules_[0], objective, items, self.labels_[items], label_of)

    def _fitted_known_items(self, source: BatchSource, best: Outputs) -> KnownItems:
        """What is kept of the items, and of what the best network makes of them, to tell whether new ones are like them."""
        some = known_items(len(source))
        return KnownItems.of(
            best.hidden,
            best.assignments[some].argmax(axis=1),
            self.probabilities_[some].max(axis=1),
            contrasts(Sample(source, some)),
            n_outputs=len(self.cluster_orders_[0]),
        )

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of the fitted model."""
        check_is_fitted(self, "modules_")
        return int(self.cluster_groups_[0].max()) + 1

    def predict(self, X: Any, *, reject: float | None = None) -> NDArray[np.int64]:
        """The cluster of each item: the largest output of the trained network, or the vote of the networks.

        X is data of the kind that the model was fitted on. A model of images also takes names of image files, which it
        reads in the size and colour of its own images, and a model of texts a single text.

        Parameters
        ----------
        X : data, as in :meth:`fit`
        reject : float, optional
            Refuse items that the model does not know, because its confidence is too low or because they are unlike the
            items that it was fitted on. Their label is -1. It is the share of items like those of the fit that may be
            refused, such as 0.05; of other items more are.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.vote(X, reject=reject)[0].labels

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Soft assignments, of shape ``(n, n_clusters_)``. They do not depend on the other items of X.

        They are calibrated (``calibration_``): the largest one says about how often another run would give the item this
        cluster. With several networks, they come from the mean of those that voted for the item's cluster.
        """
        return self.vote(X)[1]

    def vote(self, X: Any, *, reject: float | None = None) -> tuple[Vote, NDArray[np.float32]]:
        """Labels and agreement of the voting networks, and calibrated soft assignments, all at once.

        The agreement of a single network is NaN. For ``reject`` see :meth:`predict`.
        """
        if reject is not None and not 0 <= reject < 1:
            raise ValueError(f"reject={reject} must be a share of items: at least 0 and below 1.")
        source = self._source(X)
        if reject is not None and not hasattr(self, "known_items_"):
            raise ValueError(
                "The model was saved by an earlier version of ddclust, without what it needs to refuse items; fit it again"
                " to use reject."
            )
        vote, probabilities = self._vote(source)
        if reject is not None:
            hidden = self._hidden(self.modules_[0], source)
            refused = self.known_items_.refused(probabilities.max(axis=1), hidden, contrasts(source), reject)
            if self.is_of_texts:
                refused |= _without_values(source.items)
            vote = vote._replace(labels=np.where(refused, REFUSED, vote.labels))
        return vote, probabilities

    def _vote(self, source: BatchSource) -> tuple[Vote, NDArray[np.float32]]:
        """The same without refusing any item."""
        members = self._member_probabilities(source)
        vote, assignments = combine(members)
        probabilities = self._calibrated(assignments)
        agreement = agreement_of(np.stack([p.argmax(axis=1) for p in members]), vote.labels)
        return Vote(vote.labels, agreement), probabilities

    def _calibrated(self, assignments: NDArray[np.float32]) -> NDArray[np.float32]:
        """Soft assignments as certain as they should be; models of earlier versions leave them as they are."""
        return getattr(self, "calibration_", Calibration())(assignments)

    def member_probabilities(self, X: Any) -> list[NDArray[np.float32]]:
        """Soft assignments by each network that was kept, the best first, aligned to it; they are not calibrated."""
        return self._member_probabilities(self._source(X))

    def predict_smooth(self, X: Any, n_neighbors: int = 5) -> NDArray[np.int64]:
        """The clusters of items after averaging with their nearest neighbours in X.

        Use it if many items are clustered at once. Unlike :meth:`predict`, the result for an item depends on the other
        items and, beyond 10,000 items, on an approximate search.

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
        (:func:`ddclust.data.neighbors.nearest_neighbors` by the cosine).
        """
        source = self._source(X)
        smooth = []
        for module, probabilities in zip(self.modules_, self._member_probabilities(source), strict=True):
            near = nearest_neighbors(
                self._hidden(module, source),
                n_neighbors,
                metric="cosine",
                verbose=shows_progress(self.verbose),
            )
            smooth.append(averaged_with_neighbors(probabilities, near.indices))
        return smooth

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The hidden representation, of shape (n, d_hidden)."""
        return self._hidden(self.modules_[0], self._source(X))

    def _hidden(self, module: nn.Module, source: Source) -> NDArray[np.float32]:
        representation = np.empty((len(source), self._n_features_out), dtype=np.float32)
        for rows, hidden, _ in outputs(module, source):
            representation[rows] = hidden.numpy()
        return representation

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model to a new folder of JSON and safetensors, whole or not at all, with a model card.

        A callable ``network`` or ``loss`` is not saved, only its name; give it to :meth:`load` again.
        A RandomState instance is saved as None.
        """
        check_is_fitted(self, "modules_")
        description, tensors = describe(self)
        save_model(path, description, tensors, card=model_card(self), overwrite=overwrite)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool = False,
        token: str | None = None,
        commit_message: str = "Add a model of ddclust",
    ) -> str:
        """Put the fitted model, with its card, on the Hugging Face hub. It needs the extra ``hub``.

        The model holds a sample of what its network makes of the training items, their probabilities, and the names of their
        columns; the items themselves are not in it.

        Parameters
        ----------
        repo_id : str
            "name/of-the-model"; the repository is made if there is none, and its model replaced if there is one.
        private : bool, default=False
            Of a new repository.
        token : str, optional
            By default the one that ``hf auth login`` has stored.
        commit_message : str

        Returns
        -------
        str
            The address of the change.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "model")
            return upload(
                Path(folder) / "model", repo_id, private=private, token=token, message=commit_message
            )

    def as_module(self, dtype: str | None = None) -> ExportedModel:
        """The fitted model as one network on the CPU, from a batch of items to ``(labels, probabilities)``.

        Scaling, layout, merging, vote and calibration are inside, so its outputs are those of :meth:`predict` and
        :meth:`predict_proba` up to rounding. It takes images and vectors in the layout of the fit; of several views each is an
        argument.

        Parameters
        ----------
        dtype : {"uint8", "float32", "float64"}, optional
            Of the items. By default ``"uint8"`` if the model was fitted on uint8 images, else ``"float64"``, in which values far
            from zero, such as time stamps, keep their digits.
        """
        check_is_fitted(self, "modules_")
        name = type(self).__name__
        for attribute, what, first in (
            ("encoder_", "encoded items", "encode the items, and fit and export a model of their vectors"),
            (
                "columns_",
                "tables",
                "turn the columns into numbers first, and fit and export a model of those",
            ),
            (
                "vectorizer_",
                "texts",
                "turn the texts into vectors first, and fit and export a model of those",
            ),
        ):
            if hasattr(self, attribute):
                raise ExportError(
                    f"Images and vectors can be exported, and this {name} is of {what}; {first}."
                )
        dtype = ("uint8" if self.scaling_.is_of_bytes else "float64") if dtype is None else dtype
        if dtype not in INPUT_TYPES:
            raise ValueError(f"dtype must be one of {', '.join(map(repr, INPUT_TYPES))}, got {dtype!r}.")
        temperature = getattr(self, "calibration_", Calibration()).temperature
        return ExportedModel(
            self.modules_,
            self.cluster_orders_,
            self.cluster_groups_,
            self.scaling_,
            temperature,
            INPUT_TYPES[dtype],
        )

    def export_onnx(self, path: str | os.PathLike[str], *, dtype: str | None = None) -> None:
        """Write the model as an ONNX file, preprocessing included; an existing file is replaced.

        Its input ``X`` is a batch of items in the layout of the fit (of several views ``view0``, ``view1`` and so on), and its
        outputs are ``labels`` and ``probabilities``, those of :meth:`predict` and :meth:`predict_proba`. It needs the extra
        ``onnx``.

        Parameters
        ----------
        path : path-like
        dtype : {"uint8", "float32", "float64"}, optional
            Of the input, as in :meth:`as_module`.
        """
        write_onnx(path, self.as_module(dtype), self._input_shapes())

    def export_torch(self, path: str | os.PathLike[str], *, dtype: str | None = None) -> None:
        """Write :meth:`as_module` as a program of ``torch.export`` (``.pt2``); an existing file is replaced.

        ``torch.export.load(path).module()`` runs it without ddclust.
        """
        write_torch(path, self.as_module(dtype), self._input_shapes())

    def _input_shapes(self) -> list[tuple[int, ...]]:
        return getattr(self, "view_shapes_", [self.item_shape_])

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
        if isinstance(X, str) and reset:
            raise ValueError("X is a single text; give a list of texts.")
        X = [X] if isinstance(X, str) else X
        if not is_text(X):
            return X
        texts = checked_texts(X)
        if reset:
            # Found here, since the words are counted as they pass the progress bar.
            self.vectorizer_ = StemVectorizer(resolved_language(self.language, texts))
        elif not hasattr(self, "vectorizer_"):
            if len(self.item_shape_) > 1 and all(map(is_image_file, texts)):
                missing = next(text for text in texts if not os.path.isfile(text))
                raise ValueError(f"There is no file {missing!r}.")
            raise ValueError(
                f"X is texts, but this {type(self).__name__} was fitted on items of shape {self.item_shape_}."
            )
        shown = Bar(
            texts, unit="text", desc="counting words", delay=2, disable=not shows_progress(self.verbose)
        )
        vectors = self.vectorizer_.fit_transform(shown) if reset else self.vectorizer_.transform(shown)
        for unusual in unusual_texts(vectors, self.vectorizer_, is_fit=reset):
            warnings.warn(unusual, stacklevel=5)
        return vectors

    def _checked(self, X: Any, *, reset: bool) -> Items:
        """Texts, views or anything else as items, compared with those of the fit unless ``reset``."""
        if reset:
            for name in ("vectorizer_", "view_shapes_", "columns_", "encoder_"):
                self.__dict__.pop(name, None)
        if isinstance(X, Encoded):
            return self._checked_features(X, reset=reset)
        if is_views(X):
            if not self.takes_views:
                raise ValueError(f"{type(self).__name__} takes one view of the items, got {len(X)}.")
            return check_view_items(self, X, reset=reset)
        if hasattr(self, "view_shapes_"):
            raise ValueError(
                f"X is one view, but this {type(self).__name__} was fitted on {len(self.view_shapes_)}; give a list of them."
            )
        if not (reset or len(self.raw_shape) == 1) and isinstance(X, (str, os.PathLike)):
            X = [X]
        X = self._with_files_read(items_of_dataset(X), reset=reset)
        table = self._table(X, reset=reset)
        if table is not None:
            self._refuse_encoder("a table")
            return check_table_rows(self, self.columns_.encode(table), reset=reset)
        encoded = self._encoded(X, reset=reset)
        if encoded is not None:
            return self._checked_features(encoded, reset=reset)
        return check_items(self, self._vectors(X, reset=reset), reset=reset)

    def encoded(self, X: Any) -> Any:
        """The items that a fit of X would encode, with their features; any other X as it is.

        Fits take the one like the other. Features are kept anyway, but those of a callable object only as long as it lives,
        and :func:`sklearn.base.clone` makes a new one.
        """
        if isinstance(X, Encoded) or is_views(X) or mixed_table(X) is not None:
            return X
        X = self._with_files_read(items_of_dataset(X), reset=True)
        found = self._encoded(X, reset=True)
        return X if found is None else found

    def _expected(self, X: Any) -> tuple[Any, float]:
        """X with features like those that a fit would compute, and in how many seconds; any other X as it is."""
        if isinstance(X, Encoded) or is_views(X) or mixed_table(X) is not None:
            return X, 0.0
        X = self._with_files_read(items_of_dataset(X), reset=True)
        encoding = self._encoding(X, reset=True)
        if encoding is None:
            return X, 0.0
        items, encoder, fitted = encoding
        features, seconds = expected_features(items, encoder)
        return Encoded(features, fitted), seconds

    def _with_files_read(self, X: Any, *, reset: bool) -> Any:
        """Images if X is names of image files, else X."""
        if not are_image_files(X) or (not reset and self.is_of_texts):
            return X
        return (
            read_images(X, photo_side=photo_side(self.encoder)) if reset else read_images(X, self.raw_shape)
        )

    def _encoded(self, X: Any, *, reset: bool) -> Encoded | None:
        """The features of X by the encoder that a fit chooses or that a fitted model has; None if there is none."""
        encoding = self._encoding(X, reset=reset)
        if encoding is None:
            return None
        items, encoder, fitted = encoding
        if reset and encoder.name in NAMED and fitted.kind == TEXTS:
            _warn_of_other_language(encoder.name, items)
        features = features_of(items, encoder, verbose=shows_progress(self.verbose))
        if fitted.kind == TEXTS and (empty := _without_values(features)).any():
            warnings.warn(WordlessWarning(np.flatnonzero(empty).tolist(), len(items)), stacklevel=6)
        return Encoded(features, fitted)

    def _encoding(self, X: Any, *, reset: bool) -> tuple[Any, Encoder, FittedEncoder] | None:
        """The items to encode, by what, and what a model remembers of it; None if X is not to be encoded."""
        if isinstance(X, str) and reset:  # a mistake, which is reported where texts are counted
            return None
        given = self._encoder_for(X) if reset else self.encoder
        if given is None if reset else not hasattr(self, "encoder_"):
            return None
        X = [X] if isinstance(X, str) else X
        items: Any = checked_texts(X) if is_text(X) else _dense_items(X)
        if reset:
            kind = kind_of(items)
            encoder = encoder_of(given, kind)
            shape = None if kind == TEXTS else tuple(items.shape[1:])
            return items, encoder, FittedEncoder(encoder.name, kind, encoder.digest, shape)
        self._refuse_other_items(items)
        return items, encoder_again(self.encoder_, given), self.encoder_

    def _encoder_for(self, X: Any) -> Any:
        """The encoder of a fit of X: the one that is given or, by default, one that is installed, which is said."""
        if not (isinstance(self.encoder, str) and self.encoder == AUTO):
            return self.encoder
        name = default_encoder(X)
        if name is not None and shows_progress(self.verbose):
            say(
                f"Items are encoded by {name!r}: {NAMED[name].about}. encoder=None (--encoder none) learns from scratch."
            )
        return name

    def _checked_features(self, encoded: Encoded, *, reset: bool) -> Items:
        """Features that were computed before, if they are by the encoder of the fit."""
        if not reset and getattr(self, "encoder_", None) != encoded.encoder:
            raise EncoderError(f"X was encoded by {encoded.encoder}, unlike the items of the fit.")
        if reset:
            self.encoder_ = encoded.encoder
        return check_items(self, encoded.features, reset=reset)

    def _refuse_encoder(self, what: str) -> None:
        if not (self.encoder is None or (isinstance(self.encoder, str) and self.encoder == AUTO)):
            raise EncoderError(
                f"An encoder takes texts, images or vectors, and X is {what}; set encoder=None."
            )

    def _refuse_other_items(self, items: Any) -> None:
        """Refuse items that are not of the kind and shape of those that were encoded in the fit."""
        if kind_of(items) == TEXTS and all(map(is_image_file, items)) and self.encoder_.kind == IMAGES:
            missing = next(text for text in items if not os.path.isfile(text))
            raise ValueError(f"There is no file {missing!r}.")
        shape = None if kind_of(items) == TEXTS else tuple(items.shape[1:])
        if shape != self.encoder_.item_shape:
            found = "texts" if shape is None else f"items of shape {shape}"
            wanted = "texts" if self.is_of_texts else f"items of shape {self.raw_shape}"
            raise ValueError(f"X is {found}, but this {type(self).__name__} was fitted on {wanted}.")

    @property
    def is_of_texts(self) -> bool:
        """Whether a fitted model takes texts."""
        encoder = getattr(self, "encoder_", None)
        return hasattr(self, "vectorizer_") if encoder is None else encoder.kind == TEXTS

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape of an item as a fitted model takes it: before encoding, if items are encoded."""
        encoder = getattr(self, "encoder_", None)
        return self.item_shape_ if encoder is None or encoder.item_shape is None else encoder.item_shape

    def _table(self, X: Any, *, reset: bool) -> Table | None:
        """A table with more than plain numbers, whose columns are described in a fit; None for all other data."""
        if not reset and hasattr(self, "columns_"):
            return as_table(X, self.columns_.names)
        table = mixed_table(X) if reset or isinstance(X, Table) else None
        if table is not None and not reset:
            raise ValueError(
                f"X has gaps, words or dates, but this {type(self).__name__} was fitted on numbers without gaps; fill or"
                " remove such cells, or fit again."
            )
        if table is not None:
            self.columns_ = Columns.of(table, self.language)
        return table

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

    def _merged_labels(
        self, module: nn.Module, groups: NDArray[np.int64], source: BatchSource, known: Outputs | None
    ) -> NDArray[np.int64]:
        """The merged cluster of each item by a network, in a numbering of its own."""
        found = outputs_of(module, source, shows_progress(self.verbose)) if known is None else known
        return merged_assignments(found.assignments, groups).argmax(axis=1)

    def _fine_probabilities(self, source: BatchSource, n_members: int) -> Iterator[NDArray[np.float32]]:
        """The soft assignments of the first networks to all of their outputs, in the order of their clusters."""
        return _probabilities(
            self.modules_[:n_members], self.cluster_orders_[:n_members], source, shows_progress(self.verbose)
        )

    def _outputs_of(self, source: BatchSource, clusters: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each item the best network's output that stands for a cluster; of a merged one the item's largest."""
        order, groups = self.cluster_orders_[0], self.cluster_groups_[0]
        if len(groups) == self.n_clusters_:
            return order[clusters]
        fine = next(self._fine_probabilities(source, 1))
        fine[groups != clusters[:, None]] = -1
        return order[fine.argmax(axis=1)]

    def _remember_images(self, X: Any, items: Items) -> None:
        """Keep the most certain image of each cluster, for notebooks. They are not saved, so that a model holds no items."""
        self._typical_images: dict[int, NDArray] = {}
        if len(self.raw_shape) < 2 or min(input_shape(self.raw_shape)[1:]) < 2 or isinstance(X, Encoded):
            return
        confidence = self.probabilities_.max(axis=1)
        clusters = np.unique(self.labels_)[:MOST_ROWS]
        places = [int(np.where(self.labels_ == c, confidence, -1).argmax()) for c in clusters]
        with suppress(OSError, ValueError):  # a file that is gone by now does not fail the fit
            if not hasattr(self, "encoder_"):  # then items are features
                images: Any = items[np.array(places)]
            elif are_image_files(X):
                images = read_images([X[place] for place in places], self.raw_shape)
            else:
                images = as_items(items_of_dataset(X))[np.array(places)]
            self._typical_images = dict(zip(clusters.tolist(), np.asarray(images), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_typical_images"}

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's diagram and, of a fitted model, its clusters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**settings)
        if "text/html" in bundle and hasattr(self, "modules_"):
            bundle["text/html"] += as_html(self)
        return bundle

    def _repr_html_inner(self) -> str:
        """The same for programs that ask for HTML alone."""
        return self._repr_mimebundle_()["text/html"]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []  # the network computes in float32
        return tags


def _dense_items(X: Any) -> Any:
    """X as dense items for an encoder."""
    items = as_items(X)
    if not hasattr(items, "shape") or hasattr(items, "indptr") or hasattr(items, "__dataframe__"):
        raise EncoderError(
            f"An encoder takes texts, images or an array of vectors, and X is a {type(X).__name__}; set encoder=None."
        )
    return items


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


def outputs_of(module: nn.Module, source: BatchSource, verbose: bool = False) -> Outputs:
    """What a network makes of all items."""
    gathered = Gathered(len(source))
    with Bar(total=len(source), unit="item", desc="assigning", delay=2, disable=not verbose) as bar:
        for rows, hidden, logits in outputs(module, source):
            gathered.add(rows, hidden, logits)
            bar.update(len(logits))
    return gathered.outputs()


def _probabilities(
    modules: list[nn.Module], orders: list[NDArray[np.int64]], source: BatchSource, verbose: bool
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


def contrasts(source: Source) -> NDArray[np.float32]:
    """The contrast of each item as the network sees it."""
    starts = range(0, len(source), CHUNK)
    return np.concatenate([contrast_of(source.batch(slice(start, start + CHUNK))) for start in starts])


def _aligned_by_size(raw: list[NDArray[np.float32]]) -> list[NDArray[np.int64]]:
    """For each network the order of its outputs that aligns it to the first, largest cluster of the vote first."""
    n_clusters = raw[0].shape[1]
    reference = raw[0].argmax(axis=1)
    orders = [aligning_order(reference, p.argmax(axis=1), n_clusters) for p in raw]
    vote, _ = combine([p[:, order] for p, order in zip(raw, orders, strict=True)])
    by_size = order_by_size(vote.labels, n_clusters)
    return [order[by_size] for order in orders]


def _warn_of_other_language(encoder: str, texts: list[str]) -> None:
    """Say that an encoder that comes with a package was trained on English, if the texts are in something else."""
    found = other_language(texts)
    if found:
        warnings.warn(
            f"The texts are in {found}, and encoder={encoder!r} knows mostly English; a multilingual encoder compares their"
            " meanings (encoder=folder or name of a sentence-transformers model), and encoder=None their words.",
            stacklevel=7,
        )


def _without_values(items: Items) -> NDArray[np.bool_]:
    """Which items are zero throughout, as texts without words are."""
    if isinstance(items, SparseItems):
        return np.diff(items.matrix.indptr) == 0
    return np.concatenate([~block.any(axis=1) for block in blocks(items)])
