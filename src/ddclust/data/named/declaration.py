"""How a named data set is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sklearn.utils import Bunch

from ddclust.data.named.store import find


@dataclass(frozen=True)
class NamedSet:
    """What is known about a data set without loading it.

    Parameters
    ----------
    name : str
    load : callable () -> Bunch
    size : str
        As shown to users, "1,000 x 2" for example.
    classes : int
        0 if none are known.
    origin, licence : str
    files : tuple of str
        The files it needs, by their paths in a data folder.
    fetched_file : str, optional
        The file in which fetched data is cached; it replaces ``files``.
    """

    name: str
    load: Callable[[], Bunch]
    size: str
    classes: int
    origin: str
    licence: str
    files: tuple[str, ...] = ()
    fetched_file: str | None = None

    def at_hand(self) -> str:
        """Whether it can be loaded: "yes", "can be fetched" or "no"."""
        fetched = self.fetched_file is not None and find(self.fetched_file) is not None
        needs_nothing = not self.files and self.fetched_file is None
        if fetched or needs_nothing or (self.files and all(find(file) is not None for file in self.files)):
            return "yes"
        return "no" if self.fetched_file is None else "can be fetched"
