"""Man pages: written from the commands, shipped with the package, and without errors of roff."""

import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from commands import run
from ddclust.cli.errors import EXIT_CODES
from ddclust.cli.main import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "man"
PAGES = sorted(FOLDER.glob("*.1"))


def test_pages_are_those_of_the_commands(tmp_path):
    runpy.run_path(str(FOLDER / "write.py"))["write"](tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in PAGES}
    for path in PAGES:
        assert path.read_text() == (tmp_path / path.name).read_text(), "run: make man"


@pytest.mark.parametrize("name", main.commands)
def test_every_option_is_on_the_page(name):
    text = (FOLDER / f"ddclust-{name}.1").read_text().replace("\\-", "-")
    for parameter in main.commands[name].params:
        for option in parameter.opts:
            assert not option.startswith("-") or re.search(rf"^\\fB.*{option}\b", text, re.MULTILINE), option


def test_pages_of_commands_that_are_gone_are_removed(tmp_path):
    (tmp_path / "ddclust-gone.1").write_text("")
    runpy.run_path(str(FOLDER / "write.py"))["write"](tmp_path)
    assert not (tmp_path / "ddclust-gone.1").exists()


def test_pages_are_installed_where_man_looks():
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert shipped == {"share/man/man1": ["docs/man/*.1"]}


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_can_be_shown(path):
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", path], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    plain = re.sub(r".\x08|\x1b\[\d+m", "", done.stdout)  # bold is a letter over itself, or a colour
    assert "EXIT STATUS" in plain
    assert "\\" not in plain


def test_exit_codes_are_the_same_everywhere():
    page = (ROOT / "docs" / "command-line.md").read_text()
    rows = re.findall(r"(?m)^\| (\d+) \| (.*) \|$", page)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
    shown = " ".join(run("--help").output.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in shown
