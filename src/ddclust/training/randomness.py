"""Torch has one random state and one number of threads per process; fits in several threads take turns with both."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_TURN = threading.RLock()

if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads that torch has started, and would wait for them for ever.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextmanager
def own_randomness(seed: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Torch's random state for this thread alone, from a seed if there is one; restored afterwards.

    Examples
    --------
    >>> with own_randomness(0):
    ...     first = torch.rand(1)
    >>> with own_randomness(0):
    ...     bool(torch.rand(1) == first)
    True
    """
    has_gpu = device is not None and device.type == "cuda"
    with _TURN, torch.random.fork_rng(devices=[device] if has_gpu else []):
        if seed is not None:
            torch.default_generator.manual_seed(
                seed
            )  # torch.manual_seed would touch devices that are not ours
            if has_gpu:
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def own_threads(n_threads: int) -> Iterator[None]:
    """A number of threads for torch; the former one is restored afterwards."""
    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(n_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def usual_threads() -> int:
    """How many threads torch uses when no run is under way."""
    with _TURN:
        return torch.get_num_threads()
