"""Each table and figure of the paper as a list of cells; the budgets say how large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from torch import Tensor, nn

from ddclust.data.named.mnist import UNEQUAL
from ddclust.networks import MLP, ConvNet
from ddclust.objective.augment import Affine, Dropout, Photo
from ddclust.objective.loss import TERMS, DDCLoss
from lab import figures as _figures
from lab.beyond import Halves, RandomLinks, TitlesAndBodies
from lab.cells import BUDGETS, Cell, Fits, Given, Picture, Rival

IMAGES = {"mnist": 10, "seals-3": 3, "seals-2": 2}
# RCV1 itself, where it can be fetched, and what stands in for it.
TEXTS = {"reuters": 4, "agnews": 4, "rcv1-subset": 4, "rcv1-subset-balanced": 4, "reuters21578-balanced": 4}
CLUSTERS = {**IMAGES, **TEXTS}
ABLATED = {"mnist": 10, "rcv1-subset": 4}
RCV1_SIZES = [2043, 1525, 1132, 407]  # of the classes of the subset


@dataclass(frozen=True)
class Budget:
    """How large the experiments are."""

    restarts: int  # of DDC in Table 1
    iterations: dict[str, int]  # of DDC in Table 1; "images" and "texts" where the data set is not named
    eliminate: bool
    runs: int  # of k-means and ITC
    choices: int
    dec: dict[str, dict[str, Any]]  # DEC's schedule by data set; "" where it is not named
    dec_runs: int
    repeated: tuple[int, int]  # of Table 2: repetitions, and restarts of each
    repeated_iterations: dict[str, int]
    seeds: int  # of each reading
    reading_iterations: dict[str, int]


SHORT_DEC = {"layer_iter": 300, "finetune_iter": 1500, "max_iter": 3000}
PHOTOS_DEC = {**SHORT_DEC, "center": True}

SIZES = {
    "quick": Budget(
        restarts=3,
        iterations={"images": 200, "texts": 300},
        eliminate=False,
        runs=2,
        choices=1,
        dec={"": {"layer_iter": 20, "finetune_iter": 60, "max_iter": 100}},
        dec_runs=1,
        repeated=(2, 1),
        repeated_iterations={"mnist": 100, "rcv1-subset": 300},
        seeds=1,
        reading_iterations={"mnist": 100, "rcv1-subset": 300},
    ),
    "standard": Budget(
        restarts=20,
        iterations={"mnist": 7000, "images": 1500, "texts": 5000},
        eliminate=True,
        runs=20,
        choices=9,
        dec={"mnist": {}, "seals-3": PHOTOS_DEC, "seals-2": PHOTOS_DEC, "": SHORT_DEC},
        dec_runs=1,
        repeated=(5, 2),
        repeated_iterations={"mnist": 700, "rcv1-subset": 3000},
        seeds=4,
        reading_iterations={"mnist": 1050, "rcv1-subset": 3000},
    ),
    "paper": Budget(
        restarts=20,
        iterations={"images": 70_000, "texts": 70_000},
        eliminate=False,
        runs=20,
        choices=9,
        dec={
            "": {
                "pretraining": "sgd",
                "layer_iter": 50_000,
                "finetune_iter": 100_000,
                "update_interval": 160,
            }
        },
        dec_runs=20,
        repeated=(5, 20),
        repeated_iterations={"mnist": 70_000, "rcv1-subset": 70_000},
        seeds=5,
        reading_iterations={"mnist": 70_000, "rcv1-subset": 70_000},
    ),
}
assert tuple(SIZES) == BUDGETS


def table1_fits(data: str, size: Budget, loss: DDCLoss | None = None) -> Fits:
    """DDC and DDC-VOTE: the best of many restarts, and the vote of the best three."""
    iterations = size.iterations.get(data, size.iterations["images" if data in IMAGES else "texts"])
    params: dict[str, Any] = {
        "loss": loss or DDCLoss.paper(),
        "n_init": size.restarts,
        "n_vote": 3,
        "max_iter": iterations,
        "patience": None,
        "early_elimination": size.eliminate,
    }
    if data == "mnist":
        params["snapshots"] = tuple(range(iterations // 700 + 1))
    return Fits(params)


def table1(budget: str) -> Iterator[Cell]:
    """Table 1: every method on every data set."""
    size = SIZES[budget]
    for data, k in CLUSTERS.items():
        yield Cell("table1", data, "ddc", k, table1_fits(data, size), budget)
        rivals = [
            Rival("k-means", size.runs, 1),
            Rival("sec", 1, size.choices),
            Rival("ldmgi", 1, size.choices),
            Rival("dec", size.dec_runs, 1, size.dec.get(data, size.dec[""])),
        ]
        # The paper has it on the seals alone.
        tried = (min(size.runs, 3), size.choices) if data in ("seals-3", "seals-2") else (1, 1)
        rivals += [Rival(name, *tried, minutes=30) for name in ("itc-parzen", "itc-knn")]
        for rival in rivals:
            yield Cell("table1", data, rival.method, k, rival, budget)


def repeated_fits(data: str, size: Budget, loss: DDCLoss) -> Fits:
    """Repetitions of best-of-n, every run of them scored."""
    repetitions, restarts = size.repeated
    params = {
        "loss": loss,
        "n_init": restarts,
        "n_vote": restarts,
        "max_iter": size.repeated_iterations[data],
        "patience": None,
    }
    return Fits(params, repetitions)


SUBSETS = {
    "l1": (0,),
    "l2": (1,),
    "l3": (2,),
    "l1+l2": (0, 1),
    "l1+l3": (0, 2),
    "l2+l3": (1, 2),
    "l1+l2+l3": (0, 1, 2),
}


def table2(budget: str) -> Iterator[Cell]:
    """Table 2: all subsets of the terms of the loss."""
    for data, k in ABLATED.items():
        for name, numbers in SUBSETS.items():
            loss = DDCLoss(terms=tuple(TERMS[number] for number in numbers))
            yield Cell("table2", data, name, k, repeated_fits(data, SIZES[budget], loss), budget)


def divergences(budget: str) -> Iterator[Cell]:
    """Section 5.5: other divergences in place of Cauchy-Schwarz."""
    for name in ("cauchy_schwarz", "kullback_leibler", "kullback_leibler_cosine"):
        fits = repeated_fits("mnist", SIZES[budget], DDCLoss(divergence=name))
        yield Cell("divergences", "mnist", name, 10, fits, budget)


class RescaledInput(nn.Module):
    """A network behind ``2 x - 1`` or, with ``standardise``, a batch normalisation without parameters."""

    def __init__(self, network: nn.Module, n_channels: int, *, standardise: bool) -> None:
        super().__init__()
        self.network = network
        self.norm = nn.BatchNorm2d(n_channels, affine=False) if standardise else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden, logits = self.network(2 * x - 1 if self.norm is None else self.norm(x))
        return hidden, logits


def conv_norm_first(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """Batch normalisation before the ReLU."""
    return ConvNet(input_shape, n_clusters, norm_first=True)


def conv_norm_first_he(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """The same with He initialisation of the output layer too."""
    return ConvNet(input_shape, n_clusters, init="he", norm_first=True)


def mlp_norm_first(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """Batch normalisation before the ReLU."""
    return MLP(input_shape, n_clusters, norm_first=True)


def conv_symmetric_input(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """Pixels in [-1, 1]."""
    return RescaledInput(ConvNet(input_shape, n_clusters), input_shape[0], standardise=False)


def conv_standardised_input(input_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
    """Pixels of mean 0 and variance 1."""
    return RescaledInput(ConvNet(input_shape, n_clusters), input_shape[0], standardise=True)


# One thing changed at a time, from squared median, means and soft start.
VARIATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "mnist": {
        "norm-first": {"network": conv_norm_first},
        "norm-first-he": {"network": conv_norm_first_he},
        "symmetric-input": {"network": conv_symmetric_input},
        "standardised-input": {"network": conv_standardised_input},
        "rate-1e-4": {"learning_rate": 1e-4},
    },
    "rcv1-subset": {
        "norm-first": {"network": mlp_norm_first, "learning_rate": 1e-5},
        "rate-1e-4": {"learning_rate": 1e-4},
        "rate-1e-3": {"learning_rate": 1e-3},
    },
}


TABLE_1_BY_MEDIAN = "table-1-by-median"  # the reading that is the best of the few iterations, as in Table 1


def readings(budget: str) -> Iterator[Cell]:
    """Which reading of the paper comes closest to its results."""
    size = SIZES[budget]
    for data, k in ABLATED.items():
        shared = {
            "n_init": max(size.seeds, 2),  # several restarts train on one thread each
            "n_vote": max(size.seeds, 2),
            "max_iter": size.reading_iterations[data],
            "patience": None,
        }
        for rule, reduction, init in product(("squared_median", "median"), ("mean", "sum"), ("soft", "he")):
            loss = DDCLoss(bandwidth_rule=rule, reduction=reduction)  # type: ignore[arg-type]
            fits = Fits({"loss": loss, "init": init, **shared})
            yield Cell("readings", data, f"{rule}-{reduction}-{init}", k, fits, budget)
        for name, changed in VARIATIONS[data].items():
            yield Cell("readings", data, name, k, Fits({**changed, **shared}), budget)
        fits = table1_fits(data, size, DDCLoss(bandwidth_rule="median"))
        yield Cell("readings", data, TABLE_1_BY_MEDIAN, k, fits, budget)


OTHER_STARTS = "other-starts"  # how far a result depends on its starts


def beyond(budget: str) -> Iterator[Cell]:
    """What partners, links, views and sizes add; rivals are those of Table 1."""
    is_quick = budget == "quick"
    seeds = 3 if is_quick else 6
    images = {"augment": Affine(), "learning_rate": 3e-3}
    near_images = images | {"neighbors": 2}
    near = {"neighbors": 5, "learning_rate": 3e-3}
    cut = {"augment": Affine(cut=0.2)}
    # From before for_partners took half of it.
    twice = {"loss": DDCLoss(weights=(4.5, 5, 4.5), start_balance=50)}
    some = {} if is_quick else {"n_init": 8, "early_elimination": True}
    texts = {"neighbors": 20, "augment": Dropout(0.8), "learning_rate": 3e-3, "batch_size": 200}
    many = {} if is_quick else {"n_init": 10, "n_vote": 10}
    stories = {"learning_rate": 1e-4, "schedule": "cosine"}
    # Topics of news are of one size in AG News, and are not in the RCV1 subset.
    even = {"loss": DDCLoss(weights=(0.2, 50, 0.2))}
    uneven = {"loss": DDCLoss(weights=(0.2, 1, 0.2), start_balance=5)}
    sized = texts | many | {"loss": DDCLoss(weights=(0.2, 5, 0.2))}
    fits: dict[tuple[str, str, int], tuple[dict[str, Any], int, Given | None]] = {
        ("mnist", "affine", 10): (images | twice | some, 4200, None),
        ("mnist", "affine-neighbors", 10): (near_images, 2100, None),
        ("mnist", "cut-neighbors", 10): (near_images | cut, 4200, None),
        ("mnist", "cut-neighbors-smooth", 10): (near_images | cut, 4200, None),
        ("mnist", "16-into-10", 16): (near_images | {"n_final": 10, "n_init": 3, "n_vote": 3}, 1400, None),
        ("mnist-unequal", "balance-falls", 10): (near_images, 1000, None),
        ("mnist-unequal", "given-sizes", 10): (near_images | {"cluster_sizes": UNEQUAL}, 1000, None),
        ("seals-3", "photo", 3): (images | {"augment": Photo()}, 900, None),
        ("agnews", "dropout-neighbors", 4): (texts | even | many, 1500, None),
        ("rcv1-subset", "dropout-neighbors", 4): (texts | uneven | many, 1500, None),
        ("agnews", OTHER_STARTS, 4): (texts | even | many, 1500, None),
        ("agnews", "dropout-neighbors-links-500", 4): (texts | even, 1500, RandomLinks(500)),
        ("rcv1-subset", OTHER_STARTS, 4): (texts | uneven | many, 1500, None),
        ("rcv1-subset", "equal-sizes", 4): (sized, 1500, None),
        ("rcv1-subset", "k-means-sizes", 4): (sized | {"cluster_sizes": "k-means"}, 1500, None),
        ("rcv1-subset", "given-sizes", 4): (sized | {"cluster_sizes": RCV1_SIZES}, 1500, None),
        ("digits", "plain", 10): ({"learning_rate": 1e-3}, 1500, None),
        ("digits", "links-500", 10): ({"learning_rate": 1e-3}, 1500, RandomLinks(500)),
        ("digits", "affine", 10): (images, 1500, None),
        ("digits", "neighbors", 10): (near, 1500, None),
        ("digits", "neighbors-links-500", 10): (near, 1500, RandomLinks(500)),
        ("digits", "affine-neighbors", 10): (images | {"neighbors": 5}, 1500, None),
        ("digits", "upper-half", 10): (near, 1500, Halves(("upper",))),
        ("digits", "lower-half", 10): (near, 1500, Halves(("lower",))),
        ("digits", "both-halves", 10): (near, 1500, Halves()),
        ("reuters21578-balanced", "titles", 4): (stories, 3000, TitlesAndBodies(("titles",))),
        ("reuters21578-balanced", "bodies", 4): (stories, 3000, TitlesAndBodies(("bodies",))),
        ("reuters21578-balanced", "titles-and-bodies", 4): (stories, 3000, TitlesAndBodies()),
    }
    for (data, name, k), (params, iterations, given) in fits.items():
        shared = {
            "n_init": seeds,
            "n_vote": seeds,
            "max_iter": 150 if is_quick else iterations,
            "patience": None,
        }
        fit = Fits(
            shared | params,
            given=given,
            seed=1 if name == OTHER_STARTS else 0,
            smooth=5 if name.endswith("-smooth") else None,
        )
        yield Cell("beyond", data, name, k, fit, budget)
    for data in ("mnist-unequal", "digits"):
        yield Cell("beyond", data, "k-means", 10, Rival("k-means", SIZES[budget].runs, 1), budget)


# What the cells of "beyond" are, in words.
ABOUT = {
    "affine": "every image with a turned, moved, stretched and slanted copy as its partner.",
    "photo": "the same, mirrored and in another light and colour.",
    "neighbors": "every item with one of its nearest neighbours as its partner.",
    "affine-neighbors": "every image with such a copy of itself or of one of its nearest neighbours.",
    "cut-neighbors": "the same twice as long, half of the copies without some rows at the top or the bottom.",
    "cut-neighbors-smooth": "the same runs, an image's soft assignment averaged with those of its five nearest in the"
    " hidden representation (`predict_smooth`).",
    "16-into-10": "every image as in affine-neighbors, with sixteen clusters, merged into ten by their divergence.",
    "dropout-neighbors": "every text with itself or one of its twenty nearest neighbours, most words left out.",
    OTHER_STARTS: "the same of ten other starts.",
    "equal-sizes": "partners as in dropout-neighbors, clusters drawn to one size by a weight of 5.",
    "k-means-sizes": "the same, drawn to the sizes of the clusters that k-means finds.",
    "given-sizes": "drawn to the true sizes of the classes, as a user might know them (by a weight of 5 on texts, 25 on images).",
    "balance-falls": "partners as in affine-neighbors, clusters drawn to one size by a weight that falls from 50 to 5: the default.",
    "links-500": "500 random pairs of items, with the truth whether they share a class.",
    "neighbors-links-500": "neighbours, and such pairs.",
    "dropout-neighbors-links-500": "six starts as in dropout-neighbors, with 500 such pairs.",
    "both-halves": "the halves of the images as two views, each with its own network, against either alone; all with five"
    " neighbours.",
    "titles-and-bodies": "two views, each with its own network, against either alone.",
}


def figures(budget: str) -> Iterator[Cell]:
    """The paper's figures, and some of our own: how the loss relates to accuracy, and the choice of k."""
    size = SIZES[budget]
    mnist, seals_3, seals_2 = (table1_fits(data, size) for data in ("mnist", "seals-3", "seals-2"))
    iterations = size.iterations["images"]
    several = {"n_init": min(size.restarts, 4), "patience": None}
    ring = Fits({**several, "max_iter": 2000 if budget != "quick" else 500})
    epochs = (0, 1) if budget == "quick" else (0, 5, 15)  # of 218 iterations
    triangle = Fits({**several, "max_iter": 218 * epochs[-1], "snapshots": epochs})
    ten = Fits({**several, "max_iter": iterations})
    supervised, numbers = (
        (_figures.supervised_briefly, _figures.numbers_of_clusters_briefly)
        if budget == "quick"
        else (_figures.supervised, _figures.numbers_of_clusters)
    )
    cells = {
        ("ring-and-disc", "circles", 2): (
            Picture(_figures.ring_and_disc, ring),
            "A ring around a disc, by k-means and by DDC.",
        ),
        ("simplex", "mnist-3", 3): (
            Picture(_figures.simplex, triangle),
            "Soft assignments of the digits 0, 1 and 2 to three clusters; colours are the classes.",
        ),
        ("gallery-seals-2", "seals-2", 2): (
            Picture(_figures.gallery, seals_2),
            "The ten surest images of each cluster; a red box marks another class than the cluster's.",
        ),
        ("gallery-seals-3", "seals-3", 3): (
            Picture(_figures.gallery, seals_3),
            "The same for three classes, one of them background.",
        ),
        ("gallery-seals-3-into-10", "seals-3", 10): (
            Picture(_figures.gallery_without_classes, ten),
            "Three classes of images in ten clusters.",
        ),
        ("gallery-mnist", "mnist", 10): (
            Picture(_figures.gallery, mnist),
            "The ten surest images of each cluster of MNIST.",
        ),
        ("loss-terms", "mnist", 10): (
            Picture(_figures.loss_terms, mnist),
            "The loss and its terms, each rescaled to [0, 1], and the accuracy while the best run trains.",
        ),
        ("supervised", "mnist", 10): (
            Picture(supervised),
            "The same network trained with the classes: DDC's loss and its terms fall though nobody minimises them.",
        ),
        ("kernel-matrix", "mnist", 10): (
            Picture(_figures.kernel_matrix, mnist),
            "The kernel on the hidden representation of 1,000 images, sorted by class.",
        ),
        ("guided-backpropagation", "mnist", 10): (
            Picture(_figures.guided_backpropagation, mnist),
            "Pixels that speak for the cluster of an image, in red, for ten images drawn at random.",
        ),
        ("restarts", "mnist", 10): (
            Picture(_figures.restarts, mnist),
            "Left, the loss of all restarts (grey: eliminated). Right, ACC and NMI of those that went on to the end.",
        ),
        ("numbers-of-clusters", "digits", 10): (
            Picture(numbers),
            "Digits, whose ten classes the scan does not know: how much restarts agree for each number of clusters.",
        ),
    }
    for (name, data, k), (picture, caption) in cells.items():
        yield Cell("figures", data, name, k, replace(picture, caption=caption), budget)


EXPERIMENTS: dict[str, Callable[[str], Iterator[Cell]]] = {
    "readings": readings,
    "table1": table1,
    "beyond": beyond,
    "table2": table2,
    "divergences": divergences,
    "figures": figures,
}


def declared(experiment: str, budget: str) -> list[Cell]:
    """The cells of an experiment."""
    return list(EXPERIMENTS[experiment](budget))
