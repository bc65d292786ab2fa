"""All formats, and which one a file or folder has."""

from __future__ import annotations

from pathlib import Path

from sklearn.utils import Bunch

from ddclust.data.readers.arrays import NPY, NPZ
from ddclust.data.readers.bunch import DataError
from ddclust.data.readers.delimited import DELIMITED
from ddclust.data.readers.folders import files_of
from ddclust.data.readers.formats import Format, ReadOptions
from ddclust.data.readers.images import IMAGE_FOLDER, is_image_file
from ddclust.data.readers.json_lines import JSON_LINES
from ddclust.data.readers.parquet import PARQUET
from ddclust.data.readers.texts import TEXT_FOLDER, TXT

# One line per format: its reader declares the rest.
FORMATS: tuple[Format, ...] = (
    NPY,
    NPZ,
    DELIMITED,
    PARQUET,
    TXT,
    JSON_LINES,
)
BY_SUFFIX = {suffix: form for form in FORMATS for suffix in form.suffixes}
# A folder with fewer images per text than this is a folder of texts.
FEWEST_IMAGES_PER_TEXT = 0.1


def read_path(path: Path, options: ReadOptions) -> Bunch:
    """Data from a file or a folder; options that do not apply to it are refused."""
    form = _folder_format(path) if path.is_dir() else _file_format(path)
    options.refuse_all_but(form.options, f"{str(path)!r}")
    return form.read(path, options)


def _file_format(path: Path) -> Format:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        form = BY_SUFFIX.get(Path(path.stem).suffix.lower())
        form = form if form is not None and form.may_be_gzipped else None
    else:
        form = BY_SUFFIX.get(suffix)
    if is_image_file(path):
        raise DataError(f"{str(path)!r} is a single image; give a folder of them.")
    if form is None:
        raise DataError(
            f"{str(path)!r} is not a data file; it must end in {', '.join(BY_SUFFIX)}, or be a folder of images or"
            " .txt files."
        )
    return form


def _folder_format(folder: Path) -> Format:
    """Images if there are any, since texts often accompany them; a few images among many texts do not count."""
    n_images, n_texts = (len(files_of(folder, form.suffixes)) for form in (IMAGE_FOLDER, TEXT_FOLDER))
    if not n_images and not n_texts:
        suffixes = ", ".join(sorted(IMAGE_FOLDER.suffixes + TEXT_FOLDER.suffixes))
        raise DataError(f"The folder {str(folder)!r} holds no images or texts ({suffixes}).")
    return IMAGE_FOLDER if n_images > FEWEST_IMAGES_PER_TEXT * n_texts else TEXT_FOLDER
