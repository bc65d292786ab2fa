"""What experiments are made of: a cell is one method, or one choice of parameters, on one data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from sklearn.utils import Bunch

from ddclust.ddc import DDC
from ddclust.saving import params_to_json

# What a result does not depend on, or what a fit is given by the runner.
INDIFFERENT = ("checkpoint_dir", "device", "n_clusters", "n_jobs", "random_state", "verbose")
# Parameters that came later, with the values at which a result is what it was without them, and so is its key.
LATER: dict[str, Any] = {
    "schedule": "auto",
    "start_balance": None,
    "augment": None,
    "neighbors": None,
    "partner_weight": 1.0,
    "link_weight": 1.0,
    "cluster_sizes": None,
    "n_final": None,
    "criterion": "loss",
    "balance": None,
    "cut": 0.0,
}
# What experiments do not leave to defaults, which depend on the data.
ALONE = {"augment": None, "neighbors": None}
BUDGETS = ("quick", "standard", "paper")


class Given(Protocol):
    """What a fit gets other than the data as they are: a frozen dataclass, so that results can say what it was."""

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        """What is fitted, and further arguments of ``fit``."""


@dataclass(frozen=True)
class Fits:
    """Fits of DDC that differ by their seeds alone: so many times the best of ``n_init`` restarts.

    Every run that a fit keeps (``n_vote`` of them) is scored, so ``n_vote=n_init`` scores all. With ``smooth``, by the
    clusters of items together with so many neighbours.
    """

    params: Mapping[str, Any]
    repetitions: int = 1
    seed: int = 0
    given: Given | None = None
    smooth: int | None = None

    def model(self, n_clusters: int, **params: Any) -> DDC:
        """The estimator, without partners unless they are declared."""
        return DDC(n_clusters, **(ALONE | dict(self.params) | params))

    def protocol(self, n_clusters: int) -> dict[str, Any]:
        model = self.model(n_clusters)
        has_partners = model.augment is not None or model.neighbors is not None
        params = params_to_json(model.get_params(deep=False) | {"loss": model._loss(has_partners)})
        params = _without_later(params)
        return {
            "method": "ddc",
            "params": {name: value for name, value in params.items() if name not in INDIFFERENT},
            "repetitions": self.repetitions,
            "seed": self.seed,
            **({} if self.given is None else {"given": {type(self.given).__name__: asdict(self.given)}}),  # type: ignore[call-overload]
            **({} if self.smooth is None else {"smooth": self.smooth}),
        }


def _without_later(params: Any) -> Any:
    """The same without what came later, also within losses and augmentations."""
    if not isinstance(params, dict):
        return params
    return {
        name: _without_later(value)
        for name, value in params.items()
        if name not in LATER or LATER[name] != value
    }


@dataclass(frozen=True)
class Rival:
    """A method that DDC is compared with: the best of its hyperparameters, by :mod:`ddclust.compare.comparison`."""

    method: str
    runs: int
    choices: int
    params: Mapping[str, Any] = field(default_factory=dict)
    minutes: float = float("inf")

    def protocol(self, n_clusters: int) -> dict[str, Any]:
        return {
            "method": self.method,
            "runs": self.runs,
            "choices": self.choices,
            "params": dict(self.params),
            "minutes": None if self.minutes == float("inf") else self.minutes,
        }


@dataclass(frozen=True)
class Picture:
    """A figure: ``draw(bunch, model)`` gets the first of the fits, None if the figure is of none."""

    draw: Callable[..., Any]
    of: Fits | None = None
    caption: str = ""

    def protocol(self, n_clusters: int) -> dict[str, Any]:
        return {
            "method": "figure",
            "draw": self.draw.__name__,
            "of": None if self.of is None else self.of.protocol(n_clusters),
            "caption": self.caption,
        }


@dataclass(frozen=True)
class Cell:
    """A piece of work that leaves one JSON file, and for a picture one image."""

    experiment: str
    data: str
    name: str
    n_clusters: int
    work: Fits | Rival | Picture
    budget: str

    def protocol(self) -> dict[str, Any]:
        """All that the result depends on, but for the data and the versions of the libraries."""
        return json.loads(json.dumps({"n_clusters": self.n_clusters, **self.work.protocol(self.n_clusters)}))

    @property
    def key(self) -> str:
        """How the cell is called in files and on the command line."""
        return f"{self.experiment}/{self.data}/{self.name}"

    @property
    def command(self) -> str:
        """What makes this cell again."""
        return f"ddclust reproduce {self.experiment} --data {self.data} --cell {self.name} --budget {self.budget}"


def fits_key(data: str, n_clusters: int, fits: Fits) -> str:
    """The folder of fits: the same for cells that ask for the same ones, so that they are made once."""
    protocol = replace(fits, smooth=None).protocol(n_clusters)
    text = json.dumps({"n_clusters": n_clusters, **protocol}, sort_keys=True)
    return f"{data}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
