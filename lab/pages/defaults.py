"""docs/defaults.md: what a user gets who names only the data and the number of clusters."""

from __future__ import annotations

from typing import Any

from lab.experiments.studies import K_MEANS, OF_DEFAULTS, WITH_PAIRS, WITHOUT_PAIRS
from lab.pages.found import Found, largest
from lab.pages.markdown import table, write_page
from lab.paths import Place

INTRODUCTION = """# Defaults

What `DDC(n_clusters)` does by default, and why. `python -m lab run defaults` makes the results
(`lab/results/*/defaults/`), and the table at the end is written from them.

| items | pairs |
| --- | --- |
| images | an augmented copy (`Affine()`: rotated by up to 20 degrees, shifted, scaled and sheared) of the image or of one of its 2 nearest neighbours |
| texts and other sparse vectors | a copy without 80 % of the words (`Dropout(0.8)`) of the text or of one of its 20 nearest neighbours by topics |
| dense vectors | one of the 10 nearest neighbours |
| several views | none |

- Dense data of more than 2 GiB as float32 are paired with copies only.
- With pairs, the divergence and the corners weigh (k - 1) / 4, and the orthogonality weight falls from 50 to 5 in the first
  third of training.
- The learning rate starts at 3e-3 (images and texts) or 1e-4 (dense vectors) and falls along a cosine over 3,500 iterations.
- The run with the lowest loss of four is kept.

## Chosen with classes in sight

The strengths of the augmentations, the numbers of neighbours, the weights of the loss and the learning rates were chosen on
MNIST, digits, AG News and the RCV1 subset. The ten neighbours of vectors were a guess. They were kept after a look at the data
sets below: they gain much on digits as vectors and lose a little on the three small tables. So none of these data sets is
an unbiased test of the defaults. No class reaches a training or the choice of a run.

[RESULTS.md](../RESULTS.md), *Beyond the paper*, has what each kind of pair gives with its own settings.

## Where they are wrong

- **Copies** assume that a rotated or shifted image shows the same thing. This fails for arrows, or where the position
  matters. (20 degrees do not turn a 6 into a 9.)
- **Neighbours** assume that close items are of one kind.
- **Clusters tend to equal sizes.** On MNIST with ten times as many zeros as nines the defaults divide the frequent digits and
  merge the rare ones (RESULTS.md, `mnist-unequal`). Where classes differ much in size, lower the orthogonality weight
  (`loss=DDCLoss(weights={"orthogonality": 1})`) or give the sizes (`loss=DDCLoss(cluster_sizes=[...])`), which weigh 25
  throughout.
- On the aerial photographs of seals, copies (`Photo()`) gave a higher NMI and a lower ACC than no pairs.

`augment=None` switches pairs off, and `DDC.paper(n_clusters)` is the paper's own protocol.

## What they give

"""


def write_defaults(place: Place) -> bool:
    """Write docs/defaults.md, if there are results."""
    results = largest("defaults", place)
    rows = []
    for data in OF_DEFAULTS:
        found = [results.get((data, way)) for way in (WITH_PAIRS, WITHOUT_PAIRS, K_MEANS)]
        first = next((one for one in found if one is not None), None)
        if first is not None:
            shape = " x ".join(f"{side:,}" for side in first.result["data"]["shape"])
            rows.append((data.replace("-as-", " as "), shape, *map(_accuracies, found)))
    if not rows:
        return False
    iterations, seeds = _size(results)
    caption = (
        f"ACC of the label-free choice of four runs of {iterations:,} iterations, for {seeds} seed(s):\n\n"
    )
    header = ("data", "items", "with pairs (default)", "without pairs", "k-means")
    write_page(place.study_page("defaults"), INTRODUCTION + caption + table(header, rows))
    return True


def _size(results: dict[tuple[str, str], Found]) -> tuple[int, int]:
    """Iterations and seeds of the fits."""
    protocols = [found.result["protocol"] for (_, way), found in results.items() if way != K_MEANS]
    return max((p["params"]["max_iter"], p["repetitions"]) for p in protocols) if protocols else (0, 0)


def _accuracies(found: Found | None) -> str:
    if found is None:
        return ""
    result: dict[str, Any] = found.result
    scored = (
        result["facts"]["scores"]
        if "facts" in result
        else [repetition["chosen"] for repetition in result["repetitions"]]
    )
    return ", ".join(f"{score['ACC']:.3f}" for score in scored)
