"""Run every benchmark and write BENCHMARKS.md from the results: python benchmarks/run.py [NAME ...]."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
INTRODUCTION = """# Benchmarks

Written by `make bench`. Every figure is a ratio of two things measured in turns in one process, or a count; the
median is given with the quartiles. Misses are shown like hits.
"""


def cell(row: dict) -> str:
    spread = row.get("quartiles")
    return f"{row['median']:g}" + (f" ({spread[0]:g} to {spread[1]:g})" if spread else "")


def table(name: str, result: dict) -> str:
    machine = result["machine"]
    lines = [
        f"\n## {name}\n",
        f"{machine['cpu']}, {machine['cores']} cores, torch {machine['torch']} on {machine['threads']} threads.\n",
        "| what | measured | target |",
        "| --- | --- | --- |",
        *(f"| {row['what']} | {cell(row)} | {row['target']} |" for row in result["rows"]),
    ]
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    for name in names or [p.stem for p in sorted(HERE.glob("[!_]*.py")) if p.stem != "run"]:
        print(f"{name} ...", flush=True)
        subprocess.run([sys.executable, HERE / f"{name}.py"], check=True)
    tables = [table(p.stem, json.loads(p.read_text())) for p in sorted((HERE / "results").glob("*.json"))]
    (HERE.parent / "BENCHMARKS.md").write_text(INTRODUCTION + "".join(tables))
    print("BENCHMARKS.md")


if __name__ == "__main__":
    main(sys.argv[1:])
