"""Files that unpack to more than there is room for, or say so: refused with little memory, and only then."""

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from commands import run
from ddclust.cli.main import main
from ddclust.datasets import DataError, load, read_labels
from ddclust.storage.limits import MAX_BYTES
from helpers import quick

GB = 2**30
# Reads each path with little memory, and prints what comes of it.
READ = f"""
import resource, sys
from ddclust import DDC
from ddclust.datasets import load
from ddclust.results import read_run
resource.setrlimit(resource.RLIMIT_DATA, (2 * {GB},) * 2)
from pathlib import Path
for path in map(Path, sys.argv[1:]):
    try:
        if path.name == "model":
            DDC.load(path)
        elif path.name == "run":
            read_run(path)
        else:
            load(path)
    except (ValueError, MemoryError) as error:
        print(type(error).__name__, error)
    else:
        print("read", path)
"""


def gzip_bomb(file, block, times):
    """A stream of one block again and again, without making it as a whole."""
    with file.open("wb") as opened:
        packed = gzip.compress(block * 64)  # streams may follow each other
        for _ in range(times // 64):
            opened.write(packed)


def sparse(file, start=b""):
    """A file of 5 GB that takes no room."""
    file.write_bytes(start)
    os.truncate(file, 5 * GB)


def header(shape):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return content.getvalue()


@pytest.mark.slow
def test_bombs_are_refused_with_little_memory(tmp_path, blobs):
    gzip_bomb(tmp_path / "texts.txt.gz", b"some text\n" * 100_000, 6000)
    gzip_bomb(tmp_path / "line.txt.gz", b"\0" * 10**6, 6000)
    gzip_bomb(tmp_path / "table.csv.gz", b"1,1,1,1\n" * 100_000, 6000)
    gzip_bomb(tmp_path / "objects.jsonl.gz", b"{}\n" * 100_000, 6000)
    (tmp_path / "lists.jsonl").write_text('{"text": [' + "[]," * 2**25 + "[]]}\n")
    sparse(tmp_path / "sparse.jsonl", b'{"text": "a"}\n')
    sparse(tmp_path / "sparse.csv", b"a,b\n1,2\n")
    (tmp_path / "texts").mkdir()
    sparse(tmp_path / "texts" / "a.txt")
    (tmp_path / "declared.npy").write_bytes(header((10**12, 10)) + bytes(80))
    with zipfile.ZipFile(tmp_path / "declared.npz", "w") as archive:
        archive.writestr("X.npy", header((10**12, 10)) + bytes(80))
    with (
        zipfile.ZipFile(tmp_path / "packed.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write(header((5 * GB // 80, 10)))
        for _ in range(5 * GB // 80 * 80 // 2**26 + 1):
            member.write(bytes(2**26))
    np.savez(
        tmp_path / "rows.npz",
        indices=np.zeros(1, int),
        indptr=np.array([0, 1]),
        shape=np.array([10**12, 5]),
    )
    often = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), ["word " * 200_000])
    parquet.write_table(pa.table({"id": range(10_000), "text": often}), tmp_path / "text.parquet")
    packed = pa.chunked_array([pa.array(np.zeros(2**24))] * 40)
    parquet.write_table(pa.table({"a": packed}), tmp_path / "numbers.parquet")
    quick(max_iter=2).fit(blobs[0]).save(tmp_path / "model")
    os.truncate(next((tmp_path / "model").glob("tensors*")), 5 * GB)
    (tmp_path / "run").mkdir()
    sparse(tmp_path / "run" / "run.json", b'{"status": "running"}')
    paths = sorted(path for path in tmp_path.iterdir())
    for path in paths:
        if path.is_file():
            assert path.stat().st_blocks * 512 < 200 * 10**6
    result = subprocess.run(
        [sys.executable, "-c", READ, *paths], capture_output=True, text=True, check=False, timeout=250
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        kind, _, message = line.partition(" ")
        assert kind in {"DataError", "ModelFormatError", "ResultFolderError"}, line
        assert path.name in message
        if path.name.partition(".")[0] not in {"declared", "line", "lists", "run", "rows"}:
            assert (
                "of memory, more than the limit of 4.3 GB; if it is meant to be that large, raise" in message
            )


@pytest.mark.slow
def test_the_largest_images_take_less_than_two_gigabytes(tmp_path):
    for mode in ("I;16", "RGBA"):
        (tmp_path / mode).mkdir()
        Image.new(mode, (9999, 9999)).save(tmp_path / mode / "a.png", compress_level=1)
    peak = (
        "import resource, sys; from ddclust.datasets import load; print(load(sys.argv[1]).data.shape);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    for mode in ("I;16", "RGBA"):
        output = subprocess.check_output([sys.executable, "-c", peak, tmp_path / mode], text=True)
        assert int(output.splitlines()[-1]) * 1024 < 2 * GB, mode


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"1,2\n3,4\n" * 100),
        ("a.csv.gz", gzip.compress(b"1,2\n3,4\n" * 100)),
        ("a.txt", b"some words\n" * 100),
        ("a.jsonl", b'{"text": "some words"}\n' * 100),
        ("a.npz", None),
        ("a.parquet", None),
    ],
    ids=["csv", "csv.gz", "txt", "jsonl", "npz", "parquet"],
)
def test_the_limit_can_be_lowered_and_raised(tmp_path, name, content):
    file = tmp_path / name
    if name == "a.npz":
        np.savez_compressed(file, X=np.zeros((100, 10)))
    elif name == "a.parquet":
        parquet.write_table(pa.table({"a": np.zeros(500)}), file)
    else:
        file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load(file, max_bytes=1000)
    message = str(caught.value)
    assert message.startswith(f"{str(file)!r} takes at least ")
    assert message.endswith(
        "more than the limit of 1,000 bytes; if it is meant to be that large, raise the limit (max_bytes)."
    )
    load(file, max_bytes=1e6)


def test_different_words_count_by_what_they_take(tmp_path):
    """Each takes a hundred times the few characters that it has in the file."""
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"x{i},y{i}\n" for i in range(15_000)))
    assert load(tmp_path / "a.csv", max_bytes=2e7).data.shape == (15_000, 2)
    with pytest.raises(
        DataError, match="a.csv' takes at least 5.* MB of memory, more than the limit of 4.0 MB"
    ):
        load(tmp_path / "a.csv", max_bytes=4e6)


def test_images_beyond_the_limit_are_left_out(tmp_path):
    for i in range(9):
        Image.new("L", (8, 8)).save(tmp_path / f"{i}.png")
    Image.new("L", (200, 200)).save(tmp_path / "large.png")
    bunch = load(tmp_path, max_bytes=10**6)
    assert bunch.skipped == {"large.png": "200 x 200 pixels are more than 25,000; raise max_bytes"}
    assert load(tmp_path).skipped == {}


def test_labels_have_the_limit_too(tmp_path):
    (tmp_path / "a.csv").write_text("item,cluster\n" + "a,1\n" * 100)
    with pytest.raises(DataError, match="more than the limit of 100 bytes"):
        read_labels(tmp_path / "a.csv", max_bytes=100)


def test_a_memory_map_has_no_limit(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 10)))
    assert load(tmp_path / "a.npy", max_bytes=10).data.shape == (100, 10)


def test_the_default_limit():
    assert GB // 4 <= MAX_BYTES <= 4 * GB


@pytest.mark.parametrize(
    "command", ["fit", "resume", "predict", "explain", "report", "evaluate", "scan", "compare"]
)
def test_every_command_that_reads_data_has_the_option(command):
    assert "--max-bytes" in {flag for option in main.commands[command].params for flag in option.opts}


def test_the_option_of_a_fit_is_kept_and_can_be_replaced(tmp_path, blobs):
    np.savetxt(tmp_path / "a.csv", blobs[0], delimiter=",")
    arguments = ("fit", tmp_path / "a.csv", "-k", 3, "--runs", 1, "--max-iter", 5, "--jobs", 1, "--no-report")
    refused = run(*arguments, "--out", tmp_path / "run", "--max-bytes", 100)
    assert refused.exit_code == 2
    assert "more than the limit of 100 bytes" in refused.output
    assert refused.output.endswith("raise the limit (--max-bytes).\n")
    assert run(*arguments, "--out", tmp_path / "run", "--max-bytes", 1e6).exit_code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["options"]["max_bytes"] == 1e6
    shown = run("report", tmp_path / "run", "--max-bytes", 100)
    assert shown.exit_code == 2
    assert "more than the limit of 100 bytes" in shown.output
    assert run("report", tmp_path / "run").exit_code == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[: len(packed) // 2],
        lambda packed: packed[:5],
        lambda packed: packed[:-8] + bytes(8),
        lambda packed: packed + b"garbage",
        lambda packed: packed[:12] + bytes([packed[12] ^ 255]) + packed[13:],
        lambda packed: b"no gzip at all",
        lambda packed: packed[:3] + b"\xff" + packed[4:],
    ],
    ids=["half", "header", "checksum", "trailing", "flipped", "plain", "flags"],
)
@pytest.mark.parametrize("name", ["a.csv.gz", "a.txt.gz", "a.jsonl.gz"])
def test_damaged_gzip_is_one_sentence(tmp_path, name, damage):
    content = {"a.csv.gz": b"1,2\n3,4\n", "a.txt.gz": b"some text\n", "a.jsonl.gz": b'{"text": "a"}\n'}[name]
    (tmp_path / name).write_bytes(damage(gzip.compress(content * 100)))
    with pytest.raises(
        DataError, match=f"{name}' is damaged or truncated, or is not compressed by gzip .*; get it"
    ):
        load(tmp_path / name)


def test_many_long_columns(tmp_path):
    """15,000 genes: a header of more than 131,072 characters."""
    genes = [f"ENSG{i:011d}" for i in range(15_000)]
    rows = [",".join(["0.5"] * len(genes))] * 3
    (tmp_path / "genes.csv").write_text("\n".join([",".join(genes), *rows]))
    bunch = load(tmp_path / "genes.csv")
    assert bunch.data.shape == (3, 15_000)
    assert bunch.feature_names == genes


def test_archives_of_something_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(DataError, match=r"a\.npz' cannot be read as an \.npz file of numbers"):
        load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", X=np.array([{}, []], dtype=object))
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        load(tmp_path / "b.npz")
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        read_labels(tmp_path / "b.npz")


@pytest.mark.parametrize(
    "head",
    [b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2", b"(" * 200, b"'''", b"{'descr': 'O'}", b"\xff" * 20],
)  # fmt: skip
def test_damaged_headers_of_npy(tmp_path, head):
    head = head.ljust(118) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(48))
    with pytest.raises(
        DataError, match=r"a\.npy' cannot be read as a \.npy file of numbers .*; write it again"
    ):
        load(tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_labels_of_bytes(tmp_path, suffix):
    labels = np.array([b"cat", b"dog", b"caf\xc3\xa9"])
    file = tmp_path / f"a.{suffix}"
    np.save(file, labels) if suffix == "npy" else np.savez(file, y=labels)
    assert read_labels(file).labels.tolist() == ["cat", "dog", "café"]
    (tmp_path / "truth.csv").write_text("class\ncat\ndog\ncafé\n")
    shown = run("evaluate", file, tmp_path / "truth.csv")
    assert shown.exit_code == 0, shown.output
    assert shown.output.split()[-2:] == ["1.000", "1.000"]


def test_labels_of_other_types_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([1j, 2]))
    with pytest.raises(DataError, match="are of type complex128, not numbers or names"):
        read_labels(tmp_path / "a.npy")
