"""What commands do with their arguments: read data, open models, name folders."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddclust.cli.options import MAX_BYTES, data_parameters, model_parameters
from ddclust.cli.printing import print_notes, warnings_as_lines

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from ddclust.ddc import DDC


def load_data(data: str, options: Mapping[str, Any], *, quiet: bool = False) -> Bunch:
    """The data of a command, with notes on what the reader decided."""
    from ddclust.datasets import load
    from ddclust.encoders.choice import photo_side

    side = photo_side(model_parameters({"encoder": options.get("encoder")}).get("encoder"))
    with warnings_as_lines():
        bunch = load(data, **data_parameters(options), photo_side=side, verbose=not quiet)
    print_notes(bunch, quiet=quiet)
    return bunch


def load_model_and_data(
    folder: Path, data: str | Sequence[str], options: Mapping[str, Any], device: str, *, quiet: bool
) -> tuple[DDC, Bunch]:
    """The model in a result or model folder, and data in the form that it expects; several are files or texts."""
    from ddclust.reading import is_table, load_for
    from ddclust.results import RUN_FILE, open_model, read_run

    model = open_model(folder, device=device)
    if quiet:
        model.set_params(verbose=False)
    parameters = data_parameters(options)
    data = data[0] if not isinstance(data, str) and len(data) == 1 else data
    if model.is_of_texts and isinstance(data, str) and is_table(data) and (folder / RUN_FILE).exists():
        parameters = data_parameters({"text": read_run(folder)["options"].get("text")}) | parameters
    with warnings_as_lines():
        bunch = load_for(model, data, **parameters, verbose=not quiet)
    print_notes(bunch, quiet=quiet)
    return model, bunch


def with_max_bytes(stored: Mapping[str, Any], max_bytes: float | None) -> dict[str, Any]:
    """The options of a fit, with the limit of this command if it has one."""
    return dict(stored) if max_bytes is None else {**stored, MAX_BYTES.name: max_bytes}


def folder_for(data: str, ending: str) -> Path:
    """The default folder for what a command finds in DATA."""
    return Path(f"{Path(data).name.partition('.')[0] or 'data'}-{ending}")


def unused(path: Path) -> Path:
    """The path, or the first of path-2, path-3, ... that does not exist."""
    numbered = (path.with_name(f"{path.name}-{i}") for i in itertools.count(2))
    return next(candidate for candidate in itertools.chain([path], numbered) if not candidate.exists())


def refuse_existing(path: Path | None, remedy: str = "") -> None:
    """Raise an error rather than overwrite a file or folder that the user names."""
    if path is not None and path.exists():
        raise FileExistsError(f"{str(path)!r} exists already; choose another name{remedy}.")
