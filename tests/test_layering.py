"""Folders are layers: a module imports from its own room and from those before it, so that each can be read alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ddclust

PACKAGE = Path(ddclust.__file__).parent
ROOMS = [
    "progress",
    "workers",
    "storage",
    "data",
    "encoders",
    "datasets",
    "objective",
    "networks",
    "training",
    "loggers",
    "choosing",
    "snapshots",
    "defaults",
    "trial",
    "earlier_formats",
    "exporting",
    "hub",
    "pictures",
    "card",
    "saving",
    "base",
    "ddc",
    "baselines",
    "reading",
    "naming",
    "results",
    "compare",
    "show",
    "scan",
    "cli",
    "__main__",
]
LEVEL = {name: level for level, name in enumerate(ROOMS)}
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE or p.stem != "__init__")
PUBLIC = {name: home.partition(".")[0] for name, home in ddclust._HOME.items()}


def room(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """The room of every import of our own that happens at run time."""
    tree = ast.parse(path.read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in typing_only or not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".")
        if parts[0] == "ddclust":
            yield from (parts[1:2] or [PUBLIC.get(alias.name, alias.name) for alias in node.names])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    own = room(path)
    assert own in LEVEL, f"give {own} a layer"
    for other in imported(path):
        if other not in {"__version__", own}:
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
        if path != PACKAGE / "data" / "validation.py":
            assert "sklearn.utils._" not in path.read_text(), path


def test_the_estimator_loads_nothing_that_only_some_users_need():
    of_some = [
        "captum",
        "jinja2",
        "matplotlib",
        "PIL",
        "scipy.cluster",
        "sklearn.cluster",
        "sklearn.metrics",
        "sklearn.mixture",
        "sklearn.neighbors",
    ]
    code = f"import sys; from ddclust import DDC; print(sorted(set({of_some}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr
