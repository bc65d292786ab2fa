"""Features are computed once, found again by content, and made anew where they are damaged."""

import hashlib
import io
import os

import numpy as np
import pytest

from ddclust.encoders import TEXTS, Encoder, EncoderError
from ddclust.encoders import cache as caches
from ddclust.encoders.cache import FolderCache
from ddclust.encoders.choice import encoder_of
from ddclust.encoders.features import CHUNK, features_of


def test_rows_have_unit_length_and_empty_ones_stay_empty(vowels):
    features = features_of(["aaa", "xyz", "ae"], encoder_of(vowels, TEXTS))
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[[0, 1]], [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), [1, 0, 1], rtol=1e-6)


def test_the_same_items_are_encoded_once(known_vowels, cache_folder):
    texts = [f"text a{number}" for number in range(CHUNK + 10)]
    first = features_of(texts, encoder_of(known_vowels, TEXTS))
    assert known_vowels.calls == [CHUNK, 10]
    again = features_of(list(texts), encoder_of(known_vowels, TEXTS))
    assert known_vowels.calls == [CHUNK, 10]
    np.testing.assert_array_equal(first, again)
    assert len(list(cache_folder.iterdir())) == 2
    # Of data that grew, only the end is new.
    features_of([*texts, "more"], encoder_of(known_vowels, TEXTS))
    assert known_vowels.calls == [CHUNK, 10, 11]


def test_other_weights_and_other_names_have_other_features(known_vowels):
    first = Encoder("a", (TEXTS,), known_vowels, "1")
    for encoder in (first, first._replace(name="b"), first._replace(digest="2"), first):
        features_of(["one", "two"], encoder)
    assert known_vowels.calls == [2, 2, 2]


def test_functions_without_a_digest_leave_nothing_on_disk(vowels, cache_folder):
    for _ in range(2):
        features_of(["one", "two"], encoder_of(vowels, TEXTS))
    assert vowels.calls == [2]
    assert not cache_folder.exists()


def test_an_object_without_a_hash_can_encode():
    class Unhashable(list):
        def __call__(self, texts):
            return np.ones((len(texts), 2))

    assert features_of(["one"], encoder_of(Unhashable(), TEXTS)).shape == (1, 2)


@pytest.mark.parametrize(
    "damage",
    [
        "cut",
        "changed",
        "empty",
        "pickle",
        "other array",
        "folder",
        "large",
        "pipe",
        "declared",
        "torn header",
    ],
)
def test_damaged_files_are_made_anew(known_vowels, cache_folder, damage, monkeypatch):
    expected = features_of(["one", "two"], encoder_of(known_vowels, TEXTS))
    (file,) = cache_folder.iterdir()
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif damage == "declared":
        _seal(file, content[:-32].replace(b"(2, 5), ", b"(9999999999999, 5), ".ljust(20)))
    elif damage == "torn header":
        _seal(file, content[:-32].replace(b"(2, 5)", b"(((((("))
    elif damage == "large":
        monkeypatch.setattr(caches, "MOST_FILE_BYTES", 10)
    elif damage in ("pickle", "other array"):
        array = np.array([{}], dtype=object) if damage == "pickle" else np.full((2, 3), np.nan, np.float32)
        _write_sealed(file, array)
    else:
        file.write_bytes(
            {"cut": content[:-7], "changed": content[:150] + b"\x00\x01" + content[152:], "empty": b""}[
                damage
            ]
        )
    found = features_of(["one", "two"], encoder_of(known_vowels, TEXTS))
    assert known_vowels.calls == [2, 2]
    np.testing.assert_array_equal(found, expected)


def _write_sealed(file, array):
    body = io.BytesIO()
    np.save(body, array, allow_pickle=True)
    _seal(file, body.getvalue())


def _seal(file, body):
    file.write_bytes(body + hashlib.sha256(body).digest())


def test_a_folder_that_cannot_be_written_to_changes_nothing(known_vowels, cache_folder):
    cache_folder.parent.write_text("a file in the way")
    assert features_of(["one"], encoder_of(known_vowels, TEXTS)).shape == (1, 5)


def test_the_least_used_files_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "MOST_BYTES", 1500)
    cache = FolderCache(tmp_path)
    for age, key in enumerate(["new", "old", "oldest"]):
        cache.write(key, np.ones((64, 3), dtype=np.float32))
        os.utime(tmp_path / f"{key}.npy", (1e9 - age, 1e9 - age))
    cache.tidy()
    assert [file.name for file in tmp_path.iterdir()] == ["new.npy"]


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda texts: np.ones(len(texts)), r"of shape \(2, d\).*shape \(2,\)"),
        (lambda texts: np.ones((1, 3)), r"shape \(1, 3\)"),
        (lambda texts: np.full((len(texts), 3), np.nan), "NaN or infinity for item 0"),
        (lambda texts: [["a"] for _ in texts], "array of numbers"),
    ],
)
def test_what_is_no_array_of_features_is_refused(encode, message):
    with pytest.raises(EncoderError, match=message):
        features_of(["one", "two"], encoder_of(encode, TEXTS))


def test_features_of_other_lengths_are_refused():
    def encode(texts):
        return np.ones((len(texts), len(texts)))

    with pytest.raises(EncoderError, match="gives 1 values for item 512, and 512 for the first"):
        features_of(["a"] * (CHUNK + 1), encoder_of(encode, TEXTS))


def test_large_features_are_memory_mapped(vowels, monkeypatch):
    monkeypatch.setattr("ddclust.storage.scratch.IN_MEMORY_BYTES", 10)
    features = features_of(["one", "two"], encoder_of(vowels, TEXTS))
    assert isinstance(features, np.memmap)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-6)
