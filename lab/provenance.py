"""Where a result comes from: commit, library versions, machine and time."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ddclust.results import versions

SOURCE = Path(__file__).parents[1]


class Clock:
    """Measures a piece of work from its construction on."""

    def __init__(self) -> None:
        self.begun, self._start = time.time(), time.perf_counter()

    def provenance(self) -> dict[str, Any]:
        """The commit, versions and machine of this process, and when the work began and ended."""
        return {
            "commit": _git("rev-parse", "HEAD"),
            "changed_since": _changed_since(),
            "versions": versions(),
            "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
            "begun": time_text(self.begun),
            "ended": time_text(time.time()),
            "seconds": round(time.perf_counter() - self._start, 1),
        }


def time_text(seconds: float) -> str:
    """A moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _changed_since() -> bool | None:
    """Whether the code differs from its commit."""
    changes = _git("status", "--porcelain", "--", "src", "lab/*.py")
    return None if changes is None else bool(changes)


def _git(*arguments: str) -> str | None:
    try:
        ran = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
