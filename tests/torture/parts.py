"""The parts of the harness by name."""

from torture import crash, faults, fuzz, kills, places
from torture.table import Part

PARTS: dict[str, Part] = {module.PART.name: module.PART for module in (crash, kills, faults, fuzz, places)}
