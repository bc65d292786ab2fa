"""The shell commands of the README and of the documentation are run as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ddclust.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Long commands are cut short by options at their end, which replace earlier ones.
SHORTER = {
    "fit": ["--max-iter", "2"],
    "scan": ["--max-iter", "2", "--to", "3", "--runs", "2"],
    "compare": ["--max-iter", "2", "--runs", "1", "--choices", "1", "--methods", "k-means,ddc"],
}
# What sets up an environment, or works for hours on data that has to be fetched.
NOT_HERE = ("pip ", "python3 -m venv", ". .venv/", "make ", "python -m lab")


def commands(page):
    """The commands of a page, in order, without comments."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", line).strip() for line in lines]


def ddclust_arguments(page):
    """The arguments of every call of ddclust on a page."""
    return [shlex.split(command)[1:] for command in commands(page) if command.startswith("ddclust ")]


def with_commands(pages):
    return [page for page in pages if any(not c.startswith(NOT_HERE) for c in commands(page))]


def run_page(lines, folder):
    """Run commands in a shell, as a user types them; python and ddclust are those of the tests."""
    tools = folder / ".tools"
    tools.mkdir()
    for name, arguments in (("ddclust", "-m ddclust"), ("python", "")):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        tool.chmod(0o755)
    os.symlink(ROOT / "examples", folder / "examples")
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg"}
    for line in lines:
        result = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{line}\n{result.stdout}\n{result.stderr}"
        yield line, result


def test_there_are_commands_to_run():
    assert len(ddclust_arguments(ROOT / "README.md")) > 5
    assert sum(len(ddclust_arguments(page)) for page in PAGES) > 30


@pytest.mark.parametrize("page", with_commands(PAGES), ids=lambda page: page.name)
def test_every_option_exists(page):
    for name, *arguments in ddclust_arguments(page):
        command = main.commands[name]
        try:
            command.make_context(name, list(arguments))
        except click.BadParameter as error:  # files that other commands of the page write
            assert "does not exist" in error.message, (name, arguments)


def test_no_message_asks_for_a_package_that_is_on_no_index():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"pip install \S*ddclust", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_installed_from_where_it_is_not(page):
    for command in commands(page):
        assert "git clone" not in command
        if command.startswith("pip install"):
            from_here = r'(^| )"?\.(\[\w+\])?"?( |$)|-r requirements-hashed\.txt$'
            assert re.search(from_here, command), command


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", with_commands(PAGES[1:]), ids=lambda page: page.name)
def test_commands_of_the_documentation_run(page, tmp_path):
    lines = []
    for command in commands(page):
        if command.startswith(NOT_HERE):
            continue
        name = command.split()[1]
        shorter = SHORTER.get(name, []) if command.startswith("ddclust ") else []
        lines.append(shlex.join([*shlex.split(command), *shorter]) if shorter else command)
    for _ in run_page(lines, tmp_path):
        pass


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_commands_of_the_readme_run_as_they_stand(tmp_path):
    lines = [command for command in commands(ROOT / "README.md") if not command.startswith(NOT_HERE)]
    outputs = {line: result.stdout for line, result in run_page(lines, tmp_path)}
    assert len(outputs) == len(lines)
    found = next(output for line, output in outputs.items() if line.startswith("ddclust evaluate"))
    (ours,) = [line.split() for line in found.splitlines() if line.strip().startswith("clusters")]
    assert float(ours[1]) > 0.6  # of five topics
    assert (tmp_path / "photos-6" / "report.html").stat().st_size > 10_000
    for name in ("demo", "test"):
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
