"""The analyses of the studies: ``(bunch, fit, **options) -> facts``. Classes serve only to score."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import Bunch

from ddclust.baselines.itc import ITC
from ddclust.choosing.consensus import majority_vote
from ddclust.choosing.metrics import nmi
from ddclust.choosing.selection import agreement, balance, rank_runs, steadiness
from ddclust.data.batches import BatchSource, Scaling
from ddclust.ddc import DDC
from ddclust.defaults import PAIRS_ORTHOGONALITY, PAIRS_START_ORTHOGONALITY
from ddclust.objective.loss import DDCLoss
from ddclust.scan import scan
from ddclust.training.record import RunRecord
from ddclust.training.run import stages
from lab.runner import N_VOTE, Fitted, described_runs, scores

# The label-free quantities, and whether a small value (-1) or a large one (+1) is taken to be good.
SIGNS = {
    "loss": -1,
    "divergence": -1,
    "orthogonality": -1,
    "corners": -1,
    "pairs": -1,
    "agreement": 1,
    "agreement by NMI": 1,
    "steadiness": 1,
    "confidence": 1,
    "size entropy": 1,
}


def k_means(bunch: Bunch, fit: None, *, n_init: int, seeds: int) -> dict[str, Any]:
    """k-means for each seed, on standardised features or, for texts, on the sparse ones."""
    X = bunch.data
    if not scipy.sparse.issparse(X):
        X = StandardScaler().fit_transform(X.reshape(len(X), -1))
    k = len(np.unique(bunch.target))
    models = [KMeans(k, n_init=n_init, random_state=seed) for seed in range(seeds)]
    return {"scores": [scores(bunch.target, model.fit_predict(X)) for model in models]}


def beside_simple_methods(bunch: Bunch, fit: None, *, seeds: int, iterations: int) -> dict[str, Any]:
    """DDC by default on a table, in single runs, and k-means and a mixture by BIC on the same vectors."""
    known = bunch.target >= 0  # noise is of no class
    truth = bunch.target[known]
    k, found = len(np.unique(truth)), []
    for seed in range(seeds):
        model = DDC(
            k, n_init=1, max_iter=iterations, encoder=None, random_state=seed, n_jobs=1, verbose=False
        )
        model.fit(bunch.data)
        columns = getattr(model, "columns_", None)
        vectors = _scaled(bunch.data) if columns is None else columns.encode(bunch.data)
        beside = KMeans(k, n_init=10, random_state=seed).fit_predict(vectors)
        mixture = _mixture_by_bic(vectors.astype(np.float64), k, n_init=3, seed=seed)
        found.append((model.labels_, beside, mixture.predict(vectors), model.setup_.anchor))
    facts = {
        "ddc": [scores(truth, labels[known]) for labels, _, _, _ in found],
        "k-means": [scores(truth, labels[known]) for _, labels, _, _ in found],
        "mixture": [scores(truth, labels[known]) for _, _, labels, _ in found],
        "anchors": [anchor for _, _, _, anchor in found],
        "sizes": [np.bincount(labels, minlength=k).tolist() for labels, _, _, _ in found],
    }
    if columns is not None:
        facts["columns"] = [list(row) for row in columns.rows()]
        facts["gaps"] = sum(getattr(column, "gaps", 0) for column in columns.described)
    return facts


def umap_of_a_table(
    bunch: Bunch, fit: None, *, n_neighbors: int, min_dist: float, n_components: int, n_init: int, seeds: int
) -> dict[str, Any]:
    """UMAP of the scaled rows, to their own number of dimensions at most, and a Gaussian mixture on it; needs umap-learn."""
    from umap import UMAP

    known, X = bunch.target >= 0, _scaled(bunch.data)
    k, found = len(np.unique(bunch.target[known])), []
    for seed in range(seeds):
        n_dimensions = min(n_components, X.shape[1])
        reduce = UMAP(
            n_neighbors=n_neighbors,
            min_dist=min_dist,
            n_components=n_dimensions,
            random_state=seed,
            n_jobs=1,
        )
        mixture = GaussianMixture(k, n_init=n_init, random_state=seed)
        found.append(mixture.fit_predict(reduce.fit_transform(X)))
    return {"scores": [scores(bunch.target[known], labels[known]) for labels in found]}


def _scaled(X: NDArray) -> NDArray:
    """Rows as DDC's networks get them."""
    return BatchSource(X, Scaling.of(X)).vectors()


def k_means_of_features(bunch: Bunch, fit: None, *, n_init: int, seeds: int) -> dict[str, Any]:
    """k-means for each seed, on features of unit length as they are; the choice has the lowest inertia."""
    k = len(np.unique(bunch.target))
    models = [KMeans(k, n_init=n_init, random_state=seed).fit(bunch.data) for seed in range(seeds)]
    chosen = min(models, key=lambda model: model.inertia_)
    return {
        "scores": [scores(bunch.target, model.labels_) for model in models],
        "chosen": scores(bunch.target, chosen.labels_),
    }


def umap_and_mixture(
    bunch: Bunch, fit: None, *, n_neighbors: int, min_dist: float, n_init: int, seeds: int
) -> dict[str, Any]:
    """UMAP to k dimensions and a Gaussian mixture on it for each seed, as N2D does; needs umap-learn.

    The choice agrees most with the others: likelihoods on different maps cannot be compared.
    """
    from umap import UMAP

    k = len(np.unique(bunch.target))
    found = []
    for seed in range(seeds):
        reduce = UMAP(n_neighbors=n_neighbors, min_dist=min_dist, n_components=k, random_state=seed, n_jobs=1)
        mixture = GaussianMixture(k, n_init=n_init, random_state=seed)
        found.append(mixture.fit_predict(reduce.fit_transform(bunch.data)))
    chosen = found[int(np.argmax(agreement(found)))]
    return {
        "scores": [scores(bunch.target, labels) for labels in found],
        "chosen": scores(bunch.target, chosen),
    }


def separation(bunch: Bunch, fit: Fitted) -> dict[str, Any]:
    """How well two classes of crops are found, what the clusters follow instead, and how well they can be learnt.

    ``by_photo`` is the NMI of the clusters and the photographs that the crops come from, ``brightness`` the ACC of the
    clusters of the mean brightness alone. ``learnt`` is the accuracy of a classifier on photographs that it has not seen.
    """
    X = bunch.data.reshape(len(bunch.data), -1).astype(np.float64) / 255
    brightness = X.mean(axis=1, keepdims=True)
    k_means = KMeans(2, n_init=10, random_state=0)
    itc = ITC(2, density="knn", random_state=0).fit_predict(X)
    found = {
        "ddc": fit.labels[0],
        "k-means": k_means.fit_predict(StandardScaler().fit_transform(X)),
        "itc-knn": itc,
        "brightness": k_means.fit_predict(brightness),
    }
    learner = make_pipeline(StandardScaler(), PCA(40, random_state=0), SVC())
    learnt = cross_val_score(learner, X, bunch.target, groups=bunch.photo, cv=GroupKFold(5))
    return {
        "scores": {
            name: scores(bunch.target, labels) | {"by_photo": round(nmi(bunch.photo, labels), 4)}
            for name, labels in found.items()
        },
        "runs": described_runs(fit, bunch.target),
        "learnt": mean_and_sd(learnt.tolist()),
        "photos": len(np.unique(bunch.photo)),
    }


def numbers(
    bunch: Bunch, fit: None, *, ks: Sequence[int], runs: int, iterations: int, items: int
) -> dict[str, Any]:
    """What a scan says about the number of clusters."""
    X = bunch.data
    if X.shape[0] > items:
        X = X[np.sort(np.random.default_rng(0).permutation(X.shape[0])[:items])]
    begun = time.process_time()
    model = DDC(n_init=runs, max_iter=iterations, encoder=None, random_state=0, n_jobs=1, verbose=False)
    found = scan(X, ks, model=model)
    seconds = time.process_time() - begun
    return {
        "said": asdict(found.recommendation),
        "rows": [row | {"agreements": [round(a, 4) for a in row["agreements"]]} for row in found.rows],
        "processor_seconds": round(seconds, 1),
    }


def clusters_used(
    bunch: Bunch, fit: None, *, n_clusters: int, iterations: int, items: int, seeds: int, growing: bool
) -> dict[str, Any]:
    """How many clusters single runs use, with an orthogonality that grows with their number or with a constant one."""
    kept = np.sort(np.random.default_rng(0).permutation(bunch.data.shape[0])[:items])
    X, truth = bunch.data[kept], bunch.target[kept]
    constant = DDCLoss(
        weights={"orthogonality": PAIRS_ORTHOGONALITY},
        start_weights={"orthogonality": PAIRS_START_ORTHOGONALITY},
    )
    found = []
    for seed in range(seeds):
        model = DDC(
            n_clusters,
            n_final=None,
            loss="auto" if growing else constant,
            anchor=None,
            n_init=1,
            max_iter=iterations,
            encoder=None,
            random_state=seed,
            n_jobs=1,
            verbose=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the facts have what it says
            labels = model.fit_predict(X)
        sizes = np.bincount(labels, minlength=n_clusters)
        facts = {"used": int(np.count_nonzero(sizes)), "largest": int(sizes.max())}
        found.append(facts | {"NMI": round(nmi(truth, labels), 4)})
    return {"fits": found}


def gaussian_mixture(bunch: Bunch, fit: None, *, n_init: int, seeds: int) -> dict[str, Any]:
    """A Gaussian mixture for each seed, on standardised features; of the covariances the one with the lowest BIC."""
    X = StandardScaler().fit_transform(bunch.data.reshape(len(bunch.data), -1))
    k = len(np.unique(bunch.target))
    found = []
    for seed in range(seeds):
        best = _mixture_by_bic(X, k, n_init, seed)
        found.append(scores(bunch.target, best.predict(X)) | {"covariance": best.covariance_type})
    return {"scores": found}


def _mixture_by_bic(X: NDArray[np.float64], n_clusters: int, n_init: int, seed: int) -> GaussianMixture:
    """Of mixtures with four kinds of covariances, the one with the lowest BIC."""
    options = {"n_init": n_init, "reg_covar": 1e-4, "random_state": seed}
    models = [
        GaussianMixture(n_clusters, covariance_type=kind, **options).fit(X)
        for kind in ("full", "tied", "diag", "spherical")
    ]
    return min(models, key=lambda model: model.bic(X))


# --- restarts: what several runs, halving and the vote are worth ----------------------------------------------------


def replays(bunch: Bunch, fit: Fitted, *, group: int, drawn: int) -> dict[str, Any]:
    """What is chosen from groups of runs by the loss, by halving and by the vote. Runs with empty clusters are left out."""
    runs = described_runs(fit, bunch.target)
    labels = dict(zip(fit.model.voters_, fit.labels, strict=True))
    scored = np.sort(fit.model.voters_)
    group = min(group, len(scored))
    random = np.random.default_rng(0)
    disjoint = np.array_split(scored, len(scored) // group)
    at_random = [random.choice(scored, group, replace=False) for _ in range(drawn)]
    k = fit.model.n_clusters
    return {
        "runs": runs,
        "disjoint": _replayed(runs, labels, bunch.target, k, disjoint),
        "drawn": _replayed(runs, labels, bunch.target, k, at_random),
    }


def _replayed(
    runs: list[dict[str, Any]],
    labels: dict[int, NDArray],
    truth: NDArray,
    n_clusters: int,
    groups: Sequence[NDArray],
) -> dict[str, Any]:
    """ACC and NMI of each choice, as mean and spread over groups of runs, and what halving saves."""
    choices: dict[str, list[dict[str, float]]] = {
        "mean run": [],
        "lowest loss": [],
        "lowest loss with halving": [],
        "vote of three": [],
    }
    saved, same, not_worse = [], [], []
    max_iter = max(run["n_iter"] for run in runs)
    for group in (members.tolist() for members in groups):
        ranked = _ranked(runs, group, n_clusters)
        chosen, cost = _halved(runs, group, n_clusters, max_iter)
        each = [runs[run] for run in ranked]
        full, early = (scores(truth, labels[run]) for run in (ranked[0], chosen))
        choices["mean run"].append(
            {name: float(np.mean([run[name] for run in each])) for name in ("ACC", "NMI")}
        )
        choices["lowest loss"].append(full)
        choices["lowest loss with halving"].append(early)
        voted = majority_vote([labels[run] for run in ranked[:N_VOTE]])
        choices["vote of three"].append(scores(truth, voted))
        saved.append(1 - cost / (max_iter * len(group)))
        same.append(chosen == ranked[0])
        not_worse.append(early["ACC"] >= full["ACC"] - 0.01)
    better = [
        vote["ACC"] > best["ACC"]
        for vote, best in zip(choices["vote of three"], choices["lowest loss"], strict=True)
    ]
    return {
        "groups": len(groups),
        "runs_in_a_group": len(groups[0]),
        "choices": {
            choice: {name: mean_and_sd([score[name] for score in found]) for name in ("ACC", "NMI")}
            for choice, found in choices.items()
        },
        "iterations saved by halving": mean_and_sd(saved),
        "shares": {
            "halving chooses the same run": float(np.mean(same)),
            "halving loses at most .01 ACC": float(np.mean(not_worse)),
            "the vote is better than the lowest loss": float(np.mean(better)),
        },
    }


def _ranked(runs: list[dict[str, Any]], group: list[int], n_clusters: int) -> list[int]:
    return [
        group[place]
        for place in rank_runs([RunRecord.from_dict({"run": run, **runs[run]}) for run in group], n_clusters)
    ]


def _halved(runs: list[dict[str, Any]], group: list[int], n_clusters: int, max_iter: int) -> tuple[int, int]:
    """The run that successive halving chooses from a group, and the iterations that it takes in all."""
    remaining, cost, reached = group, 0, 0
    for until, survivors in stages(len(group), 1, max_iter, True):
        if len(remaining) > survivors:
            remaining = sorted(remaining, key=lambda run: runs[run]["losses_at"][str(reached)])[:survivors]
        cost += (until - reached) * len(remaining)
        reached = until
    return _ranked(runs, remaining, n_clusters)[0], cost


# --- selection: which label-free quantities rank runs as accuracy does ----------------------------------------------


def quantities(bunch: Bunch, fit: Fitted, *, group: int, groups: int) -> dict[str, Any]:
    """The label-free quantities of every run, and how well each of them chooses."""
    runs = _with_quantities(fit, bunch)
    return {
        "runs": runs,
        "runs_with_empty_clusters": len(fit.model.runs_) - len(runs),
        "any_run": mean_and_sd([run["ACC"] for run in runs]),
        "quantities": _judged(runs, group, groups),
    }


def _with_quantities(fit: Fitted, bunch: Bunch) -> list[dict[str, Any]]:
    """Every quantity of every run that was kept, with its ACC and NMI."""
    model = fit.model
    source = model._source(bunch.data)
    probabilities = model.member_probabilities(bunch.data)
    labels = [p.argmax(axis=1) for p in probabilities]
    by_rand = agreement(labels)
    runs = []
    for place, run in enumerate(model.voters_):
        record, own = model.runs_[run], labels[place]
        others = [nmi(own, other) for other in labels if other is not own]
        values = {
            "loss": record["loss"],
            **record["terms"],
            "agreement": by_rand[place],
            "agreement by NMI": np.mean(others) if others else 1.0,
            "steadiness": steadiness(model.modules_[place], source),
            "confidence": probabilities[place].max(axis=1).mean(),
            "size entropy": balance(own, model.n_clusters),
        }
        runs.append(
            {"run": run, "seed": record["seed"]}
            | {name: round(float(value), 5) for name, value in values.items()}
            | scores(bunch.target, own)
        )
    return sorted(runs, key=lambda run: run["run"])


def _judged(runs: list[dict[str, Any]], group: int, groups: int) -> dict[str, Any]:
    """The rank correlation of each quantity with ACC and NMI, and the ACC of what it chooses from groups of runs."""
    random = np.random.default_rng(0)
    drawn = [random.choice(len(runs), min(group, len(runs)), replace=False) for _ in range(groups)]
    accuracy = np.array([run["ACC"] for run in runs])
    table: dict[str, Any] = {}
    for name, sign in SIGNS.items():
        if name not in runs[0]:
            continue  # runs without pairs
        value = sign * np.array([run[name] for run in runs])
        table[name] = {
            "better": "small" if sign < 0 else "large",
            "Spearman": {m: correlation(value, [run[m] for run in runs]) for m in ("ACC", "NMI")},
            "ACC of the choice": mean_and_sd([accuracy[g[value[g].argmax()]] for g in drawn]),
        }
    table["ACC itself, for comparison"] = {
        "better": "large",
        "ACC of the choice": mean_and_sd([accuracy[g].max() for g in drawn]),
    }
    return table


def correlation(value: NDArray, score: Sequence[float]) -> float | None:
    """Spearman's rank correlation, None where the quantity is the same for all runs."""
    found = float(spearmanr(value, score).statistic) if np.ptp(value) > 0 else float("nan")
    return None if np.isnan(found) else round(found, 3)


def mean_and_sd(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation."""
    return {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values)), 4)}
