"""Takes over runs of the paper's protocol that were made outside the laboratory: python -m lab.migrate FOLDER.

FOLDER holds ``<reading>-<precision>-<iterations>/<seed>/`` with ``result.json`` and ``labels.npz``. Finished runs are
copied; what has been taken over before stays as it is.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from ddclust.storage.atomic import write_json
from ddclust.storage.json_files import PLAIN, read_json
from lab.data import load_data
from lab.experiments.pool import ITERATIONS, READINGS, pool_cell
from lab.paths import Place
from lab.pool import write_pool_figure, write_votes
from lab.runner import description_of

CURVE_ITEMS = 10_000
# The runs come from a changed copy of the library: no commit of this repository has the code that made them.
MADE_BY = {
    "commit": "ece32d5748ad030ec8775b94d88c4c9fdd41a2ab",
    "changed_since": True,
    "changes": "ConvNet.features under torch.autocast('cpu', torch.bfloat16), its output cast to float32; snapshots of"
    " 10,000 items instead of 2,000",
}


def main(folder: Path) -> None:
    place, data = Place(), description_of(load_data("mnist"))
    for file in sorted(folder.glob(f"*-{ITERATIONS}/*/result.json")):
        found = read_json(file, PLAIN, remedy="make the run again")
        if found["reading"] not in READINGS:
            continue
        cell = pool_cell(found["reading"], found["seed"], found["precision"])
        labels = place.work(f"paper/{cell.key}") / "labels.npz"
        if not labels.exists():
            labels.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.with_name("labels.npz"), labels)
        target = place.result(cell)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            head = {"cell": cell.key, "budget": cell.budget, "command": cell.command, "data": data}
            write_json(target, head | {"protocol": cell.protocol()} | content(found))
            print(target)
    write_votes(place)
    write_pool_figure(place)


def content(found: dict[str, Any]) -> dict[str, Any]:
    """The run, its history and its curve, as the laboratory writes them."""
    points = [{**point, "clusters_used": point["used"]} for point in found["curve"]]
    return {
        "run": found["run"] | {"ACC": found["ACC"], "NMI": found["NMI"]},
        "history": found["history"],
        "curve": [{name: value for name, value in point.items() if name != "used"} for point in points],
        "curve_items": CURVE_ITEMS,
        "provenance": found["provenance"] | MADE_BY,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
