"""Data files for the command line."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def vectors(blobs, tmp_path):
    """A .csv with a header, an .npz with the truth, and the arrays."""
    X, y = blobs
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    np.savetxt(tmp_path / "blobs.csv", X, delimiter=",", header="mass,age", comments="")
    return tmp_path, X, y


@pytest.fixture
def photos(tmp_path):
    """A folder of images in two classes, one of which is brighter, and one file that is no image."""
    rng = np.random.default_rng(0)
    for i in range(12):
        folder = tmp_path / "photos" / ("bright" if i % 2 else "dark")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, size=(10 + i, 12, 3)) + 150 * (i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    (tmp_path / "photos" / "dark" / "<b>.png").write_text("no image")
    return tmp_path / "photos"
