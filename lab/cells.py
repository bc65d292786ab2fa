"""What experiments are made of. A cell is one piece of work on one data set; it leaves one JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from sklearn.utils import Bunch

from ddclust.storage.json_files import as_json
from lab.parameters import Params, in_full

BUDGETS = ("quick", "standard", "paper")


class Given(Protocol):
    """What a fit is given in place of the data as they are. A frozen dataclass, so that results can name it."""

    def __call__(self, bunch: Bunch, seed: int) -> tuple[Any, dict[str, Any]]:
        """What is fitted, and further arguments of ``fit``."""


@dataclass(frozen=True)
class Fits:
    """Fits of DDC that differ in their seeds: ``repetitions`` times the best of ``n_init`` runs.

    Every run that a fit keeps (``n_vote`` of them) is scored, so ``n_vote=n_init`` scores all runs. With ``smooth``,
    soft assignments are averaged over that many neighbours before they are scored.
    """

    params: Params
    repetitions: int = 1
    seed: int = 0
    given: Given | None = None
    smooth: int | None = None

    def identity(self) -> dict[str, Any]:
        """Everything that the trained networks depend on, apart from the data and the number of clusters."""
        given = None if self.given is None else {type(self.given).__name__: asdict(self.given)}  # type: ignore[call-overload]
        return {
            "params": in_full(self.params),
            "repetitions": self.repetitions,
            "seed": self.seed,
            "given": given,
        }

    def protocol(self) -> dict[str, Any]:
        return {"method": "ddc", **self.identity(), "smooth": self.smooth}


@dataclass(frozen=True)
class Run:
    """A single run of a reading of the paper, in the given precision of the convolutions."""

    reading: str
    params: Params
    seed: int
    precision: str = "float32"

    def protocol(self) -> dict[str, Any]:
        return {
            "method": "run",
            "reading": self.reading,
            "params": in_full(self.params),
            "seed": self.seed,
            "precision": self.precision,
        }


@dataclass(frozen=True)
class Reference:
    """A reference method at the best of its hyperparameters, by :mod:`ddclust.compare.comparison`."""

    method: str
    runs: int
    choices: int
    params: Params = field(default_factory=dict)
    minutes: float | None = None

    def protocol(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "runs": self.runs,
            "choices": self.choices,
            "params": dict(self.params),
            "minutes": self.minutes,
        }


@dataclass(frozen=True)
class Picture:
    """A figure: ``draw(bunch, fit, **options)`` gives it with the numbers that it shows.

    ``fit`` is the first of the fits, None for a figure that needs none.
    """

    draw: Callable[..., Any]
    of: Fits | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    caption: str = ""

    def protocol(self) -> dict[str, Any]:
        return {
            "method": "figure",
            "draw": self.draw.__name__,
            "of": None if self.of is None else self.of.protocol(),
            "options": dict(self.options),
        }


@dataclass(frozen=True)
class Study:
    """Facts about a fit: ``analyse(bunch, fit, **options)`` gives them. ``fit`` is None if ``of`` is."""

    analyse: Callable[..., dict[str, Any]]
    of: Fits | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def protocol(self) -> dict[str, Any]:
        return {
            "method": "study",
            "analyse": self.analyse.__name__,
            "of": None if self.of is None else self.of.protocol(),
            "options": dict(self.options),
        }


Work = Fits | Run | Reference | Picture | Study


@dataclass(frozen=True)
class Cell:
    """A piece of work that leaves one JSON file and, if it is a picture, one image."""

    experiment: str
    data: str
    name: str
    n_clusters: int
    work: Work
    budget: str

    def protocol(self) -> dict[str, Any]:
        """Everything that the result depends on, apart from the data and the versions of libraries."""
        return as_json({"n_clusters": self.n_clusters, **self.work.protocol()})

    @property
    def key(self) -> str:
        """The name of the cell in files and on the command line."""
        return f"{self.experiment}/{self.data}/{self.name}"

    @property
    def command(self) -> str:
        """The command that makes this cell again."""
        return f"python -m lab run {self.experiment} --data {self.data} --cell {self.name} --budget {self.budget}"


def fits_key(data: str, n_clusters: int, fits: Fits) -> str:
    """The folder of fits. Cells that ask for the same fits get the same one, so that these are made once."""
    text = json.dumps({"n_clusters": n_clusters, **fits.identity()}, sort_keys=True)
    return f"{data}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
