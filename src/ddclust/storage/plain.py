"""Parameters as plain JSON values and back. Reading builds only objects of types that are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

CUSTOM = "custom"  # marks a function or object of the user's own, which is saved by name only


def to_plain(value: Any) -> Any:
    """A parameter as JSON: our dataclasses by their fields, objects of the user's own by name only.

    Examples
    --------
    >>> to_plain((1, np.float64(0.5), None)), to_plain(len)
    ([1, 0.5, None], {'custom': 'builtins.len'})
    """
    if isinstance(value, np.generic):
        return value.item()  # also of np.float64, which is a float
    if value is None or isinstance(value, (bool, str, int, float)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Mapping):
        return {str(name): to_plain(part) for name, part in value.items()}
    if isinstance(value, (tuple, list, range)):
        return [to_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if _is_own_dataclass(value):
        return {type(value).__name__: {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, torch.device):
        return str(value)
    return {CUSTOM: name_of(value)}


def from_plain(value: Any, types: Mapping[str, type]) -> Any:
    """The parameter that :func:`to_plain` wrote; ``types`` are those that may be built.

    Examples
    --------
    >>> from_plain({"complex": {"real": 1.0, "imag": 2.0}}, {"complex": complex})
    (1+2j)
    """
    if isinstance(value, list):
        return [from_plain(part, types) for part in value]
    if isinstance(value, dict) and len(value) == 1:
        ((name, content),) = value.items()
        if name in types and isinstance(content, dict):
            return types[name](**{key: from_plain(part, types) for key, part in content.items()})
    return value


def name_of(function: Any) -> str:
    """The full name of a function, or of the type of an object."""
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _is_own_dataclass(value: Any) -> bool:
    return (
        is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith("ddclust.")
    )
