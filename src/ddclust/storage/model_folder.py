"""A saved model: a folder of JSON and safetensors. Reading it checks everything and runs nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ddclust.storage.atomic import held_folder, new_folder_beside, sync_folder, write_file
from ddclust.storage.json_files import PLAIN, SEAL, checked, read_json, write_sealed
from ddclust.storage.limits import read_bytes

FORMAT = "ddclust-model"
FORMAT_VERSION = 2
DESCRIPTION_FILE = "model.json"
CARD_FILE = "README.md"  # for people; it is never read
FIRST_TENSORS_FILE = "tensors.safetensors"  # its name in format 1
TENSORS_PATTERN = "tensors*.safetensors"
REMEDY = "save the model again, or copy the folder again from where it came"
RESULT_MODEL = "model"  # where the result folder of a fit has its model


class ModelFormatError(ValueError):
    """A saved model that cannot be read."""


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write into, which appears under ``path`` only when the block ends without an error."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{str(target)!r} exists already; choose another name or remove it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder_beside(target) as staging:
        yield staging
        staging.rename(target)
        sync_folder(target.parent)


def save_model(
    path: str | os.PathLike[str],
    description: dict[str, Any],
    tensors: dict[str, Tensor],
    *,
    card: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model folder. At every moment it holds the old model, the new one, or none if there was none.

    ``card`` says to people what the model is.
    """
    target = Path(path)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        with new_folder(target) as folder:
            _write_model(folder, description, tensors, card)
    elif not overwrite:
        raise FileExistsError(f"{str(target)!r} exists already; choose another name or set overwrite=True.")
    elif not (target / DESCRIPTION_FILE).is_file():
        raise FileExistsError(
            f"{str(target)!r} holds no model, so it is not overwritten; choose another name."
        )
    else:
        with held_folder(target):
            _write_model(target, description, tensors, card)
            named = _read_description(target)["tensors"]["file"]
            for file in (*target.glob(TENSORS_PATTERN), *target.glob(f".{TENSORS_PATTERN}.*.partial")):
                if file.name != named:
                    file.unlink(missing_ok=True)


def _write_model(
    folder: Path, description: dict[str, Any], tensors: dict[str, Tensor], card: str | None
) -> None:
    """Write the tensors to a file of a new name, then the description that names it, which is what counts."""
    content = save({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    file = f"tensors-{digest[:12]}.safetensors"
    write_file(folder / file, content)
    if card is not None:
        write_file(folder / CARD_FILE, card.encode("utf-8", "replace"))
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tensors": {"file": file, "sha256": digest},
        **description,
    }
    write_sealed(folder / DESCRIPTION_FILE, described)


def load_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and tensors of a model folder; a ModelFormatError says what is wrong with it."""
    folder = Path(path)
    if (folder / RESULT_MODEL / DESCRIPTION_FILE).is_file() and not (folder / DESCRIPTION_FILE).exists():
        folder = folder / RESULT_MODEL
    if not folder.is_dir():
        raise ModelFormatError(
            f"There is no folder {str(folder)!r}; give the folder of a saved model or of a fit."
        )
    description = _read_description(folder)
    named = description.get("tensors", {"file": FIRST_TENSORS_FILE})  # format 1 has no digests
    if not isinstance(named, dict) or Path(str(named.get("file"))).name != named.get("file"):
        raise ModelFormatError(f"{str(folder / DESCRIPTION_FILE)!r} does not name the file of its tensors.")
    file = folder / named["file"]
    if not file.is_file():
        raise ModelFormatError(f"{str(folder)!r} is not a complete model: {file.name} is missing.")
    content = read_bytes(file, ModelFormatError)
    if "sha256" in named and hashlib.sha256(content).hexdigest() != named["sha256"]:
        raise ModelFormatError(
            f"{str(file)!r} is damaged or truncated: its content differs from what was saved."
        )
    try:
        return description, load(content)
    except (SafetensorError, ValueError) as error:
        raise ModelFormatError(
            f"{str(file)!r} is not a readable safetensors file; it may be truncated."
        ) from error


def _read_description(folder: Path) -> dict[str, Any]:
    """The description of the model in a folder, checked."""
    file = folder / DESCRIPTION_FILE
    if not file.is_file():
        raise ModelFormatError(f"{str(folder)!r} is not a complete model: {file.name} is missing.")
    description = read_json(file, PLAIN, remedy=REMEDY, error=ModelFormatError)
    if description.get("format") != FORMAT:
        raise ModelFormatError(f"{str(file)!r} does not describe a ddclust model.")
    version = description.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFormatError(f"{str(file)!r} has no valid format version.")
    if version > FORMAT_VERSION:
        raise ModelFormatError(
            f"{str(folder)!r} was saved by a newer ddclust (format {version}, this one reads up to"
            f" {FORMAT_VERSION}); upgrade ddclust to load it."
        )
    checked(description, dict[str, Any], what=repr(str(file)), remedy=REMEDY, error=ModelFormatError)
    if description.pop(SEAL, None) is None and version > 1:
        raise ModelFormatError(f"{str(file)!r} is damaged: it lacks the digest of its content; {REMEDY}.")
    return description


def check_tensors(
    folder: str | os.PathLike[str],
    found: dict[str, Tensor],
    expected: dict[str, tuple[torch.Size, torch.dtype]],
) -> None:
    """Compare names, shapes and types of tensors, and that they are finite, before any of them is used."""
    for name in sorted(expected.keys() | found.keys()):
        where = f"the tensor {name!r} of the model in {str(folder)!r}"
        if name not in found:
            raise ModelFormatError(f"The model in {str(folder)!r} lacks the tensor {name!r}.")
        if name not in expected:
            raise ModelFormatError(f"T{where[1:]} does not belong there.")
        shape, dtype = expected[name]
        if found[name].shape != shape or found[name].dtype != dtype:
            raise ModelFormatError(
                f"T{where[1:]} has shape {tuple(found[name].shape)} and type {found[name].dtype}, expected"
                f" {tuple(shape)} and {dtype}."
            )
        # A sum is finite only if all values are, and takes a tenth of the time; it may also overflow.
        if not (torch.isfinite(found[name].sum()) or torch.isfinite(found[name]).all()):
            raise ModelFormatError(f"T{where[1:]} holds values that are not finite.")
