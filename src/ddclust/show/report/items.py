"""Single items as the page shows them: a picture, a text or a row of values, with a name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from PIL import Image

from ddclust import pictures
from ddclust.choosing.metrics import known_classes
from ddclust.data.batches import Scaling, input_shape
from ddclust.data.readers.images import read_image
from ddclust.naming import FittedItems, sample_of_clusters

if TYPE_CHECKING:
    from ddclust.base import NetworkClusterer

MAP_ITEMS = 2000


class ShownItems(FittedItems):
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
    image_folder : Path, optional
        Where images are found by their names in a better resolution.
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
        image_folder: Path | None = None,
    ) -> None:
        super().__init__(model, X)
        self.names = names
        self.image_folder = image_folder
        self.confidence = model.probabilities_.max(axis=1)
        self.codes: NDArray[np.int64] | None = None
        self.classes: list[str] = []
        if truth is not None:
            self.codes, self.classes = _coded(truth, class_names)
        self.sample = sample_of_clusters(model.labels_, MAP_ITEMS, rng)

    def pictures(
        self, indices: NDArray[np.intp], side: int, *, from_files: bool = False
    ) -> NDArray[np.uint8]:
        """Pictures of some items, whose longer side is at most ``side``; from their files, if there are better ones."""
        channels, *own_sides = input_shape(self.model.raw_shape)
        if not from_files or self.image_folder is None or self.names is None or max(own_sides) >= side:
            return pictures.shrunk(pictures.as_pictures(self.rows(indices), self._range), side)
        height, width = (max(round(own * side / max(own_sides)), 1) for own in own_sides)
        shape = (height, width) if channels == 1 else (height, width, 3)
        read = delayed(self._from_file)
        return np.stack(Parallel(n_jobs=-1, prefer="threads")(read(i, shape) for i in indices.tolist()))

    def _from_file(self, index: int, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """The picture of an item from its file or, if that is gone, enlarged from the data."""
        assert self.image_folder is not None
        assert self.names is not None
        try:
            return read_image(self.image_folder / self.names[index], shape)[0]
        except (OSError, ValueError):
            small = pictures.as_pictures(self.rows(np.array([index])), self._range)[0]
            return np.asarray(Image.fromarray(small).resize((shape[1], shape[0])))

    @cached_property
    def _range(self) -> Scaling:
        """The range of values from black to white, since the scaling of the model need not suit the eye."""
        return Scaling.of(self.rows(self.sample))


def _coded(truth: Any, class_names: Sequence[str] | None) -> tuple[NDArray[np.int64], list[str]]:
    """Codes from 0, -1 for unknown, and their names."""
    codes, classes = known_classes(truth)
    if class_names is None:
        return codes, classes
    codes = np.asarray(truth, dtype=np.int64)
    if codes.max(initial=-1) >= len(class_names):
        raise ValueError(f"truth holds the code {codes.max()}, but there are {len(class_names)} class_names.")
    return codes, [str(name) for name in class_names]
