"""Files that are written in full or not at all, and locks."""

import json
import os
import subprocess
import sys

import pytest

from ddclust.storage.atomic import locked, write_file, write_json


def test_failed_overwriting_keeps_the_old_file(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, "old")
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, float("nan"))
    assert json.loads(path.read_text()) == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_file(path, b"old")

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


TRY = """
import sys
from pathlib import Path
from ddclust.storage.atomic import locked
print(locked(Path(sys.argv[1])) is None)
"""


def test_a_lock_is_one_process_s(tmp_path):
    def is_refused():
        command = [sys.executable, "-c", TRY, str(tmp_path / "lock")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"

    ours = locked(tmp_path / "lock")
    assert is_refused()
    assert locked(tmp_path / "lock") is None  # nor twice in one process
    ours.close()
    assert not is_refused()
