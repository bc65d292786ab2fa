"""A folder of image files of any size as one uint8 array, read by all cores."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from PIL import Image, ImageOps
from sklearn.utils import Bunch
from tqdm import tqdm

from ddclust.datasets._bunch import DataError, Reading, make_bunch, refuse_too_many_unreadable
from ddclust.datasets._folders import files_of, truth_by_subfolder

# Pillow is told what to expect: some of its other formats start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
IMAGE_SUFFIXES = {
    *(".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
}
MOST_PIXELS = 100_000_000  # of one file; more is taken for a decompression bomb
DEFAULT_SIDE = 32
LARGEST_OWN_SIDE = 64  # up to here images that are all of one size keep it
LOOKED_AT = 100  # files that decide on size and colour
TASK_FILES = 200
IN_MEMORY_BYTES = 2 * 2**30  # beyond that the array is a file


def read_image_folder(folder: Path, reading: Reading) -> Bunch:
    """Every image below a folder; sub-folders are the truth if every image is in one."""
    paths = files_of(folder, IMAGE_SUFFIXES)
    height, width, grey = _size_and_colour(paths, reading)
    shape = (height, width) if grey else (height, width, 3)
    images = _storage((len(paths), *shape))
    tasks = [paths[i : i + TASK_FILES] for i in range(0, len(paths), TASK_FILES)]
    n_jobs = -1 if len(tasks) > 2 else 1
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_read_all)(task, shape) for task in tasks
    )
    names: list[str] = []
    skipped: dict[str, str] = {}
    with tqdm(total=len(paths), unit="image", desc="reading", delay=2, disable=not reading.verbose) as bar:
        for task, (read, reasons) in zip(tasks, results, strict=True):
            images[len(names) : len(names) + len(read)] = read
            for number, path in enumerate(task):
                name = path.relative_to(folder).as_posix()
                if number in reasons:
                    skipped[name] = reasons[number]
                else:
                    names.append(name)
            bar.update(len(task))
    refuse_too_many_unreadable(skipped, len(paths), "images", str(folder))
    target, target_names = truth_by_subfolder(names)
    return make_bunch(
        images[: len(names)],
        target=target,
        target_names=target_names,
        item_names=names,
        name=folder.resolve().name,
        about=f"Images from the folder {folder.resolve().name}, {'grey' if grey else 'RGB'}, {height}x{width} pixels.",
        skipped=skipped,
    )


def read_image(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An image upright, cropped about its centre to the form asked for, and resized; (h, w) is grey, (h, w, 3) RGB."""
    height, width = shape[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the limit on pixels is ours, damaged metadata does not matter
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are too many")
            image.draft(
                "RGB" if len(shape) == 3 else "L", (2 * width, 2 * height)
            )  # a quick look at large JPEGs
            upright = ImageOps.exif_transpose(image)
            plain = _plain(upright, "RGB" if len(shape) == 3 else "L")
            return np.asarray(ImageOps.fit(plain, (width, height), Image.Resampling.LANCZOS))


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """Eight bits for each of the mode's channels; what is transparent is white."""
    if image.mode.startswith(("I", "F")):  # 16 bits and more: by their range, a conversion would clip them
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode.startswith("I;16") else max(float(values.max()), 1.0)
        image = Image.fromarray((np.clip(values / top, 0, 1) * 255).astype(np.uint8))
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours)
    return image.convert(mode)


def _read_all(paths: list[Path], shape: tuple[int, ...]) -> tuple[NDArray[np.uint8], dict[int, str]]:
    """The readable images in one array, and why the others are not, by their number."""
    images = np.empty((len(paths), *shape), dtype=np.uint8)
    reasons: dict[int, str] = {}
    for number, path in enumerate(paths):
        try:
            images[number - len(reasons)] = read_image(path, shape)
        except Exception as error:  # decoders fail in many ways
            reasons[number] = _reason(error)
    return images[: len(paths) - len(reasons)], reasons


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return "not an image"
    if isinstance(error, Image.DecompressionBombError):
        return "too many pixels"
    return str(error).splitlines()[0][:100] if str(error) else type(error).__name__


def _size_and_colour(paths: list[Path], reading: Reading) -> tuple[int, int, bool]:
    """Height, width, and whether grey: as asked for, else by the first images."""
    size = reading.image_size
    if reading.colour not in ("auto", "grey", "rgb"):
        raise DataError(f"colour={reading.colour!r} must be 'auto', 'grey' or 'rgb'.")
    sides = (size, size) if isinstance(size, int) else size
    if sides is not None and min(sides) < 1:
        raise DataError(f"image_size={size} must be at least 1 pixel.")
    seen, modes = set(), set()
    if sides is None or reading.colour == "auto":
        for path in paths[:: max(len(paths) // LOOKED_AT, 1)]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with Image.open(path, formats=FORMATS) as image:
                        seen.add((image.height, image.width))
                        modes.add(image.mode)
            except Exception:
                continue
    if sides is None:
        own = seen.pop() if len(seen) == 1 else None
        sides = own if own is not None and max(own) <= LARGEST_OWN_SIDE else (DEFAULT_SIDE, DEFAULT_SIDE)
    grey = reading.colour == "grey"
    if reading.colour == "auto":
        grey = bool(modes) and all(mode in ("1", "L", "F") or mode.startswith("I") for mode in modes)
    return *sides, grey


def _storage(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Room for the images: in memory, or in a file that goes when it is no longer needed."""
    if np.prod(shape, dtype=np.int64) <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=np.uint8)
    handle, name = tempfile.mkstemp(prefix="ddclust-images-", suffix=".raw")
    os.close(handle)
    images = np.memmap(name, dtype=np.uint8, mode="w+", shape=shape)
    weakref.finalize(images, os.unlink, name)
    return images
