"""Memory and throughput of data that do not fit in memory, of sparse data, and of folders of images."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

from ddclust import DDC
from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.readers import images as _images
from ddclust.datasets import load
from lab.benchmarks.measure import PEAK, ratio, summary

PIXELS = (32, 32, 3)
# A network so small that reading the data is most of the work.
TINY = """
import numpy as np, torch, warnings
from torch import nn
from ddclust import DDC
warnings.simplefilter("ignore")
class Tiny(nn.Module):
    def __init__(self, input_shape, n_clusters):
        super().__init__()
        self.hidden = nn.Linear(input_shape[0], 8)
        self.output = nn.Linear(8, n_clusters)
    def forward(self, x):
        hidden = self.hidden(x[:, :, ::4, ::4].mean(dim=(2, 3)))
        return hidden, self.output(hidden)
"""
MAPPED = f"""{PEAK}{TINY}
X = np.load(PATH, mmap_mode="r")
DDC(10, augment=None, network=Tiny, n_init=1, max_iter=200, random_state=0).fit(X)
print(peak())
"""
SPARSE = f"""{PEAK}
import numpy as np, scipy.sparse, warnings
warnings.simplefilter("ignore")
from ddclust import DDC
n, d, words = 200_000, 2000, 60
rng = np.random.default_rng(0)
indices = rng.integers(0, d, size=n * words, dtype=np.int32)
X = scipy.sparse.csr_matrix((rng.random(n * words, dtype=np.float32), indices, np.arange(0, n * words + 1, words)), shape=(n, d))
X.sum_duplicates()
DDC(4, augment=None, n_init=1, max_iter=10, random_state=0).fit(X[:1000])  # what torch and the network need
before = peak()
DDC(4, augment=None, n_init=1, max_iter=300, random_state=0).fit(X)
print(peak() - before)
"""


def peak_of(script: str) -> float:
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    return round(float(output.split()[-1]), 1)


def memory_of_a_memory_map(folder: Path) -> list[dict]:
    """Peak resident memory of fit on float32 images in a file, and in one of twice the size."""
    rows: list[dict] = []
    path = folder / "images.npy"
    part = np.random.default_rng(0).random((2000, *PIXELS), dtype=np.float32)
    for gigabytes in (4, 8):
        n = 2000 * (gigabytes * 2**30 // part.nbytes + 1)
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, *PIXELS)}
        with path.open(
            "r+b" if path.exists() else "w+b"
        ) as file:  # the larger file begins with the smaller one
            np.lib.format.write_array_header_1_0(file, header)
            written = max(path.stat().st_size - file.tell(), 0) // part.nbytes
            file.seek(0, 2)
            for _ in range(n // 2000 - written):
                file.write(part.data)
        start = time.perf_counter()
        peak = peak_of(MAPPED.replace("PATH", repr(str(path))))
        rows.append(
            {
                "what": f"peak resident memory of fit (MB), memory map of {gigabytes} GB float32, {n:,} images",
                "target": "flat when the file doubles",
                "median": peak,
                "seconds": round(time.perf_counter() - start),
            }
        )
    path.unlink()
    rows.append(
        {
            "what": "peak memory at 8 GB / at 4 GB",
            "target": "about 1",
            "median": round(rows[1]["median"] / rows[0]["median"], 3),
        }
    )
    return rows


def memory_of_sparse_data() -> dict:
    return {
        "what": "peak memory of fit beyond the data (MB), CSR 200,000 x 2,000 with 60 words each (1,526 MB as dense"
        " float32)",
        "target": "far below dense",
        "median": peak_of(SPARSE),
    }


def throughput(folder: Path) -> list[dict]:
    """Memory map against memory, in turns: whole fits of the conv network, and the bare batches."""
    X = np.random.default_rng(0).integers(0, 255, size=(20_000, 28, 28), dtype=np.uint8)
    np.save(folder / "mnist.npy", X)
    mapped = np.load(folder / "mnist.npy", mmap_mode="r")

    def fit(data):
        DDC(10, augment=None, n_init=1, max_iter=200, random_state=0).fit(data)

    def batches(data):
        source = BatchSource(data, Scaling.of(data))
        for indices in np.array_split(source.order(np.random.default_rng(0)), 200):
            source.batch(indices)

    return [
        {
            "what": "throughput from a memory map / from memory, fit of 200 steps with judging, 20,000 28x28 images",
            "target": ">= 0.85",
            **ratio(lambda: fit(X), lambda: fit(mapped), 5),
        },
        {
            "what": "the same for the bare batches of an epoch, without any network",
            "target": "(to know)",
            **ratio(lambda: batches(X), lambda: batches(mapped), 9),
        },
    ]


def folder_of_images(folder: Path, n: int = 20_000) -> list[dict]:
    """20,000 small JPEG files: all cores against one process, in turns, and how busy the cores are."""
    pixels = np.random.default_rng(0).integers(0, 255, size=(64, 12, 12, 3), dtype=np.uint8)
    images = folder / "images"
    images.mkdir()
    for i in range(n):
        Image.fromarray(pixels[i % 64]).resize((96, 96)).save(images / f"{i:05}.jpg")
    busy, ratios = [], []
    load(images)
    for _ in range(3):
        start, cpu = time.perf_counter(), _cpu_of_all()
        load(images)
        together = time.perf_counter() - start
        busy.append((_cpu_of_all() - cpu) / together)
        start = time.perf_counter()
        with mock.patch.object(_images, "Parallel", return_value=_one_by_one):
            load(images)
        ratios.append((time.perf_counter() - start) / together)
    return [
        {
            "what": f"{n:,} JPEG files of 96x96 pixels: time of one process / of all cores",
            "target": "> 1.5 on two cores",
            **summary(ratios),
        },
        {
            "what": "cores busy meanwhile (of 2), by the processor time of this process and its workers",
            "target": "about 2",
            **summary(busy),
        },
    ]


def _one_by_one(tasks):
    return (function(*arguments) for function, arguments, _ in tasks)


def _cpu_of_all() -> float:
    """Processor seconds of this process and of the workers, which live on between calls."""
    import psutil

    this = psutil.Process()
    return sum(sum(p.cpu_times()[:2]) for p in (this, *this.children(recursive=True)))


def figures() -> list[dict]:
    """What the benchmark measures."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        rows = folder_of_images(Path(name))
        print(json.dumps(rows, indent=1), flush=True)
        rows += throughput(Path(name))
        rows.append(memory_of_sparse_data())
        rows += memory_of_a_memory_map(Path(name))
    return rows
