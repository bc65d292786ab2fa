"""``ddclust explain``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddclust.cli.inputs import load_model_and_data, refuse_existing, unused
from ddclust.cli.options import (
    COLUMN_ROWS,
    DATA,
    DATA_HELP,
    FOLDER,
    MODEL_TABLE,
    OUTPUT,
    SectionCommand,
    SectionOption,
    out_option,
    quiet_option,
    with_rows,
)
from ddclust.cli.printing import printable, warnings_as_lines

if TYPE_CHECKING:
    from ddclust.show.explain import Explanation


@click.command(
    cls=SectionCommand,
    short_help="Show which pixels, features or words decide.",
    help="Show what decides the clusters of items of DATA, by the model in FOLDER, a result or model folder. Images"
    " are shown in explanation.png, with the decisive pixels in red. For vectors and texts, explanation.csv lists the"
    f" most influential features or words. Without DATA, the data of the fit is explained.\n\n{DATA_HELP}",
)
@FOLDER
@click.argument("data", required=False)
@click.option(
    "--items",
    metavar="ITEM,...",
    cls=SectionOption,
    section=DATA,
    help="Names of the items to explain, or their numbers from 0.  [default: the five most certain items of each"
    " cluster]",
)
@with_rows(*COLUMN_ROWS, replace(MODEL_TABLE["device"], section=OUTPUT))
@out_option("Folder for the result.  [default: FOLDER-explanation]")
@quiet_option("No progress and no notes.")
def explain(
    folder: Path,
    data: str | None,
    items: str | None,
    out: Path | None,
    quiet: bool,
    device: str,
    **options: Any,
) -> None:
    """Show what decides the clusters of items."""
    refuse_existing(out)
    out = unused(Path(f"{folder.resolve().name}-explanation")) if out is None else out
    if data is None:
        from ddclust.results import data_argument, read_run

        run = read_run(folder)
        data = data_argument(run)
        options = {
            name: run["options"].get(name) if value is None else value for name, value in options.items()
        }
    model, bunch = load_model_and_data(folder, data, options, device, quiet=quiet)
    import numpy as np

    from ddclust.choosing.certainty import most_certain_items
    from ddclust.show.explain import explain, refuse_encoded
    from ddclust.storage.model_folder import new_folder

    refuse_encoded(model)
    with warnings_as_lines():
        rows = (
            most_certain_items(model.predict_proba(bunch.data))
            if items is None
            else _positions(items, bunch.item_names)
        )
        chosen = (
            bunch.data[np.array(rows)] if hasattr(bunch.data, "shape") else [bunch.data[row] for row in rows]
        )
        explanation = explain(model, chosen)
    if bunch.feature_names is not None and not (hasattr(model, "vectorizer_") or hasattr(model, "columns_")):
        explanation = explanation._replace(feature_names=np.array(bunch.feature_names, dtype=object))
    with new_folder(out) as new:
        written = _write(new, chosen, [bunch.item_names[row] for row in rows], explanation)
    click.echo(f"{printable(out / written)}: {_in_words(explanation, hasattr(model, 'vectorizer_'))}")


def _positions(wanted: str, names: Sequence[str]) -> list[int]:
    """Positions of the items that --items names."""
    from ddclust.datasets import ItemPlaces

    places = ItemPlaces(names)
    if wanted in places.by_name:  # a name may contain commas
        return [places.by_name[wanted]]
    return [places[part.strip()] for part in wanted.split(",")]


def _in_words(explanation: Explanation, of_texts: bool) -> str:
    """What the file of an explanation shows."""
    n = len(explanation.clusters)
    items = f"{n:,} item" + ("" if n == 1 else "s")
    if explanation.feature_names is None:
        return f"{items}, with the pixels that decide in red"
    return f"the most influential {'words' if of_texts else 'features'} of {items}"


def _write(folder: Path, items: Any, names: Sequence[str], explanation: Explanation) -> str:
    """Write a picture of images, or a table of the most influential features or words; gives the file's name."""
    from ddclust.results import influences_table
    from ddclust.show import plots

    if explanation.feature_names is not None:
        (folder / "explanation.csv").write_text(influences_table(names, explanation), encoding="utf-8")
        return "explanation.csv"
    titles = [
        f"{name} in cluster {cluster}" for name, cluster in zip(names, explanation.clusters, strict=True)
    ]
    picture = io.BytesIO()
    plots.explanations(items, explanation.attributions, titles).savefig(picture, format="png")
    (folder / "explanation.png").write_bytes(picture.getvalue())
    return "explanation.png"
