"""Fits that are killed again and again, and whether they end as undisturbed ones do."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TORTURE = Path(__file__).parents[2] / "tests" / "torture.py"


def kills(n: int, *options: str) -> dict:
    """SIGKILL at random moments; lost means that the end differs from an undisturbed fit's."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, TORTURE, folder, "--kills", str(n), *options]
        result = json.loads(subprocess.check_output(command).splitlines()[-1])
    return row(result["kills"], result["in the middle of a write"], result["same"], options)


def row(n: int, torn: int, same: bool, options: tuple[str, ...]) -> dict:
    what = f"fits that end otherwise after {n} kills, {torn} of them in the middle of a write"
    return {"what": " ".join([what, *options]), "target": "0", "median": int(not same)}


def figures() -> list[dict]:
    """What the benchmark measures."""
    return [kills(60), kills(20, "--eliminate"), kills(6, "--jobs", "2")]
