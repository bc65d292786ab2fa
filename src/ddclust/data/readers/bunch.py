"""What every reader of data returns, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.items import with_short_indices

# A few unreadable files among many are skipped and listed; a larger share is an error.
MOST_UNREADABLE = 0.2
SHOWN_UNREADABLE = 5


class DataError(ValueError):
    """Data that cannot be used; the message names the place and the remedy."""


@dataclass(frozen=True)
class Reading:
    """What a user can say about how to read a file or folder; each reader takes what concerns it."""

    text_column: str | None = None
    id_column: str | None = None
    truth_column: str | None = None
    value_columns: tuple[str, ...] | None = None
    image_size: int | tuple[int, int] | None = None
    colour: str = "auto"
    verbose: bool = False

    def refuse_all_but(self, applicable: set[str], what: str) -> None:
        """An error for an option that was given but says nothing about this kind of data."""
        for field in fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in applicable | {"verbose", "value_columns"}:
                raise DataError(f"{field.name}={getattr(self, field.name)!r} does not apply to {what}.")


class NumberedNames(Sequence[str]):
    """The names "0", "1", ... of items that have no others, without a list of them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        numbers = range(self.n)[index]
        return [str(i) for i in numbers] if isinstance(index, slice) else str(numbers)


def make_bunch(
    data: Any,
    *,
    name: str,
    about: str,
    target: NDArray | None = None,
    item_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    skipped: dict[str, str] | None = None,
) -> Bunch:
    """The one form of all data sets; items without names are numbered from 0.

    Sparse matrices get indices of 32 bits, as scikit-learn wants them. Names that cannot be written as UTF-8 (of files,
    say) are escaped.
    """
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    return Bunch(
        data=with_short_indices(data) if hasattr(data, "indptr") else data,
        target=target,
        target_names=None if target_names is None else [_writable(str(name)) for name in target_names],
        item_names=NumberedNames(n) if item_names is None else [_writable(name) for name in item_names],
        feature_names=None if feature_names is None else list(feature_names),
        name=_writable(name),
        about=about,
        notes=list(notes),
        skipped={_writable(name): reason for name, reason in (skipped or {}).items()},
    )


def _writable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def coded(classes: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Class names as numbers, and the names in their order."""
    names, codes = np.unique(np.asarray(classes, dtype=str), return_inverse=True)
    return codes.astype(np.int64), names.tolist()


def refuse_too_many_unreadable(skipped: dict[str, str], n_files: int, what: str, folder: str) -> None:
    """An error if most of a folder's files cannot be read."""
    if len(skipped) > MOST_UNREADABLE * n_files or len(skipped) == n_files:
        shown = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:SHOWN_UNREADABLE])
        more = ", ..." if len(skipped) > SHOWN_UNREADABLE else ""
        raise DataError(
            f"{len(skipped)} of the {n_files} {what} in {folder!r} cannot be read ({shown}{more}); mend or remove"
            " them."
        )


def drawn_of_classes(
    target: NDArray[np.integer], per_class: int | Mapping[int, int], random_state: int
) -> NDArray[np.intp]:
    """Positions of so many items of each class, drawn at random, in their own order."""
    rng = np.random.default_rng(random_state)
    chosen = []
    for label in np.unique(target).tolist():
        members = np.flatnonzero(target == label)
        size = per_class if isinstance(per_class, int) else per_class[label]
        if len(members) < size:
            raise DataError(f"Class {label} has {len(members)} items, fewer than the {size} asked for.")
        chosen.append(rng.choice(members, size, replace=False))
    return np.sort(np.concatenate(chosen))
