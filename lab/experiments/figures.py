"""The paper's figures, and some of our own: how the loss relates to accuracy, and the choice of k."""

from __future__ import annotations

from collections.abc import Iterator

from lab import drawing
from lab.cells import Cell, Fits, Picture
from lab.experiments.sizes import SIZES
from lab.experiments.tables import ITERATIONS_PER_EPOCH, PAPER_ON_IMAGES, table1_fits
from lab.parameters import snapshots

EPOCH_OF_THREE_DIGITS = 218  # iterations


def figures(budget: str) -> Iterator[Cell]:
    """The figures. Those of seals show the fits of Table 1, those of MNIST fits of six epochs."""
    for (name, data, k), picture in _pictures(budget).items():
        yield Cell("figures", data, name, k, picture, budget)


def _pictures(budget: str) -> dict[tuple[str, str, int], Picture]:
    size, is_quick = SIZES[budget], budget == "quick"
    seals_3, seals_2 = (table1_fits(data, size) for data in ("seals-3", "seals-2"))
    mnist = Fits(
        {
            "n_init": min(size.ddc_runs, 4),
            "n_vote": 3,
            "max_iter": size.iterations["images"] if is_quick else 6 * ITERATIONS_PER_EPOCH,
            "callbacks": snapshots(range(7)),
            **PAPER_ON_IMAGES,
        }
    )
    runs = {"n_init": min(size.ddc_runs, 4)}
    ring = Fits({**runs, "max_iter": 500 if is_quick else 2000})
    epochs = (0, 1) if is_quick else (0, 5, 15)
    triangle = Fits({**runs, "max_iter": EPOCH_OF_THREE_DIGITS * epochs[-1], "callbacks": snapshots(epochs)})
    ten = Fits({**runs, "max_iter": size.iterations["images"]})
    numbers = (
        {"ks": [2, 3], "n_init": 2, "max_iter": 50}
        if is_quick
        else {"ks": list(range(8, 14)), "n_init": 6, "max_iter": 1000}
    )
    return {
        ("ring-and-disc", "circles", 2): Picture(
            drawing.ring_and_disc, ring, caption="A ring around a disc, clustered by k-means and by DDC."
        ),
        ("simplex", "mnist-3", 3): Picture(
            drawing.simplex,
            triangle,
            caption="Soft assignments of the digits 0, 1 and 2 to three clusters. Colours are the classes.",
        ),
        ("gallery-seals-2", "seals-2", 2): Picture(
            drawing.gallery,
            seals_2,
            caption="The ten most certain images of each cluster. A red box marks a class that is not the cluster's.",
        ),
        ("gallery-seals-3", "seals-3", 3): Picture(
            drawing.gallery, seals_3, caption="The same for three classes, one of them background."
        ),
        ("gallery-seals-3-into-10", "seals-3", 10): Picture(
            drawing.gallery_without_classes, ten, caption="Images of three classes in ten clusters."
        ),
        ("gallery-mnist", "mnist", 10): Picture(
            drawing.gallery, mnist, caption="The ten most certain images of each cluster of MNIST."
        ),
        ("loss-terms", "mnist", 10): Picture(
            drawing.loss_terms,
            mnist,
            caption="The loss and its terms, each rescaled to [0, 1], and the accuracy while the best run trains.",
        ),
        ("supervised", "mnist", 10): Picture(
            drawing.supervised,
            options={"n_epochs": 1 / 7 if is_quick else 2},
            caption="The same network trained with the classes. DDC's loss and its terms fall although nothing"
            " minimises them.",
        ),
        ("kernel-matrix", "mnist", 10): Picture(
            drawing.kernel_matrix,
            mnist,
            caption="The kernel matrix of the hidden representation of 1,000 images, sorted by class.",
        ),
        ("guided-backpropagation", "mnist", 10): Picture(
            drawing.guided_backpropagation,
            mnist,
            caption="Pixels that count for the cluster of an image, in red, for ten images drawn at random.",
        ),
        ("restarts", "mnist", 10): Picture(
            drawing.restarts,
            mnist,
            caption="Left: the loss of all runs. Right: ACC and NMI of the three with the lowest loss.",
        ),
        ("numbers-of-clusters", "digits", 10): Picture(
            drawing.numbers_of_clusters,
            options=numbers,
            caption="Digits, whose ten classes the scan does not know: how well runs agree for each number of clusters."
            " The number of classes was known when the rule was made; an earlier rule, the largest stable number,"
            " said 13 in a scan of 5 to 13.",
        ),
    }
