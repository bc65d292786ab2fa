"""Tables and numbers in Markdown, as all pages write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ddclust.storage.atomic import write_file


def write_page(file: Path, text: str) -> None:
    """Write a page, in a new folder if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, text.encode())


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with a line break at its end."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def percent(share: float) -> str:
    """A share in percent, with one digit.

    Examples
    --------
    >>> percent(0.8658)
    '86.6'
    """
    return f"{100 * share:.1f}"


def percent_spread(spread: dict[str, Any]) -> str:
    """Mean ± standard deviation in percent; the mean alone if there is no deviation.

    Examples
    --------
    >>> percent_spread({"mean": 0.808, "sd": 0.058})
    '80.8 ± 5.8'
    """
    sd = spread["sd"]
    return percent(spread["mean"]) + ("" if sd is None else f" ± {percent(sd)}")


def spread_text(spread: dict[str, Any]) -> str:
    """Mean ± standard deviation with three digits; the mean alone if there is no deviation."""
    sd = spread["sd"]
    return f"{spread['mean']:.3f}" + ("" if sd is None else f" ± {sd:.3f}")


def nmi_and_acc(scores: dict[str, float] | None) -> str:
    """NMI, and ACC in percent."""
    return "" if scores is None else f"{scores['NMI']:.3f}, {percent(scores['ACC'])}"


def nmi_and_acc_spread(spread: dict[str, Any]) -> str:
    """The same as means over several fits; nothing for a single one."""
    return f"{spread_text(spread['NMI'])}, {percent_spread(spread['ACC'])}" if spread["n"] > 1 else ""


def sizes(result: dict[str, Any]) -> str:
    """The shape of the data and the sizes of the classes."""
    data = result["data"]
    shape = " x ".join(f"{side:,}" for side in data["shape"])
    classes = data["classes"]
    return f"{shape}, {len(classes)} classes of {min(classes):,} to {max(classes):,}"
