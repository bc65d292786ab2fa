"""A fitted clusterer to the content of a model folder and back; everything is checked on the way back."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.cluster.hierarchy import is_valid_linkage
from torch import nn

from ddclust import __version__
from ddclust.data.batches import Scaling, input_shape
from ddclust.data.text import StemVectorizer
from ddclust.data.validation import resolve_device
from ddclust.objective.augment import Affine, Dropout, Noise, Photo
from ddclust.objective.losses import DDCLoss
from ddclust.storage.model_folder import ModelFormatError, check_tensors
from ddclust.training.inference import evaluation_mode

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

# Parameters that are objects of these types are saved by their fields.
SAVED_TYPES: dict[str, type] = {kind.__name__: kind for kind in (DDCLoss, Affine, Photo, Noise, Dropout)}


def describe(model: NetworkClusterer) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What to save of a fitted model, as JSON and tensors."""
    description = {
        "ddclust_version": __version__,
        "estimator": type(model).__name__,
        "params": model._fitted_params,
        "item_shape": list(model.item_shape_),
        "view_shapes": [list(shape) for shape in getattr(model, "view_shapes_", [])],
        "feature_names": model.feature_names_in_.tolist() if hasattr(model, "feature_names_in_") else None,
        "cluster_orders": [order.tolist() for order in model.cluster_orders_],
        "cluster_groups": [groups.tolist() for groups in model.cluster_groups_],
        "merge_tree": model.merge_tree_.tolist() if hasattr(model, "merge_tree_") else None,
        "voters": model.voters_,
        "n_samples": len(model.labels_),
        "bytes": model.scaling_.is_of_bytes,
        "vectorizer": None,
        "runs": model.runs_,
    }
    tensors = {
        f"network{i}.{name}": value
        for i, module in enumerate(model.modules_)
        for name, value in module.state_dict().items()
    }
    tensors["scaling.shift"] = torch.from_numpy(model.scaling_.shift)
    tensors["scaling.scale"] = torch.from_numpy(model.scaling_.scale)
    if hasattr(model, "vectorizer_"):
        stems = model.vectorizer_.get_feature_names_out().tolist()
        description["vectorizer"] = {"language": model.vectorizer_.language, "stems": stems}
        tensors["vectorizer.idf"] = torch.from_numpy(model.vectorizer_.idf_.astype(np.float64))
    tensors["probabilities"] = torch.from_numpy(model.probabilities_)
    tensors["agreement"] = torch.from_numpy(model.agreement_)
    if hasattr(model, "fine_labels_"):
        tensors["fine_labels"] = torch.from_numpy(model.fine_labels_)
    return description, tensors


def restore(
    model: NetworkClusterer,
    path: str | os.PathLike[str],
    description: dict[str, Any],
    tensors: dict[str, torch.Tensor],
) -> None:
    """Set every fitted attribute from a description and tensors, checking them on the way."""
    try:
        resolve_device(model.device)
    except ValueError:
        warnings.warn(
            f"The model's device {model.device!r} is not available here; 'auto' is taken.", stacklevel=3
        )
        model.device = "auto"
    model._fitted_params = description["params"]
    model.item_shape_ = tuple(int(side) for side in description["item_shape"])
    model.n_features_in_ = int(np.prod(model.item_shape_))
    views = [tuple(int(side) for side in shape) for shape in description.get("view_shapes", [])]
    if views:
        if sum(math.prod(shape) for shape in views) != model.n_features_in_:
            raise ValueError("view_shapes does not fit item_shape.")
        model.view_shapes_ = views
    names = description["feature_names"]
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names does not name every feature.")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.runs_, model.voters_ = description["runs"], description["voters"]
    if (
        not model.voters_
        or len(set(model.voters_)) != len(model.voters_)
        or not set(model.voters_) <= set(range(len(model.runs_)))
    ):
        raise ValueError("voters does not name runs.")
    model.history_ = [dict(record) for record in model.runs_[model.voters_[0]]["history"]]
    model.n_iter_ = int(model.runs_[model.voters_[0]]["n_iter"])
    model.cluster_orders_ = [np.array(order, dtype=np.int64) for order in description["cluster_orders"]]
    if len(model.cluster_orders_) != len(model.voters_):
        raise ValueError("cluster_orders and voters differ in number.")
    for order in model.cluster_orders_:
        if len(order) != model.n_clusters or not np.array_equal(np.sort(order), np.arange(len(order))):
            raise ValueError("cluster_orders are not permutations of the clusters.")
    _restore_merging(model, description)
    model.modules_ = [_load_network(model, path, tensors, f"network{i}.") for i in range(len(model.voters_))]

    n, scaling_shape = (
        int(description["n_samples"]),
        Scaling.shape(model.item_shape_, description["bytes"]),
    )
    others = {name: t for name, t in tensors.items() if not name.startswith("network")}
    expected = {
        "scaling.shift": (torch.Size(scaling_shape), torch.float64),
        "scaling.scale": (torch.Size(scaling_shape), torch.float64),
        "probabilities": (torch.Size((n, model.n_clusters_)), torch.float32),
        "agreement": (torch.Size((n,)), torch.float64),
    }
    if hasattr(model, "merge_tree_"):
        expected["fine_labels"] = (torch.Size((n,)), torch.int64)
    vectorizer = description.get("vectorizer")
    if vectorizer is not None:
        expected["vectorizer.idf"] = (torch.Size(model.item_shape_), torch.float64)
    check_tensors(path, others, expected)
    if vectorizer is not None:
        model.vectorizer_ = _vectorizer(vectorizer, others["vectorizer.idf"])
    if not (others["scaling.scale"] > 0).all():
        raise ValueError("scaling.scale must be positive.")
    model.scaling_ = Scaling(
        model.item_shape_, others["scaling.shift"].numpy(), others["scaling.scale"].numpy()
    )
    model.probabilities_ = others["probabilities"].numpy()
    model.labels_ = model.probabilities_.argmax(axis=1)
    model.agreement_ = others["agreement"].numpy()
    if "fine_labels" in others:
        model.fine_labels_ = others["fine_labels"].numpy()
    x = torch.zeros(1, *input_shape(model.item_shape_))
    with evaluation_mode(model.modules_[0]) as device:
        model._n_features_out = model.modules_[0](x.to(device))[0].shape[1]


def _restore_merging(model: NetworkClusterer, description: dict[str, Any]) -> None:
    """The clusters that outputs were merged into; models of earlier versions have one for each output."""
    k = model.n_clusters
    groups = description.get("cluster_groups") or [list(range(k))] * len(model.cluster_orders_)
    model.cluster_groups_ = [np.array(group, dtype=np.int64) for group in groups]
    n_final = getattr(model, "n_final", None) or k
    for group in model.cluster_groups_:
        if len(group) != k or not np.array_equal(np.unique(group), np.arange(n_final)):
            raise ValueError("cluster_groups do not say what every cluster was merged into.")
    if len(model.cluster_groups_) != len(model.cluster_orders_):
        raise ValueError("cluster_groups and cluster_orders differ in number.")
    tree = description.get("merge_tree")
    if tree is not None:
        model.merge_tree_ = np.array(tree, dtype=np.float64).reshape(-1, 4)
        if len(model.merge_tree_) != k - 1 or (k > 1 and not is_valid_linkage(model.merge_tree_)):
            raise ValueError("merge_tree is not a tree of the clusters.")


def _vectorizer(description: dict[str, Any], idf: torch.Tensor) -> StemVectorizer:
    stems = description["stems"]
    if not all(isinstance(stem, str) for stem in stems) or not len(set(stems)) == len(stems) == len(idf):
        raise ValueError("stems does not name every feature.")
    vectorizer = StemVectorizer.from_stems(description["language"], stems, idf.numpy())
    vectorizer.build_analyzer()  # refuses an unknown language
    return vectorizer


def _load_network(
    model: NetworkClusterer, path: str | os.PathLike[str], tensors: dict[str, torch.Tensor], prefix: str
) -> nn.Module:
    """The network whose tensors have the prefix, after a comparison of names and shapes."""
    weights = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    if not callable(getattr(model, "network", None)):
        with torch.device("meta"):  # shapes without memory: a damaged description allocates nothing
            expected = model._build().state_dict()
        check_tensors(path, weights, _shapes(expected))
    with torch.random.fork_rng(devices=[]):
        module = model._build()
    check_tensors(path, weights, _shapes(module.state_dict()))
    module.load_state_dict(weights)
    return module.to(resolve_device(model.device)).eval()


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in tensors.items()}


def params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON; callables of the user's own by name only."""
    plain = {
        name: {type(value).__name__: asdict(value)} if type(value) in SAVED_TYPES.values() else value
        for name, value in params.items()
    }
    plain |= {name: {"custom": _name_of(value)} for name, value in plain.items() if callable(value)}
    plain["device"] = str(plain["device"])
    if "checkpoint_dir" in plain:
        plain["checkpoint_dir"] = None  # a place on the machine of the fit
    if plain.get("cluster_sizes") is not None and not isinstance(plain["cluster_sizes"], str):
        plain["cluster_sizes"] = [float(size) for size in plain["cluster_sizes"]]
    if plain.get("snapshots") is not None:
        plain["snapshots"] = [int(epoch) for epoch in plain["snapshots"]]
    if isinstance(plain["random_state"], np.random.RandomState):
        plain["random_state"] = None
    return {name: _plain(value) for name, value in plain.items()}


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's own, in sequences too."""
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _name_of(function: Any) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def params_from_json(plain: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Parameters from JSON, with those that are given in place of callables of the user's own."""
    params = plain | {name: value for name, value in given.items() if value is not None}
    for name in given:
        if isinstance(params.get(name), dict) and "custom" in params[name]:
            raise ModelFormatError(
                f"The model was made with a {name} of the user's own, {params[name]['custom']!r}, which is"
                f" not saved with it; pass it: DDC.load(..., {name}=...)."
            )
    return {name: _object(value) if isinstance(value, dict) else value for name, value in params.items()}


def _object(description: dict[str, Any]) -> Any:
    """An object of one of the types that are saved by their fields."""
    ((name, values),) = description.items()
    return SAVED_TYPES[name](**values)
