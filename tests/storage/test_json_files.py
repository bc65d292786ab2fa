"""JSON that is read: refused in one sentence whatever is wrong with it, and whole if it has a seal."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import ddclust
from ddclust.storage.json_files import PLAIN, JSONError, read_json, seal_of, write_sealed

ROOT = Path(ddclust.__file__).parents[2]


@dataclass
class Cake:
    eggs: int
    price: float = 0.0
    layers: dict[int, str] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not JSON (Expecting value"),
        (b'{"eggs": 1', "is not JSON"),
        (b'{"eggs": 1} {', "is not JSON (Extra data"),
        (b'{"eggs": "one"}', "does not hold what it should (Expected int, got str at eggs)"),
        (b'{"eggs": 1.5}', "does not hold what it should (Expected int, got float at eggs)"),
        (b'{"eggs": true}', "does not hold what it should (Expected int, got bool at eggs)"),
        (b'{"price": 1}', "does not hold what it should (Object missing required field eggs)"),
        (b"[1]", "does not hold what it should (Expected object, got array)"),
        (b"null", "does not hold what it should (Expected object, got null)"),
        (b'{"eggs": 1, "layers": {"x": "jam"}}', "does not hold what it should (Expected int, got str at key in layers)"),
        (b'{"eggs": ' + b"[" * 100_000, "its values are nested too deeply"),
        (b'{"eggs": 1, "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "its values are nested too deeply"),
        (b'{"eggs": ' + b"9" * 5000 + b"}", "is not JSON (Exceeds the limit"),
        (b'{"eggs": 1, "price": NaN}', "is not JSON (NaN is no JSON value)"),
        (b'{"eggs": 1, "price": 1e999}', "is not JSON (1e999 is too large a number)"),
        (b'{"eggs": 1, "eggs": 2}', "is not JSON (the key 'eggs' occurs twice)"),
        (b'{"eggs": "\xff"}', "is not in UTF-8"),
        (b'{"eggs": 1, "layers": {"\\ud800": "jam"}}', "it holds half of a character"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_one_sentence(tmp_path, content, problem):
    file = tmp_path / "cake.json"
    file.write_bytes(content)
    with pytest.raises(JSONError) as caught:
        read_json(file, Cake, remedy="bake it again")
    message = str(caught.value)
    assert message.startswith(repr(str(file)))
    assert problem in message
    assert message.endswith("; bake it again.")
    assert "\n" not in message


def test_a_good_file(tmp_path):
    (tmp_path / "cake.json").write_text('\ufeff{"eggs": 2, "price": 3, "layers": {"1": "jam"}, "other": [1]}')
    assert read_json(tmp_path / "cake.json", Cake, remedy="") == Cake(2, 3.0, {1: "jam"})


@pytest.mark.parametrize("depth", [13, 400, 900])
def test_nesting_is_bounded_where_anything_may_stand(tmp_path, depth):
    (tmp_path / "a.json").write_text('{"a": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(JSONError, match="nested too deeply; bake it again"):
        read_json(tmp_path / "a.json", PLAIN, remedy="bake it again")


def test_names_that_are_not_unicode_come_back(tmp_path):
    """Names of files need not be UTF-8; Python keeps their bytes as lone surrogates."""
    name = os.fsdecode(b"caf\xe9.csv")
    write_sealed(tmp_path / "a.json", {"name": name})
    assert read_json(tmp_path / "a.json", dict[str, str], remedy="")["name"] == name


def test_every_flipped_bit_of_a_sealed_file_is_noticed_or_harmless(tmp_path):
    file, content = tmp_path / "a.json", {"eggs": [1, 2.5, None], "cake": {"layers": "jam"}}
    write_sealed(file, content)
    whole = file.read_bytes()
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(bytes(damaged))
        try:
            found = read_json(file, dict[str, object], remedy="x")
        except JSONError:
            continue
        assert {name: found[name] for name in content} == content


def test_a_seal_is_of_the_content_not_of_its_layout(tmp_path):
    write_sealed(tmp_path / "a.json", {"b": 1, 2: (3,)})
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["sha256"] == seal_of(found)
    (tmp_path / "a.json").write_text(json.dumps(dict(reversed(found.items())), indent=4))
    assert read_json(tmp_path / "a.json", dict[str, object], remedy="")["2"] == [3]


def test_a_file_beyond_the_limit_is_not_read(tmp_path):
    file = tmp_path / "a.json"
    file.touch()
    os.truncate(file, 5 * 2**30)
    with pytest.raises(JSONError, match=r"a\.json' holds more than 64 MB of JSON, the limit; bake it again"):
        read_json(file, Cake, remedy="bake it again")


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(JSONError, match="is not a file"):
        read_json(tmp_path / "a.json", Cake, remedy="")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "b.json", Cake, remedy="")


def test_this_is_the_only_place_that_reads_json():
    own = {Path("src/ddclust/storage/json_files.py"), Path("src/ddclust/data/readers/json_lines.py")}
    files = [file.relative_to(ROOT) for room in ("src", "lab") for file in (ROOT / room).rglob("*.py")]
    found = {file for file in files if re.search(r"json\.loads?\(", (ROOT / file).read_text())}
    assert found == own
