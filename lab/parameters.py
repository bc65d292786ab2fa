"""The parameters of a fit as JSON. Experiments declare some, result files name all, :func:`model_of` makes the estimator.

The names are those of :class:`ddclust.DDC`; an object is written ``{"Type": {field: value}}``. What a result does not
depend on (``n_jobs``, ``device``, ``verbose``, ``checkpoint_dir``) is not here, and neither are ``n_clusters`` and
``random_state``, which cells have of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ddclust.ddc import DDC
from ddclust.saving import SAVED_TYPES
from ddclust.snapshots import Snapshots
from ddclust.storage.plain import from_plain
from lab.networks import FACTORIES

Params = Mapping[str, Any]
TYPES = {**SAVED_TYPES, "Snapshots": Snapshots}
TERMS = ("divergence", "orthogonality", "corners", "pairs", "must_link", "cannot_link")


def loss(
    *,
    bandwidth_rule: str = "squared_median",
    reduction: str = "mean",
    divergence: str = "cauchy_schwarz",
    weights: Mapping[str, float] | None = None,
    start_weights: Mapping[str, float] | None = None,
    cluster_sizes: Sequence[int] | str | None = None,
) -> Params:
    """A DDCLoss. Weights that are not named are 1; start weights that are not named are the weights themselves."""
    weights = dict.fromkeys(TERMS, 1.0) | dict(weights or {})
    return {
        "DDCLoss": {
            "bandwidth": 0.15,
            "bandwidth_rule": bandwidth_rule,
            "reduction": reduction,
            "divergence": divergence,
            "weights": weights,
            "start_weights": weights | dict(start_weights or {}),
            "cluster_sizes": cluster_sizes,
        }
    }


def loss_with_pairs(n_clusters: int) -> Params:
    """The default loss of fits with pairs, in numbers."""
    weight = (n_clusters - 1) / 4
    return loss(
        weights={"divergence": weight, "orthogonality": 5.0, "corners": weight},
        start_weights={"orthogonality": 50.0},
    )


def loss_with_sizes(n_clusters: int, cluster_sizes: Sequence[int]) -> Params:
    """The default loss of fits with pairs and given sizes of clusters, in numbers."""
    weight = (n_clusters - 1) / 4
    return loss(
        weights={"divergence": weight, "orthogonality": 25.0, "corners": weight}, cluster_sizes=cluster_sizes
    )


def network(*, init: str = "soft", norm_first: bool = False) -> Params:
    """A built-in network: the convolutional one for images, the fully connected one for vectors."""
    return {"Network": {"kind": "auto", "init": init, "norm_first": norm_first}}


def own_network(name: str) -> Params:
    """A network of :mod:`lab.networks`."""
    return {"custom": name}


def augmentation(augment: Any) -> Params:
    """An augmentation of the library."""
    return {type(augment).__name__: asdict(augment)}


def selection(*, criterion: str = "loss", halving: bool = False) -> Params:
    """How runs are chosen, and whether unpromising ones are stopped early."""
    return {"Selection": {"criterion": criterion, "halving": halving}}


def constant(rate: float) -> Params:
    """The same learning rate for all iterations."""
    return {"ConstantRate": {"rate": rate}}


def cosine(rate: float) -> Params:
    """A learning rate that falls along half a cosine to 0."""
    return {"CosineRate": {"rate": rate}}


def snapshots(epochs: Iterable[int]) -> list[Params]:
    """Soft assignments kept at the end of these epochs."""
    return [{"Snapshots": {"epochs": list(epochs)}}]


# A fit of the paper's method. It does not depend on the library's defaults, which change.
BASE: Params = {
    "n_final": None,
    "network": network(),
    "loss": loss(),
    "augment": None,
    "neighbors": None,
    "n_init": 4,
    "n_vote": 1,
    "selection": selection(),
    "max_iter": 3500,
    "batch_size": 100,
    "learning_rate": "auto",
    "early_stopping": None,
    "language": "english",
    "callbacks": None,
}

# Parameters that results before them do not name: they were float32, without an anchor, and from scratch.
NEWER = {"precision", "anchor"}


def in_full(changes: Params) -> dict[str, Any]:
    """All parameters of a fit, those that are not named as in the paper's method; newer ones where they are named."""
    unknown = set(changes) - set(BASE) - NEWER
    if unknown:
        raise ValueError(f"These are no parameters of a fit: {', '.join(sorted(unknown))}.")
    return {**BASE, **changes}


def model_of(
    params: Params,
    n_clusters: int,
    *,
    random_state: int | None = None,
    checkpoint_dir: Path | None = None,
    n_jobs: int = -1,
    verbose: bool = False,
) -> DDC:
    """The estimator with these parameters."""
    full = in_full(params)
    values = {name: from_plain(_without_equal_starts(value), TYPES) for name, value in full.items()}
    values.setdefault("anchor", None)
    values.setdefault("encoder", None)  # whatever is installed
    values.setdefault("precision", "float32")  # on whatever machine
    return DDC(
        n_clusters,
        **values | {"network": network_factory(params) or values["network"]},
        random_state=random_state,
        checkpoint_dir=checkpoint_dir,
        n_jobs=n_jobs,
        verbose=verbose,
    )


def network_factory(params: Params) -> Any:
    """The factory of a network that a saved model does not contain; None for one that it does."""
    name = in_full(params)["network"].get("custom")
    return None if name is None else FACTORIES[name]


def _without_equal_starts(value: Any) -> Any:
    """A loss without start weights that are the weights themselves; anything else as it is."""
    if not isinstance(value, dict) or "DDCLoss" not in value:
        return value
    fields = value["DDCLoss"]
    starts = {term: w for term, w in fields["start_weights"].items() if w != fields["weights"][term]}
    return {"DDCLoss": fields | {"start_weights": starts}}
