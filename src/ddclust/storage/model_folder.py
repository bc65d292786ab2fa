"""A saved model: a folder of JSON and safetensors. Reading it checks everything and runs nothing."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ddclust.storage.atomic import write_file, write_json

FORMAT = "ddclust-model"
FORMAT_VERSION = 2
DESCRIPTION_FILE = "model.json"
TENSORS_FILE = "tensors.safetensors"
RESULT_MODEL = "model"  # where the result folder of a fit has its model


class ModelFormatError(ValueError):
    """A saved model that cannot be read."""


@contextmanager
def new_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into, which appears under ``path`` only when the block ends without an error.

    With ``overwrite`` it takes the place of a saved model, but of nothing else.
    """
    target = Path(path)
    replaced = target.is_dir() and ((target / DESCRIPTION_FILE).is_file() or not any(target.iterdir()))
    if target.exists() and not (overwrite and replaced):
        remedy = (
            "it holds no model, so it is not overwritten"
            if overwrite
            else "choose another name or overwrite it"
        )
        raise FileExistsError(f"{str(target)!r} exists already; {remedy}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    staging.mkdir()
    old = staging.with_suffix(".old")
    try:
        yield staging
        if target.exists():
            target.rename(old)
        try:
            staging.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def save_model(
    path: str | os.PathLike[str],
    description: dict[str, Any],
    tensors: dict[str, Tensor],
    *,
    overwrite: bool = False,
) -> None:
    """Write a model folder; it appears complete or not at all."""
    with new_folder(path, overwrite=overwrite) as folder:
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_file(folder / TENSORS_FILE, save(tensors))
        header = {"format": FORMAT, "format_version": FORMAT_VERSION}
        write_json(folder / DESCRIPTION_FILE, {**header, **description})


def load_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and tensors of a model folder; a ModelFormatError says what is wrong with it."""
    folder = Path(path)
    if (folder / RESULT_MODEL / DESCRIPTION_FILE).is_file() and not (folder / DESCRIPTION_FILE).exists():
        folder = folder / RESULT_MODEL
    if not folder.is_dir():
        raise ModelFormatError(f"There is no model folder at {str(folder)!r}.")
    for name in (DESCRIPTION_FILE, TENSORS_FILE):
        if not (folder / name).is_file():
            raise ModelFormatError(f"{str(folder)!r} is not a complete model: {name} is missing.")
    file = folder / DESCRIPTION_FILE
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{str(file)!r} is not readable JSON; it may be truncated.") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelFormatError(f"{str(file)!r} does not describe a ddclust model.")
    version = description.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFormatError(f"{str(file)!r} has no valid format version.")
    if version > FORMAT_VERSION:
        raise ModelFormatError(
            f"{str(folder)!r} was saved by a newer ddclust (format {version}, this one reads up to"
            f" {FORMAT_VERSION}); upgrade ddclust to load it."
        )
    file = folder / TENSORS_FILE
    try:
        tensors = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFormatError(
            f"{str(file)!r} is not a readable safetensors file; it may be truncated."
        ) from error
    return description, tensors


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
        if not torch.isfinite(found[name]).all():
            raise ModelFormatError(f"T{where[1:]} holds values that are not finite.")
