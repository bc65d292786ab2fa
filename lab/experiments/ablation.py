"""Table 2 and the other divergences, by the better reading and the rules of docs/paper-protocol.md."""

from __future__ import annotations

from collections.abc import Iterator

from lab.cells import Cell, Fits
from lab.parameters import Params, loss, network

IMAGES = {"mnist": 10}
TEXTS = {"rcv1-subset-balanced": 4, "reuters21578-balanced": 4}
L1, L2, L3 = "divergence", "orthogonality", "corners"
SUBSETS = {
    "l1": {L1},
    "l2": {L2},
    "l3": {L3},
    "l1+l2": {L1, L2},
    "l1+l3": {L1, L3},
    "l2+l3": {L2, L3},
    "l1+l2+l3": {L1, L2, L3},
}
DIVERGENCES = ("kullback_leibler", "kullback_leibler_cosine")
# repetitions, runs of each, iterations of images and of texts
SIZES = {"quick": (2, 1, 100, 300), "standard": (5, 4, 2100, 3000), "paper": (5, 20, 70_000, 70_000)}


def losses(data: str) -> dict[str, Params]:
    """The losses by the names of their cells: every subset of the terms and, for images, other divergences."""
    subsets = {
        name: loss(weights={term: float(term in used) for term in (L1, L2, L3)})
        for name, used in SUBSETS.items()
    }
    return subsets | ({name: loss(divergence=name) for name in DIVERGENCES} if data in IMAGES else {})


def ablation(budget: str) -> Iterator[Cell]:
    """Repetitions of the best of several runs, of which every one is scored."""
    repetitions, runs, images, texts = SIZES[budget]
    of_images = {"network": network(init="he"), "max_iter": images, "precision": "bfloat16"}
    of_texts = {"network": network(init="soft"), "max_iter": texts}
    for data, k in {**TEXTS, **IMAGES}.items():
        for name, used in losses(data).items():
            kind = of_images if data in IMAGES else of_texts
            fits = Fits({"loss": used, "n_init": runs, "n_vote": runs, **kind}, repetitions)
            yield Cell("ablation", data, name, k, fits, budget)
