"""Beyond the paper: pairs of items, links, views and sizes of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ddclust.data.named.mnist import UNEQUAL
from ddclust.objective.augment import Affine, Dropout, Photo
from lab.cells import Cell, Fits, Given, Reference
from lab.experiments.sizes import SIZES
from lab.given import Halves, RandomLinks, TitlesAndBodies
from lab.parameters import (
    Params,
    augmentation,
    constant,
    cosine,
    loss,
    loss_with_pairs,
    loss_with_sizes,
    selection,
)

OTHER_SEEDS = "other-seeds"  # how much a result depends on its seeds
RCV1_SIZES = [2043, 1525, 1132, 407]  # of the classes of the subset
QUICK_ITERATIONS = 150


class Variant(NamedTuple):
    """A way to fit a data set."""

    data: str
    name: str
    n_clusters: int
    iterations: int
    params: dict[str, Any]
    given: Given | None = None


def text_loss(
    orthogonality: float, start: float | None = None, sizes: list[int] | str | None = None
) -> Params:
    """A loss for texts with pairs, whose orthogonality weight falls from ``start`` if that is given."""
    return loss(
        weights={"divergence": 0.2, "orthogonality": orthogonality, "corners": 0.2},
        start_weights=None if start is None else {"orthogonality": start},
        cluster_sizes=sizes,
    )


def variants(*, is_quick: bool) -> list[Variant]:
    """All ways, the same for every budget but the quick one, which has fewer runs."""
    ten, three = {"loss": loss_with_pairs(10)}, {"loss": loss_with_pairs(3)}
    images = {"augment": augmentation(Affine()), "learning_rate": cosine(3e-3)}
    near_images = images | {"neighbors": 2}
    near = ten | {"neighbors": 5, "learning_rate": cosine(3e-3)}
    cut = near_images | ten | {"augment": augmentation(Affine(cut=0.2))}
    # The weights of divergence and corners before the default took half of them.
    twice = loss(
        weights={"divergence": 4.5, "orthogonality": 5.0, "corners": 4.5},
        start_weights={"orthogonality": 50.0},
    )
    halving = {} if is_quick else {"n_init": 8, "selection": selection(halving=True)}
    sixteen = {"loss": loss_with_pairs(16), "n_final": 10, "n_init": 3, "n_vote": 3}
    texts = {
        "neighbors": 20,
        "augment": augmentation(Dropout(0.8)),
        "learning_rate": cosine(3e-3),
        "batch_size": 200,
    }
    many = {} if is_quick else {"n_init": 10, "n_vote": 10}
    # The topics of AG News are of one size, those of the RCV1 subset are not.
    agnews = texts | {"loss": text_loss(50.0)}
    rcv1 = texts | many | {"loss": text_loss(1.0, start=5.0)}
    plain = {"learning_rate": constant(1e-3)}
    stories = {"learning_rate": cosine(1e-4)}
    unequal = near_images | {"loss": loss_with_sizes(10, UNEQUAL)}
    return [
        Variant("mnist", "affine", 10, 4200, images | halving | {"loss": twice}),
        Variant("mnist", "affine-neighbors", 10, 2100, near_images | ten),
        Variant("mnist", "cut-neighbors", 10, 4200, cut),
        Variant("mnist", "cut-neighbors-smooth", 10, 4200, cut),
        Variant("mnist", "16-into-10", 16, 1400, near_images | sixteen),
        Variant("mnist-unequal", "weight-falls", 10, 1000, near_images | ten),
        Variant("mnist-unequal", "given-sizes", 10, 1000, unequal),
        Variant("seals-3", "photo", 3, 900, images | three | {"augment": augmentation(Photo())}),
        Variant("agnews", "dropout-neighbors", 4, 1500, agnews | many),
        Variant("rcv1-subset", "dropout-neighbors", 4, 1500, rcv1),
        Variant("agnews", OTHER_SEEDS, 4, 1500, agnews | many),
        Variant("agnews", "dropout-neighbors-links-500", 4, 1500, agnews, RandomLinks(500)),
        Variant("rcv1-subset", OTHER_SEEDS, 4, 1500, rcv1),
        Variant("rcv1-subset", "equal-sizes", 4, 1500, rcv1 | {"loss": text_loss(5.0)}),
        Variant("rcv1-subset", "k-means-sizes", 4, 1500, rcv1 | {"loss": text_loss(5.0, sizes="k-means")}),
        Variant("rcv1-subset", "given-sizes", 4, 1500, rcv1 | {"loss": text_loss(5.0, sizes=RCV1_SIZES)}),
        Variant("digits", "plain", 10, 1500, plain),
        Variant("digits", "links-500", 10, 1500, plain, RandomLinks(500)),
        Variant("digits", "affine", 10, 1500, images | ten),
        Variant("digits", "neighbors", 10, 1500, near),
        Variant("digits", "neighbors-links-500", 10, 1500, near, RandomLinks(500)),
        Variant("digits", "affine-neighbors", 10, 1500, images | ten | {"neighbors": 5}),
        Variant("digits", "upper-half", 10, 1500, near, Halves(("upper",))),
        Variant("digits", "lower-half", 10, 1500, near, Halves(("lower",))),
        Variant("digits", "both-halves", 10, 1500, near, Halves()),
        Variant("reuters21578-balanced", "titles", 4, 3000, stories, TitlesAndBodies(("titles",))),
        Variant("reuters21578-balanced", "bodies", 4, 3000, stories, TitlesAndBodies(("bodies",))),
        Variant("reuters21578-balanced", "titles-and-bodies", 4, 3000, stories, TitlesAndBodies()),
    ]


def beyond(budget: str) -> Iterator[Cell]:
    """What pairs, links, views and sizes add. The reference methods are those of Table 1."""
    is_quick = budget == "quick"
    runs = 3 if is_quick else 6
    for data, name, k, iterations, params, given in variants(is_quick=is_quick):
        shared = {"n_init": runs, "n_vote": runs, "max_iter": QUICK_ITERATIONS if is_quick else iterations}
        fits = Fits(
            shared | params,
            given=given,
            seed=1 if name == OTHER_SEEDS else 0,
            smooth=5 if name.endswith("-smooth") else None,
        )
        yield Cell("beyond", data, name, k, fits, budget)
    for data in ("mnist-unequal", "digits"):
        yield Cell("beyond", data, "k-means", 10, Reference("k-means", SIZES[budget].runs, 1), budget)


# The cells in words.
ABOUT = {
    "affine": "each image is paired with a rotated, shifted, scaled and sheared copy of itself.",
    "photo": "as affine, with copies that are also mirrored and changed in brightness and colour.",
    "neighbors": "each item is paired with one of its nearest neighbours.",
    "affine-neighbors": "each image is paired with such a copy of itself or of one of its nearest neighbours.",
    "cut-neighbors": "the same for twice as many iterations; half of the copies lose rows at the top or the bottom.",
    "cut-neighbors-smooth": "the same runs; an image's soft assignment is averaged with those of its five nearest"
    " neighbours in the hidden representation (`predict_smooth`).",
    "16-into-10": "as affine-neighbors with sixteen clusters, which are merged into ten by their divergence.",
    "dropout-neighbors": "each text is paired with itself or one of its twenty nearest neighbours, without most words.",
    OTHER_SEEDS: "the same with ten other seeds.",
    "equal-sizes": "pairs as in dropout-neighbors; an orthogonality weight of 5 makes clusters equal in size.",
    "k-means-sizes": "the same; the target sizes are those of the clusters that k-means finds.",
    "given-sizes": "the target sizes are those of the classes, as a user might know them (an orthogonality weight of 5"
    " for texts, 25 for images).",
    "weight-falls": "pairs as in affine-neighbors; the orthogonality weight, which makes clusters equal in size, falls"
    " from 50 to 5. This is the default.",
    "links-500": "500 random pairs of items with the truth whether they share a class.",
    "neighbors-links-500": "neighbours, and such links.",
    "dropout-neighbors-links-500": "six runs as in dropout-neighbors with 500 such links.",
    "both-halves": "the halves of the images as two views, each with its own network, compared with either half alone;"
    " all with five neighbours.",
    "titles-and-bodies": "two views, each with its own network, compared with either view alone.",
}
