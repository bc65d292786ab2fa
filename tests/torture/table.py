"""Results of the parts, their counts, and the table of them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SHOWN_FAILURES = 20  # of each row, in the file
COUNTED = {
    "crash": "crash points",
    "kill": "kills",
    "fault": "faults",
    "fuzz": "cases",
}  # share names its own


class Result(NamedTuple):
    """One thing that was tried: the row of the table where it counts, and what went wrong, if anything did."""

    row: str
    failure: str = ""


class Part(NamedTuple):
    """A part of the harness: what it counts, how many that are at scale 1, and how it runs."""

    name: str
    counts: str
    about: int
    run: Callable[[Path, float, int], Iterator[Result]]  # folder, scale, seed


@dataclass
class Row:
    count: int = 0
    failures: list[str] = field(default_factory=list)


class Table:
    """Counts by part and row."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}
        self.seconds: dict[str, float] = {}

    def add(self, part: str, result: Result) -> None:
        row = self.rows.setdefault((part, result.row), Row())
        row.count += 1
        if result.failure:
            row.failures.append(result.failure)

    @property
    def n_failures(self) -> int:
        return sum(len(row.failures) for row in self.rows.values())

    def lines(self, parts: Iterable[Part]) -> Iterator[str]:
        """The table for reading, with a total for each part."""
        for part in parts:
            rows = {name: row for (own, name), row in self.rows.items() if own == part.name}
            count, failed = (
                sum(map(size, rows.values())) for size in (lambda r: r.count, lambda r: len(r.failures))
            )
            yield f"{part.name}: {count:,} {part.counts}, {failed:,} failures, {self.seconds.get(part.name, 0):.0f} s"
            for name, row in rows.items():
                yield f"  {name:<52} {row.count:>8,} {len(row.failures):>6,}"

    def to_dict(self) -> dict:
        parts: dict[str, dict] = {}
        for (part, name), row in self.rows.items():
            entry = {"count": row.count, "failures": len(row.failures)}
            if row.failures:
                entry["examples"] = row.failures[:SHOWN_FAILURES]
            parts.setdefault(part, {"seconds": round(self.seconds.get(part, 0)), "rows": {}})["rows"][
                name
            ] = entry
        return parts

    def write(self, file: Path, *, add: bool = False, **about: object) -> None:
        """The table as JSON, with what it was made on. Parts that were not run keep their earlier rows.

        With ``add``, the counts of parts that were run before are added to.
        """
        before = json.loads(file.read_text())["parts"] if file.exists() else {}
        now = {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "machine": machine(), **about}
        fresh = {name: now | part for name, part in self.to_dict().items()}
        if add:
            fresh = {
                name: _sum(before[name], part) if name in before else part for name, part in fresh.items()
            }
        file.write_text(json.dumps({"parts": before | fresh}, indent=1) + "\n")


def markdown(file: Path) -> str:
    """The counts in a file of results as the table of CONTRIBUTING.md; what is shared has a line for each kind."""
    lines = ["| part | tried | failures | commit | day |", "| --- | --- | --- | --- | --- |"]
    for name, part in json.loads(file.read_text())["parts"].items():
        kinds: dict[str, list[dict]] = {}
        for row_name, row in part["rows"].items():
            kind = row_name.partition(",")[0] if row_name.startswith("links") else row_name
            kind = "bits flipped" if kind.startswith("bits flipped") else kind
            kinds.setdefault(kind if name == "share" else COUNTED[name], []).append(row)
        for kind, rows in kinds.items():
            count, failed = (sum(row[key] for row in rows) for key in ("count", "failures"))
            lines.append(f"| `{name}` | {count:,} {kind} | {failed:,} | {part['commit']} | {part['date']} |")
    return "\n".join(lines) + "\n"


def _sum(first: dict, second: dict) -> dict:
    """Two runs of a part as one: counts are added, and all commits, scales and seeds are named."""
    rows = dict(first["rows"])
    for name, row in second["rows"].items():
        old = rows.get(name, {})
        examples = [*old.get("examples", ()), *row.get("examples", ())][:SHOWN_FAILURES]
        rows[name] = {key: old.get(key, 0) + row[key] for key in ("count", "failures")}
        rows[name] |= {"examples": examples} if examples else {}
    named = {key: _both(first[key], second[key]) for key in ("commit", "scale", "seed")}
    return {**second, **named, "seconds": first["seconds"] + second["seconds"], "rows": rows}


def _both(first: object, second: object) -> object:
    known = str(first).split(", ")
    return first if str(second) in known else f"{first}, {second}"


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def commit() -> str:
    """The commit, with a plus if files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    )


def run_part(
    part: Part, folder: Path, scale: float, seed: int, table: Table, *, progress: bool = True
) -> None:
    """Run a part to its end, and say now and then how far it is."""
    begun = said = time.monotonic()
    expected = max(int(part.about * scale), 1)
    for done, result in enumerate(part.run(folder, scale, seed), start=1):
        table.add(part.name, result)
        now = time.monotonic()
        if result.failure and progress:
            print(f"FAILED {part.name}, {result.row}: {result.failure}", flush=True)
        if progress and now - said > 10:
            said = now
            left = max(expected - done, 0) * (now - begun) / done
            print(
                f"{part.name}: {done:,} of about {expected:,} {part.counts}, {table.n_failures} failures, about"
                f" {left / 60:.1f} minutes left",
                file=sys.stderr,
                flush=True,
            )
    table.seconds[part.name] = time.monotonic() - begun
