"""A folder of image files of any size as one uint8 array, read on all cores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ddclust.data.batches import input_shape
from ddclust.data.readers.bunch import DataError, make_bunch, refuse_too_many_unreadable
from ddclust.data.readers.folders import classes_note, files_of, left_out_files, truth_by_subfolder
from ddclust.data.readers.formats import Format, ReadOptions
from ddclust.progress import Bar
from ddclust.storage.limits import MAX_BYTES
from ddclust.storage.scratch import IN_MEMORY_BYTES, scratch_array
from ddclust.workers import in_workers

if TYPE_CHECKING:
    from PIL import Image

# Pillow may open these only: some of its other formats start programs.
PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
PIXEL_BYTES = 40  # what a pixel takes while it is read, in several copies and on several cores
DEFAULT_SIDE = 32
LARGEST_OWN_SIDE = 64  # up to this side, images that all have one size keep it
SAMPLED_FILES = 100  # they decide the size, and make the first guess at the colour
TASK_FILES = 200
IN_8_BITS = (np.arange(65536) / 65535 * 255).astype(np.uint8)


def read_image_folder(folder: Path, options: ReadOptions) -> Bunch:
    """Every image below a folder; sub-folders are the classes if every image is in one."""
    paths = files_of(folder, IMAGE_SUFFIXES)
    height, width, grey = _size_and_colour(paths, options)
    shape = (height, width) if grey else (height, width, 3)
    images = _storage((len(paths), *shape))
    tasks = [paths[i : i + TASK_FILES] for i in range(0, len(paths), TASK_FILES)]
    n_jobs = -1 if len(tasks) > 2 else 1
    most_pixels = int(options.budget(folder).max_bytes // PIXEL_BYTES)
    results = in_workers(
        (delayed(_read_all)(task, shape, most_pixels) for task in tasks),
        n_jobs=n_jobs,
        return_as="generator",
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
        return read_image_folder(folder, replace(options, colour="rgb"))
    refuse_too_many_unreadable(skipped, len(paths), "images", str(folder))
    target, target_names = truth_by_subfolder(names)
    return make_bunch(
        images[: len(names)],
        target=target,
        target_names=target_names,
        item_names=names,
        name=folder.resolve().name,
        about=f"Images from the folder {folder.resolve().name}, {'grey' if grey else 'RGB'}, {height}x{width} pixels.",
        notes=[*left_out_files(folder, IMAGE_SUFFIXES), *classes_note(target_names)],
        skipped=skipped,
    )


IMAGE_FOLDER = Format(IMAGE_SUFFIXES, read_image_folder, {"image_size", "colour"})


def read_image(
    path: Path, shape: tuple[int, ...], most_pixels: int = MAX_BYTES // PIXEL_BYTES
) -> tuple[NDArray[np.uint8], bool]:
    """An image, turned upright, cropped around its centre and resized; shape (h, w) is grey, (h, w, 3) is RGB.

    A file with several pages or frames gives the first. Also returns whether the file has colours.
    """
    from PIL import Image, ImageOps

    height, width = shape[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # we limit the pixels ourselves, and damaged metadata does not matter
        with Image.open(path, formats=PILLOW_FORMATS) as image:
            if image.width * image.height > most_pixels:
                raise ValueError(
                    f"{image.width} x {image.height} pixels are more than {most_pixels:,}; raise max_bytes"
                )
            has_colour = not _is_grey(image.mode)
            mode = "RGB" if len(shape) == 3 else "L"
            image.draft(mode, (2 * width, 2 * height))  # decodes large JPEGs at a lower resolution
            ImageOps.exif_transpose(image, in_place=True)
            plain = _plain(image, mode)
            return np.asarray(ImageOps.fit(plain, (width, height), Image.Resampling.LANCZOS)), has_colour


def is_image_file(data: Any) -> bool:
    """Whether data is the name of a file with a suffix of images; nothing is opened.

    Examples
    --------
    >>> is_image_file("photo.JPG"), is_image_file("photos.csv"), is_image_file(3)
    (True, False, False)
    """
    return isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in IMAGE_SUFFIXES


def are_image_files(X: Any) -> bool:
    """Whether X is a sequence of names of image files that exist, or of paths."""
    if isinstance(X, (str, bytes)) or getattr(X, "ndim", 1) != 1 or not isinstance(X, (Sequence, np.ndarray)):
        return False
    return len(X) > 0 and all(
        is_image_file(x) and (isinstance(x, os.PathLike) or Path(x).is_file()) for x in X
    )


def read_images(
    paths: Iterable[str | os.PathLike[str]],
    item_shape: tuple[int, ...] | None = None,
    *,
    photo_side: int | None = None,
) -> NDArray[np.uint8]:
    """Image files as an array: of items of a shape, as a fitted model has them, or as a folder of them is read.

    Unlike in a folder, a file that cannot be read is an error.
    """
    files = [Path(path) for path in paths]
    if item_shape is None:
        height, width, grey = _size_and_colour(
            files, ReadOptions(photo_side=photo_side), n_sampled=len(files)
        )
    elif len(item_shape) == 1:
        raise DataError(
            f"{str(files[0])!r} is an image, but the model was fitted on vectors of {item_shape[0]:,} features."
        )
    else:
        channels, height, width = input_shape(item_shape)
        grey = channels == 1
        if channels not in (1, 3):
            raise DataError(
                f"Files of images have 1 or 3 channels, not {channels} as items of shape {item_shape}."
            )
    images = np.empty((len(files), height, width) if grey else (len(files), height, width, 3), dtype=np.uint8)
    for number, path in enumerate(files):
        try:
            images[number], _ = read_image(path, images.shape[1:])
        except FileNotFoundError:
            raise DataError(f"There is no file {str(path)!r}.") from None
        except Exception as error:  # decoders fail in many ways
            raise DataError(f"{str(path)!r} cannot be read as an image: {_reason(error)}.") from error
    return images if item_shape is None else in_layout(images, item_shape)


def in_layout(data: Any, item_shape: tuple[int, ...]) -> Any:
    """Images (n, h, w) or (n, h, w, 3) in the layout of a model's, if they have as many values."""
    if not hasattr(data, "reshape") or len(item_shape) != 3 or tuple(data.shape[1:]) == item_shape:
        return data
    if data.ndim == 4 and (data.shape[3], *data.shape[1:3]) == item_shape:
        return data.transpose(0, 3, 1, 2)
    return data.reshape(-1, *item_shape) if tuple(s for s in item_shape if s > 1) == data.shape[1:] else data


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """The image with eight bits per channel of the mode; transparent parts become white."""
    from PIL import Image

    if image.mode.startswith(("I", "F")):  # a conversion would clip 16 bits to 8
        values = np.asarray(image)
        if image.mode == "F" or not 0 <= values.min() <= values.max() <= 65535:
            raise ValueError("32-bit values have no range to scale by; convert it to 8 or 16 bits")
        image = Image.fromarray(IN_8_BITS[values.astype(np.uint16)])
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours)
    return image.convert(mode)


def _is_grey(mode: str) -> bool:
    return mode in ("1", "L", "LA", "F") or mode.startswith("I")


def _read_all(
    paths: list[Path], shape: tuple[int, ...], most_pixels: int
) -> tuple[NDArray[np.uint8], dict[int, str], bool]:
    """The readable images in one array, the reasons why others are not, by number, and whether any has colours."""
    images = np.empty((len(paths), *shape), dtype=np.uint8)
    reasons: dict[int, str] = {}
    any_colour = False
    for number, path in enumerate(paths):
        try:
            images[number - len(reasons)], has_colour = read_image(path, shape, most_pixels)
            any_colour |= has_colour
        except Exception as error:  # decoders fail in many ways
            reasons[number] = _reason(error)
    return images[: len(paths) - len(reasons)], reasons, any_colour


def _reason(error: Exception) -> str:
    from PIL import Image

    if isinstance(error, Image.UnidentifiedImageError):
        return "not an image"
    if isinstance(error, Image.DecompressionBombError):
        return "too many pixels"
    return str(error).splitlines()[0][:100] if str(error) else type(error).__name__


def _size_and_colour(
    paths: list[Path], options: ReadOptions, n_sampled: int = SAMPLED_FILES
) -> tuple[int, int, bool]:
    """Height, width, and whether grey: as asked for, else judged by a sample of the images."""
    from PIL import Image

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
        for path in paths[:: max(len(paths) // n_sampled, 1)]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with Image.open(path, formats=PILLOW_FORMATS) as image:
                        seen.add((image.height, image.width))
                        modes.add(image.mode)
            except Exception:
                continue
    grey = options.colour == "grey"
    if options.colour == "auto":
        grey = bool(modes) and all(map(_is_grey, modes))
    if sides is None:
        own = seen.pop() if len(seen) == 1 else None
        side = DEFAULT_SIDE if grey or options.photo_side is None else options.photo_side
        sides = own if own is not None and max(own) <= LARGEST_OWN_SIDE else (side, side)
    return *sides, grey


def _storage(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array for the images: in memory, or in a temporary file that is removed with it."""
    return scratch_array(shape, np.uint8, prefix="ddclust-images-", in_memory_bytes=IN_MEMORY_BYTES)
