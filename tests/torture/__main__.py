"""``python -m torture``: all parts at length, with a table of counts at the end. Exits with 1 if anything failed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import torch

from torture.parts import PARTS
from torture.table import Table, run_part

RESULTS = Path(__file__).parent / "results.json"
# Power failures are replayed, so no disk has to be waited for: most of the time would be that of its syncs.
MEMORY = Path("/dev/shm")


def main() -> int:
    """Run what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="Of %(default)s, separated by commas.")
    parser.add_argument("--scale", type=float, default=1.0, help="Share of the usual numbers. [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="[%(default)s]")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="Where the table goes as JSON. [%(default)s]"
    )
    parser.add_argument(
        "--add", action="store_true", help="Add to the counts in that file, such as with another seed."
    )
    options = parser.parse_args()
    unknown = set(options.parts.split(",")) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {min(unknown)!r}; choose from {', '.join(PARTS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    scratch = str(MEMORY) if MEMORY.is_dir() else None
    parts, table = [PARTS[name] for name in options.parts.split(",")], Table()
    for part in parts:
        with tempfile.TemporaryDirectory(prefix=f"torture-{part.name}-", dir=scratch) as folder:
            run_part(part, Path(folder), options.scale, options.seed, table)
        table.write(options.results, add=options.add, scale=options.scale, seed=options.seed)
    print("\n".join(table.lines(parts)))
    return int(table.n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
