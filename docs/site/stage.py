"""Put together what Sphinx builds the site from: the pages of docs/ as they are, but for links that lead elsewhere, and the reference.

python docs/site/stage.py FOLDER
"""

import re
import shutil
import sys
from pathlib import Path

import ddclust

SITE = Path(__file__).parent
ROOT = SITE.parent.parent
SOURCE = "https://github.com/ddclust/ddclust/blob/main"
# Pages outside docs/ and their names on the site.
OTHERS = {
    "RESULTS.md": "results.md",
    "BENCHMARKS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# The reference: modules whose names are public, beside those that can be imported from ddclust itself.
CLASSES_AND_FUNCTIONS = {
    "Clustering": [
        "DDC",
        "Network",
        "Selection",
        "EarlyStopping",
        "ConstantRate",
        "CosineRate",
        "Callback",
        "Snapshots",
    ],
    "Data": ["Table", "load_data"],
    "Loss": ["DDCLoss", "ddc_loss", "gaussian_kernel", "Affine", "Photo", "Noise", "Dropout"],
    "Results": ["explain", "majority_vote", "clustering_accuracy", "nmi", "expected_calibration_error"],
}
MODULES = {
    "Methods and tools": ["baselines", "scan", "datasets", "loggers", "show.plots", "show.report", "show.explain", "encoders"],
    "Choosing": [
        "choosing.selection", "choosing.consensus", "choosing.calibration", "choosing.rejection", "choosing.certainty",
        "choosing.merging", "choosing.grouping", "choosing.mixtures", "choosing.metrics", "choosing.borders", "choosing.k_means",
    ],
    "Objective": [
        "objective.loss", "objective.terms", "objective.divergences", "objective.kernels", "objective.augment", "objective.pairs",
        "objective.regrouping", "objective.objective",
    ],
    "Networks and training": [
        "networks", "training.callbacks", "training.rates", "training.setup", "training.record", "training.trainer",
        "snapshots", "defaults", "exporting",
    ],
    "Data": ["data.items", "data.batches", "data.text", "data.links", "data.neighbors", "data.views"],
}  # fmt: skip
LINK = re.compile(r"""(\]\(|src=")([^)"#\s]+)(#[^)]*)?(\)|")""")


def main(folder: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        if old.name != "gallery":  # examples that have not changed need not run again
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name in ("conf.py", "index.md", "guides.md", "background.md"):
        shutil.copy(SITE / name, target)
    for name in ("_static", "_templates"):
        shutil.copytree(SITE / name, target / name)
    shutil.copytree(ROOT / "examples" / "gallery", target / "examples")
    pages = {path: path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "index.md"}
    pages |= {ROOT / name: own for name, own in OTHERS.items()}
    for path, name in pages.items():
        (target / name).write_text(relinked(path, pages, target))
    (target / "api.rst").write_text(reference())


def relinked(path: Path, pages: dict[Path, str], target: Path) -> str:
    """A page whose links lead to pages of the site, to copied pictures, or to the repository."""

    def link(match: re.Match[str]) -> str:
        opening, address, anchor, closing = match.groups()
        if "://" in address or address.startswith("mailto:"):
            return match[0]
        found = (path.parent / address).resolve()
        if found in pages:
            return f"{opening}{pages[found]}{anchor or ''}{closing}"
        if not found.exists():
            raise FileNotFoundError(f"{path.relative_to(ROOT)} links to {address}, which does not exist.")
        if found.suffix in (".png", ".svg"):
            pictures = target / "_static" / "pictures"  # where raw HTML finds them, too
            pictures.mkdir(exist_ok=True)
            shutil.copy(found, pictures / found.name)
            return f"{opening}_static/pictures/{found.name}{closing}"
        if found == ROOT / "docs" / "index.md":
            return f"{opening}index.md{closing}"
        return f"{opening}{SOURCE}/{found.relative_to(ROOT)}{closing}"

    text = LINK.sub(link, path.read_text())
    return text.replace("\n\n```\n", "\n```\n")  # the empty line that ends a doctest


def reference() -> str:
    """The page of the reference, which lists every public name."""
    listed = {name for names in CLASSES_AND_FUNCTIONS.values() for name in names}
    public = {name for name in ddclust.__all__ if not name.startswith("_")}
    if listed != public:
        raise ValueError(f"The reference and ddclust.__all__ differ: {sorted(listed ^ public)}")
    parts = [
        heading("Reference", "="),
        "What can be imported from ``ddclust`` itself comes first. The modules below have what it is made of; names that are not"
        " listed here may change without notice.",
    ]
    for title, names in CLASSES_AND_FUNCTIONS.items():
        parts += [heading(title, "-"), ".. currentmodule:: ddclust", table(names)]
    for title, modules in MODULES.items():
        parts += [heading(f"Modules: {title.lower()}", "-"), table(modules, "module.rst")]
    return "\n\n".join(parts) + "\n"


def heading(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}"


def table(names: list[str], template: str | None = None) -> str:
    option = f"   :template: {template}\n" if template else ""
    return f".. autosummary::\n   :toctree: generated\n{option}\n" + "\n".join(f"   {name}" for name in names)


if __name__ == "__main__":
    main(*sys.argv[1:])
