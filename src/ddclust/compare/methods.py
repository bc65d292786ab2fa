"""The methods that can be compared. One entry of ``METHODS`` is all that a new method needs here.

Estimators are imported only when they are fitted, so the names can be listed without loading torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddclust.compare.job import Job

N_VOTE = 3


@dataclass(frozen=True)
class Method:
    """How a method takes part in a comparison.

    Parameters
    ----------
    estimator : str
        Import path of a clusterer with the parameters ``n_clusters`` and ``random_state``.
    titles : tuple of str
        The names of its results in the table.
    choices : tuple of dict
        Hyperparameters to try, the default first. The paper tries nine.
    restarts : bool, default=False
        Whether each choice is fitted once per run, each time with another seed. Other methods restart within a
        fit, or not at all.
    options : tuple of {"runs", "max_iter"}
        The options of the comparison that ``settings`` uses.
    settings : callable (job) -> dict
        Parameters that are the same for every choice.
    takes_vectors : bool, default=True
        Whether it is fitted to the data as scaled vectors. If False, it gets the data as they are.
    takes_neighbors : bool, default=False
        Whether ``fit`` takes ``neighbors``, which are then found once for all fits.
    objective : callable (model) -> float, optional
        What the method minimises. It decides between fits with the same parameters.
    labels : callable (model, X) -> tuple of ndarray
        The labels for each of the titles, in their order. A fit may leave the last titles out.
    """

    estimator: str
    titles: tuple[str, ...]
    choices: tuple[dict[str, Any], ...] = ({},)
    restarts: bool = False
    options: tuple[str, ...] = ()
    settings: Callable[[Job], dict[str, Any]] = lambda job: {}
    takes_vectors: bool = True
    takes_neighbors: bool = False
    objective: Callable[[Any], float] | None = None
    labels: Callable[[Any, Any], tuple[Any, ...]] = lambda model, X: (model.labels_,)


def _ddc_settings(job: Job) -> dict[str, Any]:
    """All runs of DDC are made in one fit, which can be resumed."""
    runs = job.options["runs"]
    return {
        "n_init": runs,
        "n_vote": min(N_VOTE, runs),
        "max_iter": job.options["max_iter"],
        "checkpoint_dir": job.checkpoints,
        "encoder": None,  # the others see words and pixels, too
    }


def _ddc_labels(model: Any, X: Any) -> tuple[Any, ...]:
    """The labels of the best run and, if enough runs are left to vote, those of the vote."""
    best = model.member_probabilities(X)[0].argmax(axis=1)
    return (best, model.labels_) if len(model.voters_) == N_VOTE else (best,)


# LDMGI's nine choices are its paper's own. For the other methods, the DDC paper only says that there were nine.
METHODS = {
    "k-means": Method(
        "sklearn.cluster.KMeans",
        ("k-means",),
        restarts=True,
        settings=lambda job: {"n_init": 1},
        objective=lambda model: model.inertia_,
    ),
    "itc-parzen": Method(
        "ddclust.baselines.ITC",
        ("ITC (parzen)",),
        tuple({"density": "parzen", "bandwidth": b} for b in (0.15, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)),
        options=("runs",),
        settings=lambda job: {"n_init": job.options["runs"]},
    ),
    "itc-knn": Method(
        "ddclust.baselines.ITC",
        ("ITC (knn)",),
        tuple(
            {"density": "knn", "n_neighbors": k, "seed_size": size, "alpha": alpha}
            for k, size in ((1, 3), (2, 4), (5, 8))
            for alpha in (1.0, 0.2, 0.01)
        ),
        options=("runs",),
        settings=lambda job: {"n_init": job.options["runs"]},
    ),
    "sec": Method(
        "ddclust.baselines.SEC",
        ("SEC",),
        tuple({"mu": mu, "gamma": gamma} for mu in (1.0, 1e-3, 1e-6) for gamma in (1.0, 1e-3, 1e3)),
        takes_neighbors=True,
    ),
    "ldmgi": Method(
        "ddclust.baselines.LDMGI",
        ("LDMGI",),
        tuple({"reg_lambda": 10.0**power} for power in (0, -8, -6, -4, -2, 2, 4, 6, 8)),
        takes_neighbors=True,
    ),
    "dec": Method(
        "ddclust.baselines.DEC",
        ("DEC",),
        restarts=True,
        takes_vectors=False,
        objective=lambda model: model.runs_[0]["loss"],
    ),
    "ddc": Method(
        "ddclust.DDC",
        ("DDC", "DDC-VOTE"),
        options=("runs", "max_iter"),
        settings=_ddc_settings,
        takes_vectors=False,
        objective=lambda model: model.runs_[model.voters_[0]]["loss"],
        labels=_ddc_labels,
    ),
}
