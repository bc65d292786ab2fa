"""What commands print: names from outside never control the terminal, and tables for programs stay exact."""

import csv
import io
import os
import subprocess

import numpy as np
import pytest

from commands import PROCESS, QUICK, run
from ddclust.cli.printing import PrintableStream, printable
from ddclust.progress import wrapped
from helpers import quick

HOSTILE = "\x1b]0;title\x07\x1b[31m\x9b2J\u202ename\u2066\x7f"
FORBIDDEN = set(map(chr, [*range(32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]))


def table(path, names, columns=("a", "b")):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", *columns))
        writer.writerows((name, i % 2 + i / 100, i % 2) for i, name in enumerate(names))


def on_a_terminal(*command, cwd):
    """What a command writes to a terminal, and its exit code."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    written = b""
    try:
        while piece := os.read(controller, 4096):
            written += piece
    except OSError:  # the other end is closed
        pass
    os.close(controller)
    return written.decode(), process.wait(timeout=60)


@pytest.mark.slow
def test_names_do_not_control_the_terminal(tmp_path):
    data = tmp_path / f"{HOSTILE}.csv"
    table(data, [f"{i}{HOSTILE}" for i in range(40)], columns=("a" + HOSTILE, "b"))
    shown, code = on_a_terminal(*PROCESS, "fit", data.name, "-k", "2", *QUICK, "--out", HOSTILE, cwd=tmp_path)
    assert code == 0, shown
    assert f"{printable(HOSTILE)}: 40 items of 2 values" in shown
    assert f"Results: {printable(HOSTILE)}/" in shown
    assert set(shown) & FORBIDDEN <= set("\n\r\t")
    for command in (
        ("predict", HOSTILE, data.name),
        ("runs", HOSTILE),
        ("fit", data.name, "-k", "2", "--text", HOSTILE),
        ("fit", HOSTILE + ".npy", "-k", "2"),
        ("fit", data.name, HOSTILE),
        (HOSTILE,),
        ("--" + HOSTILE,),
    ):
        shown, _ = on_a_terminal(*PROCESS, *command, cwd=tmp_path)
        assert shown
        assert set(shown) & FORBIDDEN <= set("\n\r\t"), command


def test_a_table_for_other_programs_is_exact(tmp_path):
    names = [f"{i}{HOSTILE}\r\n,\"'" for i in range(40)]
    table(tmp_path / "x.csv", names)
    quick(2, max_iter=5).fit(np.random.default_rng(0).random((40, 2))).save(tmp_path / "model")
    done = run("predict", tmp_path / "model", tmp_path / "x.csv")
    assert done.exit_code == 0, done.output
    rows = list(csv.reader(io.StringIO(done.stdout_bytes.decode(), newline="")))
    assert [row[0] for row in rows[1:]] == names


def test_a_carriage_return_passes_only_where_progress_bars_have_it():
    written = io.StringIO(newline="")
    stream = PrintableStream(written)
    stream.write("\r 50%\r")
    stream.write("\r")
    stream.write("safe\rforged\n")
    assert written.getvalue() == "\r 50%\r\rsafe\\rforged\n"


def test_characters_that_the_terminal_lacks_are_escaped():
    raw = io.BytesIO()
    stream = PrintableStream(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    stream.write("café \udcff\n")
    assert raw.getvalue() == b"caf\\xe9 \\udcff\n"


def test_words_of_any_language_are_left_alone():
    words = "café Ελλάδα עברית العربية 日本語 👩\u200d🚀 \N{SEAL}"
    assert printable(words) == words


def test_sentences_are_broken_between_words_on_a_terminal(monkeypatch):
    sentence = "Error: There is no file, folder or data set 'a-rather-long-name-of-a-file.csv'; look again."
    assert wrapped(sentence) == sentence  # for programs it stays one line
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = wrapped(sentence).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == sentence
