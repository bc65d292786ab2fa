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


def main() -> int:
    """Run what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="Of %(default)s, separated by commas.")
    parser.add_argument("--scale", type=float, default=1.0, help="Share of the usual numbers. [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="[%(default)s]")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="Where the table goes as JSON. [%(default)s]"
    )
    options = parser.parse_args()
    unknown = set(options.parts.split(",")) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {min(unknown)!r}; choose from {', '.join(PARTS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parts, table = [PARTS[name] for name in options.parts.split(",")], Table()
    for part in parts:
        with tempfile.TemporaryDirectory(prefix=f"torture-{part.name}-") as folder:
            run_part(part, Path(folder), options.scale, options.seed, table)
        table.write(options.results, scale=options.scale, seed=options.seed)
    print("\n".join(table.lines(parts)))
    return int(table.n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
