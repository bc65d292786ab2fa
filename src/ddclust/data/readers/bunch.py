"""The Bunch that every reader returns, and the error it raises when it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.items import with_short_indices

# A few unreadable files among many are skipped and listed; a larger share is an error.
MOST_UNREADABLE = 0.2
SHOWN_UNREADABLE = 5


class DataError(ValueError):
    """Data that cannot be used; the message says where the problem is and what to do."""


class NumberedNames(Sequence[str]):
    """The names "0", "1", ... of items without other names, made only when asked for."""

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
    """The common form of all data sets; items without names are numbered from 0.

    Sparse matrices get 32-bit indices, as scikit-learn wants them. Names that cannot be encoded in UTF-8, such as
    those of some files, are escaped.
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
    """Class names as codes from 0, and the sorted names."""
    names, codes = np.unique(np.asarray(classes, dtype=str), return_inverse=True)
    return codes.astype(np.int64), names.tolist()


def refuse_too_many_unreadable(skipped: dict[str, str], n_files: int, what: str, folder: str) -> None:
    """Raise an error if too many of a folder's files cannot be read."""
    if len(skipped) > MOST_UNREADABLE * n_files or len(skipped) == n_files:
        shown = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:SHOWN_UNREADABLE])
        more = ", ..." if len(skipped) > SHOWN_UNREADABLE else ""
        raise DataError(
            f"{len(skipped)} of the {n_files} {what} in {folder!r} cannot be read ({shown}{more}); repair or remove"
            " them."
        )
