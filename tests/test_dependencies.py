"""What is installed: the page that says why, the pins and the digests agree with pyproject.toml."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text()
LOCK = (ROOT / "requirements-hashed.txt").read_text()
CONSTRAINTS = (ROOT / "constraints.txt").read_text()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def required(requirements):
    """The packages that requirements name, other than ourselves."""
    names = [normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements]
    return [name for name in names if name != "ddclust"]


def pins(text):
    return {normal(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.+!]+)", text)}


def tables():
    """(cells of a row) of every table on the page."""
    return [
        [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
        for table in re.findall(r"(?m)(?:^\|.*\n)+", PAGE)
    ]


def test_the_page_lists_every_direct_dependency_and_no_other():
    core, extras, dev = tables()
    assert [row[0] for row in core] == required(PROJECT["dependencies"])
    by_extra = defaultdict(list)
    for extra, package, *_ in extras:
        by_extra[extra].append(package)
    optional = PROJECT["optional-dependencies"]
    assert by_extra == {name: required(listed) for name, listed in optional.items() if name != "dev"}
    assert [row[0] for row in dev] == required(optional["dev"])


def test_the_page_names_all_that_the_core_brings():
    on_page = set(re.findall(r"[\w-]+", PAGE.partition("## Extras")[0]))
    packages = {name for name in pins(LOCK) if not name.startswith(("cuda-", "nvidia-"))}
    assert packages <= on_page


def test_digests_are_of_the_versions_that_are_tested():
    locked, tested = pins(LOCK), pins(CONSTRAINTS)
    assert set(required(PROJECT["dependencies"])) <= locked.keys()
    assert {name: tested[name] for name in locked if name in tested} == {
        name: version for name, version in locked.items() if name in tested
    }
    # What the tests have not installed are packages for GPUs and for Windows.
    others = [name for name in locked if name not in tested]
    assert [n for n in others if not n.startswith(("cuda-", "nvidia-", "triton", "colorama"))] == []


def test_every_package_has_digests():
    for entry in re.split(r"(?m)^(?=[a-z])", LOCK)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


@pytest.mark.parametrize("text", [LOCK, CONSTRAINTS], ids=["digests", "constraints"])
def test_pins_name_no_address(text):
    assert "://" not in text
    assert not re.search(r"(?m)^\s*-", text.replace("    --hash=", ""))
