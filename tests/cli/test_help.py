"""Help of every command."""

import subprocess
import sys

import pytest

from commands import PROCESS, run
from ddclust.cli.main import SECTIONS, main

WIDTH = 80


def test_help_is_for_people():
    result = run("--help")
    assert "ddclust fit digits -k 10" in result.output
    for command in ("fit", "predict", "evaluate"):
        text = run(command, "--help").output
        assert "DATA" in text or "TRUTH" in text
    assert "Missing option '-k'" in run("fit", "digits").output


def test_every_command_is_listed_once_under_a_title():
    lines = run("--help").output.splitlines()
    for title, commands in SECTIONS.items():
        assert f"{title}:" in lines
        for command in commands:
            (line,) = [line for line in lines if line.startswith(f"  {command.name} ")]
            assert line.endswith(".")
            assert "..." not in line
    assert sum(map(len, SECTIONS.values())) == len(main.commands)


@pytest.mark.parametrize("command", [None, *main.commands])
def test_help_fits_into_the_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    result = run(*([] if command is None else [command]), "--help")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= WIDTH
    for garbage in ("\\b", "\b", "partner", "RANGE", "None", "x>="):
        assert garbage not in result.output


@pytest.mark.parametrize("command", main.commands)
def test_paragraphs_and_lists_are_not_joined(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    lines = run(command, "--help").output.splitlines()
    for line in (
        (main.commands[command].help or "").split("\b\n")[-1].splitlines() if "DATA is" in lines else []
    ):
        assert line.rstrip() in [shown[2:].rstrip() for shown in lines]
    paragraphs = [p for p in (main.commands[command].help or "").split("\n\n") if "\b" not in p]
    for paragraph in paragraphs:
        first = " ".join(paragraph.split())[:30]
        assert any(line.strip().startswith(first) for line in lines), first


def test_options_stand_under_their_sections():
    text = run("fit", "--help").output
    titles = [text.index(f"\n{title}:\n") for title in ("Clusters", "Training", "Data", "Output")]
    assert titles == sorted(titles)
    assert titles[0] < text.index("  -k, --clusters") < titles[1] < text.index("  --runs") < titles[2]


def test_help_does_not_wait_for_torch():
    code = """
import sys
from ddclust.cli.main import main
for command in [[], *([name] for name in main.commands)]:
    main([*command, "--help"], standalone_mode=False)
sys.exit(any(name in sys.modules for name in ("torch", "sklearn", "numpy")))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_module_is_the_command():
    result = subprocess.run([*PROCESS, "--help"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: ddclust [OPTIONS] COMMAND")
    wrong = subprocess.run([*PROCESS, "cluster"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2
    assert "No such command 'cluster'" in wrong.stderr
