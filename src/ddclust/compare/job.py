"""One fit of a comparison: what is to be fitted, and what the fit leaves on disk."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ddclust.data.readers.arrays import open_npy
from ddclust.reading import scaled_vectors
from ddclust.storage.atomic import write_file
from ddclust.storage.json_files import read_json, write_sealed

JOB_FILE = "job.json"
RESULT_FILE = "result.json"

T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """A fit to be made: a method with one choice of parameters and a seed, and where its data and results are."""

    method: str
    params: dict[str, Any]
    n_clusters: int
    seed: int
    options: dict[str, int]
    data: str
    folder: str

    @property
    def checkpoints(self) -> Path:
        """The folder from which a fit that was stopped resumes."""
        return Path(self.folder) / "checkpoints"

    def labels_file(self, title: str) -> Path:
        """The file that holds the labels of the fit under one of its titles."""
        return Path(self.folder) / f"{title}.npy"

    def labels(self, title: str, result: Result) -> NDArray[np.int64] | None:
        """The labels of the fit under one of its titles; None if they are missing or damaged."""
        return read_labels(self.labels_file(title), result.digests.get(title))

    def items(self) -> Any:
        """The data as they are: a memory-mapped array or a CSR matrix."""
        if self.data.endswith(".npz"):
            return scipy.sparse.load_npz(self.data)
        return np.load(self.data, mmap_mode="r", allow_pickle=False)

    def vectors(self) -> Any:
        """The data as one vector per item, scaled as DDC scales them."""
        return scaled_vectors(self.items())


@dataclass(frozen=True)
class Result:
    """What a fit leaves in result.json: its cost and its titles, or the error that ended it.

    ``objective`` is the method's own, lower is better. ``digests`` are those of the labels under each title.
    ``limit`` is the budget that was exceeded. ``peak_mb`` is written last, so a result without it is incomplete.
    """

    seconds: float = 0.0
    objective: float | None = None
    titles: tuple[str, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str | None = None
    limit: dict[str, float] | None = None
    peak_mb: float | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The result in a folder; an empty one if there is none, or if it is damaged."""
        return read_or_none(folder / RESULT_FILE, cls) or cls()

    def write(self, folder: Path) -> None:
        """Write the result to a folder."""
        keys = ["seconds", "objective", "titles", "digests", "warnings"] if self.error is None else ["error"]
        keys += [key for key in ("limit", "peak_mb") if getattr(self, key) is not None]
        content = asdict(self)
        write_sealed(folder / RESULT_FILE, {key: content[key] for key in keys})


def read_or_none(file: Path, schema: type[T]) -> T | None:
    """The content of a JSON file; None if it is missing or damaged, since it is then made again."""
    try:
        return read_json(file, schema, remedy="it is made again")
    except (OSError, ValueError):
        return None


def write_labels(file: Path, labels: NDArray[np.int64]) -> str:
    """Write labels in full or not at all; gives their digest."""
    content = io.BytesIO()
    np.save(content, labels)
    write_file(file, content.getvalue())
    return labels_digest(labels)


def read_labels(file: Path, digest: str | None) -> NDArray[np.int64] | None:
    """Labels from a file; None if they are missing or damaged."""
    try:
        labels = open_npy(file)
    except ValueError:
        return None
    return None if digest is not None and labels_digest(labels) != digest else labels


def labels_digest(labels: NDArray[np.int64]) -> str:
    """The digest of labels."""
    return hashlib.sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()


@contextmanager
def data_file(folder: Path, data: Any) -> Iterator[Path]:
    """Write the data to a file that every fit can map into memory, and remove it at the end of the block.

    Fits leave what they share beside it. If the process is killed, the next comparison in the folder writes it again.
    """
    place = folder / "data"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        is_sparse: bool = scipy.sparse.issparse(data)
        if is_sparse:
            file = place / "data.npz"
            scipy.sparse.save_npz(file, data.tocsr(), compressed=False)
        else:
            file = place / "data.npy"
            np.save(file, np.asarray(data))
        yield file.resolve()
    finally:
        shutil.rmtree(place, ignore_errors=True)
