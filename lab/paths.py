"""Where the laboratory keeps its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.cells import Cell

CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Place:
    """A folder with the pages, and in its folder ``lab`` the results, the figures and the work in progress."""

    folder: Path = CHECKOUT

    @property
    def results_page(self) -> Path:
        """The page of the paper's tables and figures."""
        return self.folder / "RESULTS.md"

    @property
    def benchmarks_page(self) -> Path:
        """The page of all benchmarks."""
        return self.folder / "BENCHMARKS.md"

    def study_page(self, study: str) -> Path:
        """The page of a study."""
        return self.folder / "docs" / f"{study}.md"

    def results(self, budget: str, experiment: str) -> Path:
        """The folder of an experiment's results."""
        return self.folder / "lab" / "results" / budget / experiment

    def result(self, cell: Cell) -> Path:
        """The JSON file of a cell."""
        return self.folder / "lab" / "results" / cell.budget / f"{cell.key}.json"

    def benchmark(self, name: str) -> Path:
        """The JSON file of a benchmark."""
        return self.folder / "lab" / "results" / "benchmarks" / f"{name}.json"

    def figure(self, budget: str, name: str) -> Path:
        """An image file."""
        return self.folder / "lab" / "figures" / budget / f"{name}.png"

    def work(self, name: str) -> Path:
        """A folder for work in progress. It can be deleted once everything is done."""
        return self.folder / "lab" / "work" / name

    def relative(self, file: Path) -> str:
        """The path of a file as the pages link to it."""
        return file.relative_to(self.folder).as_posix()
