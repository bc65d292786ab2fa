"""What is known of a run: its record, and how it ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

import msgspec


class Outcome(StrEnum):
    """Where a run is, or how it ended."""

    WAITING = "waiting"  # it has not begun
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # it can go on
    CONVERGED = "converged"
    BUDGET = "budget"  # it made all its iterations
    ELIMINATED = "eliminated"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether the run will not go on."""
        return self in (Outcome.CONVERGED, Outcome.BUDGET, Outcome.ELIMINATED, Outcome.FAILED)

    @property
    def in_words(self) -> str:
        """What users are told.

        Examples
        --------
        >>> Outcome.BUDGET.in_words, Outcome("converged").in_words
        ('all iterations', 'converged')
        """
        return "all iterations" if self is Outcome.BUDGET else str(self)

    @property
    def is_unfinished(self) -> bool:
        """Whether the run was stopped before its end, or before it began."""
        return self in (Outcome.WAITING, Outcome.INTERRUPTED)


@dataclass
class RunRecord:
    """The record of a run.

    ``loss`` and ``terms`` are those of the whole data when the run was last judged, ``losses_at`` the loss at each
    iteration at which it was judged, ``saves`` how often a checkpoint was written, and ``agreement`` the mean
    agreement with the other runs, where that was asked for.
    """

    run: int
    seed: int
    outcome: Outcome = Outcome.WAITING
    error: str | None = None
    loss: float | None = None
    terms: dict[str, float] = field(default_factory=dict)
    n_iter: int = 0
    clusters_used: int = 0
    seconds: float = 0.0
    losses_at: dict[int, float] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    saves: int = 0
    agreement: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the run can be chosen."""
        return self.loss is not None and self.outcome not in (Outcome.FAILED, Outcome.ELIMINATED)

    @property
    def is_whole(self) -> bool:
        """Whether a run that has ended or was judged has what follows from it: an error if it failed, else a loss."""
        if self.outcome is Outcome.FAILED:
            return self.error is not None
        return self.loss is not None or not (self.outcome.is_final or self.losses_at)

    def judged_loss(self, iteration: int) -> float:
        """The loss at an iteration or, of a run that converged before, the last one."""
        loss = self.losses_at.get(iteration, self.loss)
        return float("inf") if loss is None else loss

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values, for files."""
        plain = asdict(self)
        plain["outcome"] = str(self.outcome)
        plain["losses_at"] = {str(iteration): loss for iteration, loss in self.losses_at.items()}
        return plain

    def public(self) -> dict[str, Any]:
        """The record as users see it in ``runs_``."""
        hidden = {"saves"} | ({"agreement"} if self.agreement is None else set())
        return {name: value for name, value in self.to_dict().items() if name not in hidden}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The record that :meth:`to_dict` gave.

        Examples
        --------
        >>> RunRecord.from_dict(RunRecord(0, 7, losses_at={10: 0.5}).to_dict()).losses_at
        {10: 0.5}
        """
        return msgspec.convert(plain, cls, str_keys=True)
