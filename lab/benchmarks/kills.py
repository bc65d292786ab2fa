"""Fits that are killed again and again, and whether they end as undisturbed ones do."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from ddclust.storage.json_files import PLAIN, parsed

TESTS = Path(__file__).parents[2] / "tests"


def kills(n: int, *options: str) -> dict:
    """SIGKILL at random moments; lost means that the end differs from an undisturbed fit's."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torture.kills", folder, "--kills", str(n), *options]
        printed = subprocess.check_output(command, cwd=TESTS).splitlines()[-1]
        result = parsed(printed, PLAIN, what="What the test printed", remedy="see its output")
    return row(result["kills"], result["in the middle of a write"], not result["failures"], options)


def row(n: int, torn: int, same: bool, options: tuple[str, ...]) -> dict:
    what = f"fits that end otherwise after {n} kills, {torn} of them in the middle of a write"
    return {"what": " ".join([what, *options]), "target": "0", "median": int(not same)}


def figures() -> list[dict]:
    """What the benchmark measures."""
    return [kills(60), kills(20, "--halving"), kills(6, "--jobs", "2")]
