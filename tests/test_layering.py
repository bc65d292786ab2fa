"""A module imports only from lower layers, so that each can be read and used without those above."""

import ast
from pathlib import Path

import pytest

import ddclust

PACKAGE = Path(ddclust.__file__).parent
LAYERS = [
    {"kernels", "items", "atomic", "neighbors", "links", "augment"},
    {"losses", "networks", "metrics", "datasets", "sources", "text", "persistence"},
    {"training", "consensus", "_checkpoints", "_objective", "views"},
    {"inference", "_partners"},
    {"merging", "selection"},
    {"_runs", "_validation"},
    {"_engine", "_model_format"},
    {"_network_clusterer"},
    {"_ddc", "baselines"},
    {"run_folder", "_cell", "explain"},
    {"comparison", "plots", "report"},
    {"scan"},
    {"experiments"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem != "__init__")


def room(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """(name of the room, whether only for type checking) of every import of our own."""
    tree = ast.parse(path.read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if (
            node in typing_only
            or not isinstance(node, ast.ImportFrom)
            or not (node.module or "").startswith("ddclust")
        ):
            continue
        parts = node.module.split(".")
        yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    own = room(path)
    assert own in LEVEL, f"give {own} a layer"
    for other in imported(path):
        if other not in {"__version__", "DDC", "DDCLoss", own}:
            assert LEVEL[other] < LEVEL[own], f"{own} must not import {other}"


def test_matplotlib_loads_inside_functions():
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [getattr(node, "module", "")]
            )
            assert not any((name or "").startswith("matplotlib") for name in names), path


def test_only_one_door_to_scikit_learn_s_private_parts():
    for path in FILES:
        if path.stem != "_validation":
            assert "sklearn.utils._" not in path.read_text(), path
