"""Mutations of files: of their bytes, of texts by tokens, and of JSON by its structure."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

# Numbers at the edges of types, in the two orders of bytes.
EDGES = [
    value.to_bytes(size, order, signed=False)
    for size in (1, 2, 4, 8)
    for value in (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
    for order in ("little", "big")
]
TOKENS = [
    *(
        b",",
        b";",
        b"\t",
        b'"',
        b"'",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\x1b[2J",
    ),
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e999",
        b"-0",
        b"1" * 400,
        b"0x10",
        b"1_0",
        b"NA",
        b"null",
        b"true",
        b"id",
        b"text",
        b"y",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b"[" * 5000,
        b'{"a":' * 3000,
        b":",
        b"\\u0000",
        b"\\ud800",
        b'"text"',
        b'"id"',
        b"\\",
    ),
    *(
        b"descr",
        b"fortran_order",
        b"shape",
        b"'|O'",
        b"'<f8'",
        b"'<U9'",
        b"(10000000000,)",
        b"(-1,)",
        b"True",
        b"\x93NUMPY",
    ),
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PAR1",
        b"\x1f\x8b",
        b"IHDR",
        b"IDAT",
        b"\x89PNG",
        b"__metadata__",
    ),
    *(
        b"data_offsets",
        b"dtype",
        b"F32",
        b"I64",
        b"BOOL",
        b"../",
        b"/etc/passwd",
        b"cos\nsystem\n(S'true'\ntR.",
    ),
    *("é".encode(), "\u202e".encode(), "🦭".encode(), "\u2028".encode(), b"=cmd()", b"<script>"),
]
NASTY: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        2**31,
        -(2**63),
        2**64,
        10**400,
        0.5,
        -0.0,
        1e308,
        1e-320,
        float("nan"),
        float("inf"),
    ),
    *(
        "",
        "a",
        "0",
        "\0",
        "é\u202e",
        "x" * 5000,
        "../../etc",
        "/dev/null",
        "\ud800",
        "1e5",
        "auto",
        "cuda:9",
        "nan",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [0] * 50,
        ["a"],
        {"a": 1},
        {"": None},
        {"custom": "os.system"},
        {"DDCLoss": {}},
        {"Network": 3},
    ),
]


def mutated_bytes(seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """One of the seeds with one to four changes."""
    content = bytearray(seeds[rng.integers(len(seeds))])
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(content) + 1))
        match rng.integers(9):
            case 0 | 1 if content:
                content[place % len(content)] ^= 1 << int(rng.integers(8))
            case 2 if content:
                content[place % len(content)] = int(rng.integers(256))
            case 3:
                del content[place:]
            case 4:
                del content[place : place + int(rng.integers(1, 40))]
            case 5:
                other = seeds[rng.integers(len(seeds))]
                begin = int(rng.integers(len(other) + 1))
                content[place : place + int(rng.integers(20))] = other[
                    begin : begin + int(rng.integers(1, 200))
                ]
            case 6:
                token = TOKENS[rng.integers(len(TOKENS))]
                content[place : place + int(rng.integers(2)) * len(token)] = token
            case 7:
                edge = EDGES[rng.integers(len(EDGES))]
                content[place : place + len(edge)] = edge
            case _:
                piece = content[place : place + int(rng.integers(1, 60))]
                content[place:place] = piece * int(rng.integers(1, 30))
    return bytes(content)


def mutated_json(seeds: Sequence[bytes], rng: np.random.Generator) -> bytes:
    """One of the seeds with one to three changes of its structure, or now and then of its bytes."""
    if rng.random() < 0.15:
        return mutated_bytes(seeds, rng)
    tree = json.loads(seeds[rng.integers(len(seeds))])
    for _ in range(rng.integers(1, 4)):
        tree = _changed(tree, rng)
    text = json.dumps(tree)
    if rng.random() < 0.02:
        text = "[" * 100_000 + text
    return text.encode("utf-8", "surrogatepass")


def _changed(tree: Any, rng: np.random.Generator) -> Any:
    places = list(_places(tree))
    if not places:
        return _nasty(rng)
    parent, key = places[rng.integers(len(places))]
    match rng.integers(8):
        case 0 | 1:
            del parent[key]
        case 2 | 3 | 4:
            parent[key] = _nasty(rng)
        case 5:
            other, name = places[rng.integers(len(places))]
            if name in (other if isinstance(other, dict) else range(len(other))):
                parent[key] = copy.deepcopy(other[name])
        case 6:
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"a": parent[key]}
        case _ if isinstance(parent, dict):
            parent[f"{key}x"] = parent.pop(key)
        case _:
            parent.append(copy.deepcopy(parent[key]))
    return tree


def _nasty(rng: np.random.Generator) -> Any:
    return copy.deepcopy(NASTY[rng.integers(len(NASTY))])


def _places(tree: Any) -> Any:
    """(container, key) of every value within."""
    if isinstance(tree, dict):
        entries: Any = list(tree.items())
    elif isinstance(tree, list):
        entries = list(enumerate(tree[:20]))
    else:
        return
    for key, value in entries:
        yield tree, key
        yield from _places(value)
