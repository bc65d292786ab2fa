"""Models that were saved in format 1, by ddclust 0.1, in the words of today."""

from __future__ import annotations

from typing import Any

TERMS = ("divergence", "orthogonality", "corners")
OPTIONAL = ("view_shapes", "feature_names", "merge_tree")  # empty in format 1 where a model has none


def upgraded(description: dict[str, Any]) -> dict[str, Any]:
    """The description of a saved model as the format of today has it."""
    if description["format_version"] > 1:
        return description
    is_ddc = description["estimator"] == "DDC"
    unmerged = [list(range(len(order))) for order in description["cluster_orders"]]
    present = {name: value for name, value in description.items() if value or name not in OPTIONAL}
    return present | {
        "params": upgraded_params(description["params"]) if is_ddc else description["params"],
        "runs": [upgraded_record(record) for record in description["runs"]],
        "cluster_groups": description.get("cluster_groups") or unmerged,
    }


def upgraded_params(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a DDC under their names of today.

    Examples
    --------
    >>> old = {"n_clusters": 3, "network": "auto", "init": "he", "loss": "auto", "learning_rate": 0.1}
    >>> upgraded_params(old)["network"]
    {'Network': {'kind': 'auto', 'init': 'he', 'norm_first': False}}
    """
    old = {
        "n_final": None,  # before clusters were merged
        "augment": None,  # before there were pairs
        "neighbors": None,
        "partner_weight": 1.0,
        "link_weight": 1.0,
        "balance": None,
        "cluster_sizes": None,
        "criterion": "loss",
        "schedule": "auto",
        "tol": 1e-3,
        "patience": "auto",
    } | params
    unchanged = (
        "n_clusters",
        "n_final",
        "augment",
        "n_init",
        "n_vote",
        "max_iter",
        "batch_size",
        "language",
        "n_jobs",
        "device",
        "random_state",
        "verbose",
    )
    new = {name: old[name] for name in unchanged if name in old}
    is_own_loss = old["loss"] != "auto"
    new["neighbors"] = None if is_own_loss and old["neighbors"] == "auto" else old["neighbors"]
    if is_own_loss and old["augment"] == "auto":
        new["augment"] = None
    criterion = "pairs" if old["criterion"] == "partners" else old["criterion"]
    new["selection"] = _object("Selection", criterion=criterion, halving=old.get("early_elimination", False))
    network = old["network"]
    if isinstance(network, str):
        network = _object("Network", kind=network, init=old["init"], norm_first=False)
    new["network"] = network
    new["anchor"] = None  # there was none
    new["loss"] = _loss(old)
    rate = old["learning_rate"]
    kind = {"constant": "ConstantRate", "cosine": "CosineRate"}.get(old["schedule"])
    new["learning_rate"] = rate if kind is None or isinstance(rate, str) else _object(kind, rate=rate)
    patience = old["patience"]
    new["early_stopping"] = patience
    if isinstance(patience, int):
        new["early_stopping"] = _object("EarlyStopping", patience=patience, tol=old["tol"])
    return new


def upgraded_record(record: dict[str, Any]) -> dict[str, Any]:
    """The record of a run with today's names."""
    terms = {("pairs" if name == "partners" else name): value for name, value in record["terms"].items()}
    history = [
        {("pairs" if name == "partners" else name): value for name, value in entry.items()}
        for entry in record["history"]
    ]
    rest = {name: value for name, value in record.items() if name != "rungs"}
    return rest | {
        "terms": terms,
        "history": history,
        "losses_at": record.get("rungs", record.get("losses_at", {})),
    }


def _loss(old: dict[str, Any]) -> Any:
    """The loss, with what used to be parameters of the estimator."""
    loss = old["loss"]
    if isinstance(loss, dict) and "DDCLoss" not in loss:
        return loss  # of the user's own
    weights = {
        "pairs": old["partner_weight"],
        "must_link": old["link_weight"],
        "cannot_link": old["link_weight"],
    }
    start_weights, choices = {}, {}
    if isinstance(loss, dict):
        choices = dict(loss["DDCLoss"])
        used = choices.pop("terms", TERMS)
        given = zip(TERMS, choices.pop("weights", (1.0, 1.0, 1.0)), strict=True)
        weights |= {term: weight if term in used else 0.0 for term, weight in given}
        start = choices.pop("start_balance", None)
        start_weights = {} if start is None else {"orthogonality": start}
    if old["balance"] is not None:
        weights["orthogonality"] = old["balance"]
        start_weights = {}
    sizes = old["cluster_sizes"] if old["cluster_sizes"] is not None else choices.pop("cluster_sizes", None)
    choices.pop("cluster_sizes", None)
    return _object("DDCLoss", **choices, weights=weights, start_weights=start_weights, cluster_sizes=sizes)


def _object(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {kind: fields}
