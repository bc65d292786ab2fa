"""A folder of image files of any size as one uint8 array, read on all cores."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from PIL import Image, ImageOps
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, make_bunch, refuse_too_many_unreadable
from ddclust.data.readers.folders import files_of, left_out_files, truth_by_subfolder
from ddclust.data.readers.formats import Format, ReadOptions
from ddclust.progress import Bar

# Pillow may open these only: some of its other formats start programs.
PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
MOST_PIXELS = 100_000_000  # per file; a larger image is taken for a decompression bomb
DEFAULT_SIDE = 32
LARGEST_OWN_SIDE = 64  # up to this side, images that all have one size keep it
SAMPLED_FILES = 100  # they decide the size, and make the first guess at the colour
TASK_FILES = 200
IN_MEMORY_BYTES = 2 * 2**30  # a larger array is kept in a temporary file


def read_image_folder(folder: Path, options: ReadOptions) -> Bunch:
    """Every image below a folder; sub-folders are the classes if every image is in one."""
    paths = files_of(folder, IMAGE_SUFFIXES)
    height, width, grey = _size_and_colour(paths, options)
    shape = (height, width) if grey else (height, width, 3)
    images = _storage((len(paths), *shape))
    tasks = [paths[i : i + TASK_FILES] for i in range(0, len(paths), TASK_FILES)]
    n_jobs = -1 if len(tasks) > 2 else 1
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_read_all)(task, shape) for task in tasks
    )
    names: list[str] = []
    skipped: dict[str, str] = {}
    any_colour = False
    with Bar(total=len(paths), unit="image", desc="reading", delay=2, disable=not options.verbose) as bar:
        for task, (read, reasons, has_colour) in zip(tasks, results, strict=True):
            any_colour |= has_colour
            images[len(names) : len(names) + len(read)] = read
            for number, path in enumerate(task):
                name = path.relative_to(folder).as_posix()
                if number in reasons:
                    skipped[name] = reasons[number]
                else:
                    names.append(name)
            bar.update(len(task))
    if grey and any_colour and options.colour == "auto":  # the first guess was wrong
        return read_image_folder(folder, replace(options, image_size=(height, width), colour="rgb"))
    refuse_too_many_unreadable(skipped, len(paths), "images", str(folder))
    target, target_names = truth_by_subfolder(names)
    return make_bunch(
        images[: len(names)],
        target=target,
        target_names=target_names,
        item_names=names,
        name=folder.resolve().name,
        about=f"Images from the folder {folder.resolve().name}, {'grey' if grey else 'RGB'}, {height}x{width} pixels.",
        notes=left_out_files(folder, IMAGE_SUFFIXES),
        skipped=skipped,
    )


IMAGE_FOLDER = Format(IMAGE_SUFFIXES, read_image_folder, {"image_size", "colour"})


def read_image(path: Path, shape: tuple[int, ...]) -> tuple[NDArray[np.uint8], bool]:
    """An image, turned upright, cropped around its centre and resized; shape (h, w) is grey, (h, w, 3) is RGB.

    A file with several pages or frames gives the first. Also returns whether the file has colours.
    """
    height, width = shape[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # we limit the pixels ourselves, and damaged metadata does not matter
        with Image.open(path, formats=PILLOW_FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are too many")
            has_colour = not _is_grey(image.mode)
            mode = "RGB" if len(shape) == 3 else "L"
            image.draft(mode, (2 * width, 2 * height))  # decodes large JPEGs at a lower resolution
            plain = _plain(ImageOps.exif_transpose(image), mode)
            return np.asarray(ImageOps.fit(plain, (width, height), Image.Resampling.LANCZOS)), has_colour


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """The image with eight bits per channel of the mode; transparent parts become white."""
    if image.mode.startswith(("I", "F")):  # a conversion would clip 16 bits to 8
        values = np.asarray(image, dtype=np.float64)
        if image.mode == "F" or not 0 <= values.min() <= values.max() <= 65535:
            raise ValueError("32-bit values have no range to scale by; convert it to 8 or 16 bits")
        image = Image.fromarray((values / 65535 * 255).astype(np.uint8))
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours)
    return image.convert(mode)


def _is_grey(mode: str) -> bool:
    return mode in ("1", "L", "LA", "F") or mode.startswith("I")


def _read_all(paths: list[Path], shape: tuple[int, ...]) -> tuple[NDArray[np.uint8], dict[int, str], bool]:
    """The readable images in one array, the reasons why others are not, by number, and whether any has colours."""
    images = np.empty((len(paths), *shape), dtype=np.uint8)
    reasons: dict[int, str] = {}
    any_colour = False
    for number, path in enumerate(paths):
        try:
            images[number - len(reasons)], has_colour = read_image(path, shape)
            any_colour |= has_colour
        except Exception as error:  # decoders fail in many ways
            reasons[number] = _reason(error)
    return images[: len(paths) - len(reasons)], reasons, any_colour


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return "not an image"
    if isinstance(error, Image.DecompressionBombError):
        return "too many pixels"
    return str(error).splitlines()[0][:100] if str(error) else type(error).__name__


def _size_and_colour(paths: list[Path], options: ReadOptions) -> tuple[int, int, bool]:
    """Height, width, and whether grey: as asked for, else judged by a sample of the images."""
    size = options.image_size
    if options.colour not in ("auto", "grey", "rgb"):
        raise DataError(f"colour={options.colour!r} must be 'auto', 'grey' or 'rgb'.")
    sides = (size, size) if isinstance(size, int) else size
    if sides is not None and (
        len(sides) != 2 or not all(isinstance(side, int) and side >= 1 for side in sides)
    ):
        raise DataError(f"image_size={size!r} must be a number of pixels, or a height and a width.")
    seen, modes = set(), set()
    if sides is None or options.colour == "auto":
        for path in paths[:: max(len(paths) // SAMPLED_FILES, 1)]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with Image.open(path, formats=PILLOW_FORMATS) as image:
                        seen.add((image.height, image.width))
                        modes.add(image.mode)
            except Exception:
                continue
    if sides is None:
        own = seen.pop() if len(seen) == 1 else None
        sides = own if own is not None and max(own) <= LARGEST_OWN_SIDE else (DEFAULT_SIDE, DEFAULT_SIDE)
    grey = options.colour == "grey"
    if options.colour == "auto":
        grey = bool(modes) and all(map(_is_grey, modes))
    return *sides, grey


def _storage(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array for the images: in memory, or in a temporary file that is removed with it."""
    if np.prod(shape, dtype=np.int64) <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=np.uint8)
    handle, name = tempfile.mkstemp(prefix="ddclust-images-", suffix=".raw")
    os.close(handle)
    images = np.memmap(name, dtype=np.uint8, mode="w+", shape=shape)
    weakref.finalize(images, os.unlink, name)
    return images
