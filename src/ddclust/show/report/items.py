"""Single items as the page shows them: a picture, a text or a name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ddclust.choosing.metrics import known_classes
from ddclust.data.batches import Scaling
from ddclust.data.items import SparseItems
from ddclust.show.report import pictures
from ddclust.show.report.content import sample_of_clusters

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

SAMPLE_ITEMS = 2000
PICTURE_SIDE = 64
CAPTION_CHARACTERS = 240


class ShownItems:
    """The items of a fitted model, with all that is known of them.

    Parameters
    ----------
    model : fitted DDC or DEC
    X : the data of the fit
    rng : Generator
        Draws ``sample``, the items of the map.
    names : sequence of str, optional
    truth : sequence, optional
        Known classes; -1 and None for unknown.
    class_names : sequence of str, optional
        Names of the codes 0, 1, ... in the truth.
    """

    def __init__(
        self,
        model: NetworkClusterer,
        X: Any,
        rng: np.random.Generator,
        *,
        names: Sequence[str] | None = None,
        truth: Any = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.model = model
        self.is_text = hasattr(model, "vectorizer_")
        # Texts are taken by position, whatever their index. Any other data become items, which can be taken by row.
        self.X: Any = list(X) if self.is_text else model._source(X).items
        self.names = names
        self.confidence = model.probabilities_.max(axis=1)
        self.codes: NDArray[np.int64] | None = None
        self.classes: list[str] = []
        if truth is not None:
            self.codes, self.classes = _coded(truth, class_names)
        self.is_picture = pictures.is_picture(model.item_shape_)
        self.sample = sample_of_clusters(model.labels_, SAMPLE_ITEMS, rng)

    def rows(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data, as the model takes it."""
        if self.is_text:
            return [self.X[i] for i in indices.tolist()]
        return self.X.matrix[indices] if isinstance(self.X, SparseItems) else self.X[indices]

    def vectors(self, indices: NDArray[np.intp]) -> Any:
        """Some of the data as vectors of features, sparse or not."""
        rows = self.rows(indices)
        if self.is_text:
            return self.model.vectorizer_.transform(rows)
        return rows if isinstance(self.X, SparseItems) else rows.reshape(len(rows), -1)

    def name(self, index: int) -> str:
        return str(self.names[index]) if self.names is not None else f"item {index}"

    def caption(self, index: int) -> str | None:
        """The beginning of a text, None for other items."""
        if not self.is_text:
            return None
        text = " ".join(self.X[index].split())
        return text if len(text) <= CAPTION_CHARACTERS else text[: CAPTION_CHARACTERS - 1] + "…"

    def truth(self, index: int) -> str | None:
        """The known class of an item, None if there is none."""
        if self.codes is None or self.codes[index] < 0:
            return None
        return self.classes[self.codes[index]]

    def pictures(self, indices: NDArray[np.intp], side: int) -> NDArray[np.uint8]:
        """Pictures of some items, whose longer side is at most ``side``."""
        return pictures.shrunk(pictures.as_pictures(self.rows(indices), self._range), side)

    @cached_property
    def _range(self) -> Scaling:
        """The range of values from black to white, since the scaling of the model need not suit the eye."""
        return Scaling.of(self.rows(self.sample))

    def gallery(self, indices: NDArray[np.intp], main_class: str | None) -> list[dict[str, Any]]:
        """Some items of a cluster, for the template; those that are not of its main class are marked as wrong."""
        if not len(indices):
            return []
        uris: list[str | None] = [None] * len(indices)
        if self.is_picture:
            uris = [pictures.data_uri(picture) for picture in self.pictures(indices, PICTURE_SIDE)]
        return [
            {
                "name": self.name(i),
                "confidence": float(self.confidence[i]),
                "truth": self.truth(i),
                "wrong": main_class is not None and self.truth(i) not in (None, main_class),
                "caption": self.caption(i),
                "picture": uri,
            }
            for i, uri in zip(indices.tolist(), uris, strict=True)
        ]


def _coded(truth: Any, class_names: Sequence[str] | None) -> tuple[NDArray[np.int64], list[str]]:
    """Codes from 0, -1 for unknown, and their names."""
    codes, classes = known_classes(truth)
    if class_names is None:
        return codes, classes
    codes = np.asarray(truth, dtype=np.int64)
    if codes.max(initial=-1) >= len(class_names):
        raise ValueError(f"truth holds the code {codes.max()}, but there are {len(class_names)} class_names.")
    return codes, [str(name) for name in class_names]
