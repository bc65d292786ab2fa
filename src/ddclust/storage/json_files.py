"""Every JSON that the project reads goes through here: parsed strictly, compared with a schema, refused in one sentence.

A schema is any type that msgspec knows: a dataclass, a TypedDict, ``list[int]``. Files of our own also carry a digest of
their content, the *seal*, so that damage is noticed even where it leaves valid JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from ddclust.storage.atomic import write_json

# Lists in JSON take up to 25 times the space in memory. This is the history of some ten million iterations.
MOST_BYTES = 64 * 2**20
SEAL = "sha256"
DEEPEST = 12

T = TypeVar("T")


# For files of several versions, which are checked once it is known which one it is. Only their depth is bounded.
PLAIN = Annotated[dict[str, Any], "nested up to DEEPEST"]


class JSONError(ValueError):
    """JSON that cannot be used; the message names the file and what to do."""


def read_json(
    file: Path, schema: type[T] | Any, *, remedy: str, error: type[ValueError] = JSONError
) -> T | Any:
    """The content of a JSON file that fits a schema and, if it has one, its seal.

    Parameters
    ----------
    file : Path
    schema : type
        What msgspec builds. Entries that it does not know are left out.
    remedy : str
        What a user can do about a damaged file, as the end of a sentence.
    error : type, default=JSONError
        What is raised. A missing file raises FileNotFoundError all the same.
    """
    if file.exists() and not file.is_file():
        raise error(f"{str(file)!r} is not a file; {remedy}.")
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise error(
            f"{str(file)!r} holds more than {MOST_BYTES >> 20} MB of JSON, the limit; {remedy}, or raise"
            f" {__name__}.MOST_BYTES if it is meant to be that large."
        )
    return parsed(content, schema, what=repr(str(file)), remedy=remedy, error=error)


def parsed(
    content: bytes, schema: type[T] | Any, *, what: str, remedy: str, error: type[ValueError] = JSONError
) -> T | Any:
    """JSON from memory, as :func:`read_json` reads it; ``what`` names it in errors."""
    try:
        value = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as reason:
        raise error(f"{what} is damaged: it is not in UTF-8; {remedy}.") from reason
    except RecursionError as reason:
        raise error(f"{what} is damaged: its values are nested too deeply; {remedy}.") from reason
    except ValueError as reason:
        raise error(f"{what} is damaged or truncated: it is not JSON ({reason}); {remedy}.") from reason
    return checked(value, schema, what=what, remedy=remedy, error=error)


def checked(
    value: Any, schema: type[T] | Any, *, what: str, remedy: str, error: type[ValueError] = JSONError
) -> T | Any:
    """A parsed value as the schema has it, if its seal is whole. Any JSON fits ``PLAIN``, which does not look at seals."""
    try:
        is_sealed = schema is not PLAIN and isinstance(value, dict) and SEAL in value
        if is_sealed and value[SEAL] != seal_of(value):
            raise error(f"{what} is damaged: its content differs from what was written; {remedy}.")
        if schema is PLAIN and not _is_within(value, 1 + DEEPEST):
            raise error(f"{what} is damaged: its values are nested too deeply; {remedy}.")
        return msgspec.convert(value, schema, str_keys=True)
    except RecursionError as reason:
        raise error(f"{what} is damaged: its values are nested too deeply; {remedy}.") from reason
    except UnicodeEncodeError as reason:
        raise error(
            f"{what} is damaged: it holds half of a character ({reason.object!r:.60}); {remedy}."
        ) from reason
    except msgspec.ValidationError as reason:
        problem = str(reason).replace("`", "").replace(" - at", " at").replace("$.", "")
        raise error(f"{what} does not hold what it should ({problem}); {remedy}.") from reason


def write_sealed(file: Path, content: dict[str, Any]) -> None:
    """Write JSON with its seal, in full or not at all."""
    plain = as_json({name: value for name, value in content.items() if name != SEAL})
    write_json(file, {**plain, SEAL: seal_of(plain)})


def seal_of(content: dict[str, Any]) -> str:
    """The digest of what was parsed, whatever the layout of the file."""
    plain = {name: value for name, value in content.items() if name != SEAL}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def as_json(value: Any) -> Any:
    """A value as it comes back from JSON: tuples as lists, keys as texts.

    Examples
    --------
    >>> as_json({1: (2, 3)})
    {'1': [2, 3]}
    """
    return json.loads(json.dumps(value))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ; of equal ones, nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r:.60} occurs twice")
    return found


def _is_within(value: Any, depth: int) -> bool:
    """Whether lists and objects are nested up to a depth."""
    if not isinstance(value, (dict, list)):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_within(part, depth - 1) for part in parts)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.60} is too large a number")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
