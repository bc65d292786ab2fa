"""Model folders: whole or not at all, and everything checked before it is used."""

import json
import os

import numpy as np
import pytest
import torch

from ddclust.storage.model_folder import ModelFormatError, check_tensors, load_model, new_folder, save_model


@pytest.fixture
def copied(tmp_path):
    """A saved model to damage."""
    save_model(tmp_path / "model", {"estimator": "DDC", "runs": list(range(100))}, {"a": torch.arange(500.0)})
    return tmp_path / "model"


def test_interrupted_writing_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "model") as folder:
        (folder / "half").write_text("…")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("pattern", ["model.json", "*.safetensors"])
def test_missing_file_is_named(copied, pattern):
    file = next(copied.glob(pattern))
    file.unlink()
    with pytest.raises(ModelFormatError, match=f"{file.name} is missing"):
        load_model(copied)


@pytest.mark.parametrize("pattern", ["model.json", "*.safetensors"])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_truncated_file_is_named(copied, pattern, share):
    file = next(copied.glob(pattern))
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelFormatError, match=f"{file.name}.*truncated"):
        load_model(copied)


def test_every_flipped_bit_is_noticed(copied):
    rng = np.random.default_rng(0)
    for file in copied.iterdir():
        content = bytearray(file.read_bytes())
        for place in rng.choice(len(content), 100, replace=False).tolist():
            flipped = bytearray(content)
            flipped[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(flipped)
            try:
                found = load_model(copied)[0]
            except ModelFormatError as error:
                assert str(copied) in str(error)
            else:  # white space of the JSON, or the case of an escape, carries no meaning
                file.write_bytes(content)
                assert found == load_model(copied)[0]
        file.write_bytes(content)


@pytest.mark.parametrize("content", [b"[1, 2]", b'{"a": 1}', b"\xff\xfe", b"null"])
def test_foreign_description_is_refused(copied, content):
    (copied / "model.json").write_bytes(content)
    with pytest.raises(ModelFormatError, match="model.json"):
        load_model(copied)


def test_round_trip(copied):
    description, tensors = load_model(copied)
    assert description["runs"] == list(range(100))
    assert (description["format"], description["format_version"]) == ("ddclust-model", 2)
    assert torch.equal(tensors["a"], torch.arange(500.0))


def test_the_model_of_a_result_folder_is_found(copied):
    assert load_model(copied.parent)[0] == load_model(copied)[0]


@pytest.mark.parametrize("version", [0, True, "2", None, 3])
def test_other_versions_are_refused(copied, version):
    file = copied / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format_version": version}))
    with pytest.raises(
        ModelFormatError, match="newer ddclust .*format 3" if version == 3 else "no valid format version"
    ):
        load_model(copied)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "lacks the tensor 'a'"),
        ({"a": torch.zeros(2), "b": torch.zeros(1)}, "The tensor 'b' of the model .* does not belong there"),
        ({"a": torch.zeros(3)}, r"shape \(3,\) .* expected \(2,\)"),
        ({"a": torch.zeros(2, dtype=torch.float64)}, "torch.float64, expected .* torch.float32"),
        ({"a": torch.tensor([0.0, float("nan")])}, "not finite"),
    ],
)
def test_tensors_are_compared_with_what_is_expected(found, message):
    check_tensors("m", {"a": torch.zeros(2)}, {"a": (torch.Size([2]), torch.float32)})
    with pytest.raises(ModelFormatError, match=message):
        check_tensors("m", found, {"a": (torch.Size([2]), torch.float32)})
