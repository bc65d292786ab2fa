"""A fitted clusterer as the content of a model folder, and back. Everything is checked on the way back."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ddclust import __version__
from ddclust.choosing.calibration import Calibration
from ddclust.choosing.rejection import LEVELS, KnownItems
from ddclust.choosing.selection import Selection
from ddclust.data.batches import Scaling, input_shape
from ddclust.data.tables import Columns
from ddclust.data.text import StemVectorizer
from ddclust.data.validation import resolve_device
from ddclust.encoders import FittedEncoder
from ddclust.networks import Network, NetworkOfViews
from ddclust.objective.augment import BUILT_IN
from ddclust.objective.loss import DDCLoss
from ddclust.objective.regrouping import FineStage
from ddclust.storage.json_files import checked
from ddclust.storage.model_folder import ModelFormatError, check_tensors
from ddclust.storage.plain import CUSTOM, from_plain, to_plain
from ddclust.training.inference import evaluation_mode
from ddclust.training.randomness import own_randomness
from ddclust.training.rates import ConstantRate, CosineRate
from ddclust.training.setup import Setup
from ddclust.training.trainer import EarlyStopping

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

# Objects of these types are saved by their fields; no others are built when a model is read.
SAVED_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ConstantRate,
        CosineRate,
        DDCLoss,
        EarlyStopping,
        FineStage,
        Network,
        NetworkOfViews,
        Selection,
        *map(type, BUILT_IN.values()),
    )
}
COLUMNS_PREFIX = "columns."  # of the tensors of a table's texts
# Parameters that say where a model was made, and mean nothing elsewhere.
LOCAL = ("checkpoint_dir", "callbacks")


class Attribute(NamedTuple):
    """A fitted attribute that is saved as JSON; an estimator may lack it."""

    key: str
    name: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _shape(sides: Any) -> tuple[int, ...]:
    return tuple(int(side) for side in sides)


def _calibration(plain: Any) -> Calibration:
    return Calibration(temperature=float(plain["temperature"]), basis=str(plain["basis"]))


def _encoder(plain: Any) -> FittedEncoder:
    return checked(
        plain, FittedEncoder, what="The encoder of the model", remedy="save it again", error=ModelFormatError
    )


def _arrays(rows: Any) -> list[Any]:
    return [np.array(row, dtype=np.int64) for row in rows]


ATTRIBUTES = (
    Attribute("item_shape", "item_shape_", list, _shape),
    Attribute("view_shapes", "view_shapes_", to_plain, lambda shapes: [_shape(shape) for shape in shapes]),
    Attribute(
        "feature_names", "feature_names_in_", to_plain, lambda names: np.array(_texts(names), dtype=object)
    ),
    Attribute("encoder", "encoder_", asdict, _encoder),
    Attribute("voters", "voters_", list, list),
    Attribute("runs", "runs_", list, list),
    Attribute("n_added_clusters", "n_added_clusters_", int, int),
    Attribute("n_samples_seen", "n_samples_seen_", int, int),
    Attribute("calibration", "calibration_", asdict, _calibration),
    Attribute("cluster_orders", "cluster_orders_", to_plain, _arrays),
    Attribute("cluster_groups", "cluster_groups_", to_plain, _arrays),
    Attribute(
        "merge_tree", "merge_tree_", to_plain, lambda tree: np.array(tree, dtype=np.float64).reshape(-1, 4)
    ),
)
# Fitted attributes that are saved as tensors, with what their rows are: one for each training item.
KNOWN = "known_items."  # begins the names of the tensors of what is kept of the training items
TENSORS = {"probabilities": torch.float32, "agreement": torch.float64, "fine_labels": torch.int64}


def describe(model: NetworkClusterer) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What to save of a fitted model, as JSON and tensors."""
    description = {
        "ddclust_version": __version__,
        "estimator": type(model).__name__,
        "params": model._fitted_params,
        "n_samples": len(model.labels_),
        "bytes": model.scaling_.is_of_bytes,
    }
    if hasattr(model, "setup_"):
        description["setup"] = model.setup_.to_dict()
    for key, name, write, _ in ATTRIBUTES:
        if hasattr(model, name):
            description[key] = write(getattr(model, name))
    tensors = {
        f"network{i}.{name}": value
        for i, module in enumerate(model.modules_)
        for name, value in module.state_dict().items()
    }
    tensors["scaling.shift"] = torch.from_numpy(model.scaling_.shift)
    tensors["scaling.scale"] = torch.from_numpy(model.scaling_.scale)
    tensors |= {
        name: torch.from_numpy(getattr(model, f"{name}_"))
        for name in TENSORS
        # The agreement of a single run is NaN.
        if hasattr(model, f"{name}_") and not np.isnan(getattr(model, f"{name}_")).any()
    }
    if hasattr(model, "known_items_"):
        tensors |= {
            f"{KNOWN}{f.name}": torch.from_numpy(getattr(model.known_items_, f.name))
            for f in fields(KnownItems)
        }
    if hasattr(model, "vectorizer_"):
        stems = model.vectorizer_.get_feature_names_out().tolist()
        description["vectorizer"] = {"language": model.vectorizer_.language_, "stems": stems}
        tensors["vectorizer.idf"] = torch.from_numpy(model.vectorizer_.idf_.astype(np.float64))
    if hasattr(model, "columns_"):
        description["columns"], arrays = model.columns_.to_plain()
        tensors |= {f"{COLUMNS_PREFIX}{name}": torch.from_numpy(array) for name, array in arrays.items()}
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
    for key, name, _, read in ATTRIBUTES:
        if description.get(key) is not None:
            setattr(model, name, read(description[key]))
    others = {name: t for name, t in tensors.items() if not name.startswith("network")}
    if description.get("columns") is not None:
        model.columns_ = _columns(path, description["columns"], others)
    model.n_features_in_ = _n_features(model)
    _check_attributes(model)
    best = model.runs_[model.voters_[0]]
    model.history_, model.n_iter_ = [dict(record) for record in best["history"]], int(best["n_iter"])
    model.modules_ = [_load_network(model, path, tensors, f"network{i}.") for i in range(len(model.voters_))]
    x = torch.zeros(1, *input_shape(model.item_shape_))
    with evaluation_mode(model.modules_[0]) as device:
        model._n_features_out = model.modules_[0](x.to(device))[0].shape[1]
    check_tensors(path, others, _expected_tensors(model, description, others.keys()))
    if not (others["scaling.scale"] > 0).all():
        raise ValueError("scaling.scale must be positive.")
    model.scaling_ = Scaling(
        model.item_shape_, others["scaling.shift"].numpy(), others["scaling.scale"].numpy()
    )
    for name in TENSORS.keys() & others.keys():
        setattr(model, f"{name}_", others[name].numpy())
    model.labels_ = model.probabilities_.argmax(axis=1)
    if "agreement" not in others or (len(model.voters_) == 1 and not hasattr(model, "calibration_")):
        model.agreement_ = np.full(len(model.labels_), np.nan)  # earlier versions said 1 of a single network
    if f"{KNOWN}means" in others:
        model.known_items_ = KnownItems(*(others[f"{KNOWN}{f.name}"].numpy() for f in fields(KnownItems)))
    if description.get("vectorizer") is not None:
        model.vectorizer_ = _vectorizer(description["vectorizer"], others["vectorizer.idf"])
    if description.get("setup") is not None:
        model.setup_ = setup_from_plain(description["setup"], model.get_params(deep=False))


def _check_attributes(model: NetworkClusterer) -> None:
    """Refuse attributes that contradict each other."""
    from scipy.cluster.hierarchy import is_valid_linkage

    n_members = len(model.voters_)
    views = getattr(model, "view_shapes_", None)
    columns = getattr(model, "columns_", None)
    if columns is not None and model.item_shape_ != (len(columns.features),):
        raise ValueError("columns does not fit item_shape.")
    if columns is not None and columns.names != tuple(getattr(model, "feature_names_in_", ())):
        raise ValueError("columns does not fit feature_names.")
    if views is not None and sum(math.prod(shape) for shape in views) != model.n_features_in_:
        raise ValueError("view_shapes does not fit item_shape.")
    if len(getattr(model, "feature_names_in_", range(model.n_features_in_))) != model.n_features_in_:
        raise ValueError("feature_names does not name every feature.")
    runs = set(range(len(model.runs_)))
    if not n_members or len(set(model.voters_)) != n_members or not set(model.voters_) <= runs:
        raise ValueError("voters does not name runs.")
    if len(model.cluster_orders_) != n_members or len(model.cluster_groups_) != n_members:
        raise ValueError("cluster_orders, cluster_groups and voters differ in number.")
    n_final = getattr(model, "n_final", None)
    added = getattr(model, "n_added_clusters_", 0)  # by partial_fit
    k = len(model.cluster_orders_[0]) if n_final == "auto" else model.n_clusters + added
    if any(len(order) != k or not _are_all_numbers(order) for order in model.cluster_orders_):
        raise ValueError("cluster_orders are not permutations of the clusters.")
    wanted = k if n_final is None else (model.n_clusters if n_final == "auto" else n_final) + added
    for group in model.cluster_groups_:
        used = np.unique(group)
        if len(group) != k or len(used) != wanted or not _are_all_numbers(used):
            raise ValueError("cluster_groups do not say what every cluster was merged into.")
    tree = getattr(model, "merge_tree_", None)
    if tree is not None and (len(tree) != k - 1 or (k > 1 and not is_valid_linkage(tree))):
        raise ValueError("merge_tree is not a tree of the clusters.")


def _n_features(model: NetworkClusterer) -> int:
    """The columns of a table, or the values of an item."""
    return len(model.columns_.names) if hasattr(model, "columns_") else math.prod(model.item_shape_)


def _columns(
    path: str | os.PathLike[str], description: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> Columns:
    """The columns of a table; their tensors are taken out of the others."""
    own = {name: tensors.pop(name) for name in list(tensors) if name.startswith(COLUMNS_PREFIX)}
    check_tensors(path, own, {name: (value.shape, torch.float64) for name, value in own.items()})
    arrays = {name.removeprefix(COLUMNS_PREFIX): value.numpy() for name, value in own.items()}
    columns = Columns.from_plain(description, arrays)
    if len(arrays) != len(columns.to_plain()[1]):
        raise ValueError("There are arrays of columns that are no texts.")
    return columns


def _are_all_numbers(numbers: NDArray[np.int64]) -> bool:
    """Whether n numbers are those from 0 to n - 1, in any order."""
    return np.array_equal(np.sort(numbers), np.arange(len(numbers)))


def _expected_tensors(
    model: NetworkClusterer, description: dict[str, Any], found: Collection[str]
) -> dict[str, tuple[torch.Size, torch.dtype]]:
    """Shapes and types of all tensors but those of the networks; a few are optional, and expected if they are found."""
    scaling, n = Scaling.shape(model.item_shape_, description["bytes"]), int(description["n_samples"])
    expected = dict.fromkeys(("scaling.shift", "scaling.scale"), (torch.Size(scaling), torch.float64))
    lacking = set() if hasattr(model, "merge_tree_") else {"fine_labels"}
    if "agreement" not in found and len(model.voters_) == 1:
        lacking.add("agreement")  # there was a single run
    for name, dtype in TENSORS.items():
        if name not in lacking:
            shape = (n, model.n_clusters_) if name == "probabilities" else (n,)
            expected[name] = (torch.Size(shape), dtype)
    if any(name.startswith(KNOWN) for name in found):  # earlier versions did not save them
        d = model._n_features_out
        shapes = {"means": (len(model.cluster_orders_[0]), d), "whitening": (d, d)}
        for f in fields(KnownItems):
            expected[f"{KNOWN}{f.name}"] = (torch.Size(shapes.get(f.name, (LEVELS,))), torch.float32)
    if description.get("vectorizer") is not None:
        expected["vectorizer.idf"] = (torch.Size(model.item_shape_), torch.float64)
    return expected


def _vectorizer(description: dict[str, Any], idf: torch.Tensor) -> StemVectorizer:
    stems = _texts(description["stems"])
    if not len(set(stems)) == len(stems) == len(idf):
        raise ValueError("stems does not name every feature.")
    vectorizer = StemVectorizer.from_stems(description["language"], stems, idf.numpy())
    vectorizer.build_analyzer()  # refuses an unknown language
    return vectorizer


def _texts(names: Any) -> list[str]:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("A name of a feature is not a text.")
    return list(names)


def _load_network(
    model: NetworkClusterer, path: str | os.PathLike[str], tensors: dict[str, torch.Tensor], prefix: str
) -> nn.Module:
    """The network whose tensors have the prefix, after a comparison of names and shapes."""
    weights = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    is_built_in = model._network_is_built_in()
    if is_built_in:
        with torch.device("meta"):  # shapes without memory: a damaged description allocates nothing
            module = model._build()
    else:
        with own_randomness():
            module = model._build()
    check_tensors(path, weights, _shapes(module.state_dict()))
    if is_built_in:
        module = module.to_empty(device="cpu")  # every parameter and buffer of it is saved
    module.load_state_dict(weights)
    return module.to(resolve_device(model.device)).eval()


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (value.shape, value.dtype) for name, value in tensors.items()}


def params_to_plain(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON; callables of the user's own by name only."""
    plain = {name: None if name in LOCAL else to_plain(value) for name, value in params.items()}
    if isinstance(params["random_state"], np.random.RandomState):
        plain["random_state"] = None
    return plain


def params_from_plain(plain: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Parameters from JSON, with those that are given in place of callables of the user's own."""
    params = plain | {name: value for name, value in given.items() if value is not None}
    for name in given:
        if isinstance(params.get(name), dict) and CUSTOM in params[name]:
            article = "an" if name[0] in "aeiou" else "a"
            raise ModelFormatError(
                f"The model was made with {article} {name} of the user's own, {params[name][CUSTOM]!r}, which is"
                f" not saved with it; pass it: DDC.load(..., {name}=...)."
            )
    return {name: from_plain(value, SAVED_TYPES) for name, value in params.items()}


def setup_from_plain(plain: dict[str, Any], params: dict[str, Any]) -> Setup:
    """The setup of a fit from JSON; callables of the user's own are those among the parameters."""
    values = {f.name: from_plain(plain[f.name], SAVED_TYPES) for f in fields(Setup) if f.name in plain}
    for name, value in values.items():
        if isinstance(value, dict) and CUSTOM in value:
            values[name] = params[name]
    return Setup(**values | {"device": torch.device(values["device"])})
