"""The real encoders, where they are installed, and models in folders."""

import numpy as np
import pytest

from ddclust import DDC
from ddclust.encoders import EncoderError, FittedEncoder, local
from ddclust.encoders import named as named_encoders
from ddclust.encoders.choice import default_encoder, encoder_again, encoder_of, photo_side
from ddclust.encoders.features import features_of
from ddclust.encoders.named import NAMED, is_installed
from ddclust.encoders.photographs import as_photographs
from helpers import quick


def needs(name):
    return pytest.mark.skipif(not is_installed(name), reason=f"{name} is not installed")


@pytest.fixture
def with_installed(monkeypatch):
    """What is installed is taken by default, as outside of the tests."""
    monkeypatch.setattr("ddclust.encoders.choice.installed_encoder", named_encoders.installed_encoder)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("minilm", "static")])
def test_texts_of_one_meaning_are_near(name):
    texts = [
        "A cat sleeps on the sofa.",
        "The kitten naps on a couch.",
        "Shares fell on the stock market.",
        "",
    ]
    features = features_of(texts, encoder_of(name, "texts"))
    similar = features @ features.T
    assert similar[0, 1] > similar[0, 2] + 0.1
    assert np.isfinite(features).all()


@needs("efficientnet")
def test_photographs_of_any_layout_have_the_same_features(photographs):
    encoder = encoder_of("efficientnet", "images")
    some = photographs[::10]
    features = features_of(some, encoder)
    assert features.shape == (6, 1280)
    as_fractions = np.moveaxis(some, -1, 1).astype(np.float32) / 255
    np.testing.assert_allclose(features_of(as_fractions, encoder), features, atol=1e-4)
    assert features_of(some[..., 0], encoder).shape == (6, 1280)
    with pytest.raises(EncoderError, match="from 0 to 1; those of X reach from"):
        features_of(some.astype(float), encoder)


@needs("efficientnet")
def test_photographs_are_encoded_by_default(photographs, with_installed, capsys):
    model = quick(2, max_iter=5, verbose=True).fit(photographs)
    assert model.encoder_.name == "efficientnet"
    assert "Items are encoded by 'efficientnet': features of EfficientNet-Lite0." in capsys.readouterr().err
    assert default_encoder(photographs / 255) == "efficientnet"
    assert photo_side("auto") is not None
    assert photo_side(None) is None


def test_digits_vectors_and_tables_are_not_encoded(with_installed, images, blobs):
    import pandas

    for X in (images, blobs[0], images[..., None], np.zeros((5, 8, 8, 3)), np.full((5, 32, 32, 3), 7.0)):
        assert default_encoder(X) is None
    assert default_encoder(pandas.DataFrame({"a": [1.0, 2.0]})) is None


@needs("static")
def test_a_saved_model_finds_its_encoder_by_name(texts, with_installed, tmp_path):
    model = quick(2, encoder="static", max_iter=60).fit(texts)
    model.save(tmp_path / "model")
    again = DDC.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(texts), model.labels_)
    again.encoder_ = again.encoder_.__class__("static", "texts", "0000")
    with pytest.raises(EncoderError, match="digest 0000..., but the one that is here is with the digest"):
        again.predict(texts)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in NAMED])
def test_a_loaded_model_gives_raw_items_the_labels_of_the_fit(
    name, texts, photographs, tmp_path, monkeypatch
):
    """In any order and number, and encoded anew."""
    items = photographs if name == "efficientnet" else np.array([*texts, ""] * 2, dtype=object)
    model = quick(2, encoder=name, max_iter=40).fit(items if name == "efficientnet" else items.tolist())
    model.save(tmp_path / "model")
    again = DDC.load(tmp_path / "model")
    order = np.random.default_rng(0).permutation(len(items))
    for number, places in enumerate((order, order[:7], order[:1])):
        monkeypatch.setattr(
            "ddclust.encoders.cache.cache_folder", lambda number=number: tmp_path / str(number)
        )
        some = items[places] if name == "efficientnet" else items[places].tolist()
        np.testing.assert_array_equal(again.predict(some), model.labels_[places])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Die Katze und der Hund sind nicht da", "German"),
        ("Кошка и собака не дома", "Russian"),
        ("猫と犬がいます", "another alphabet"),
        ("고양이와 개가 있다", "another alphabet"),
    ],
)
@needs("static")
def test_an_encoder_of_english_warns_of_other_languages(text, found):
    with pytest.warns(
        UserWarning, match=f"The texts are in {found}, and encoder='static' knows mostly English"
    ):
        quick(2, encoder="static", max_iter=2).encoded([f"{text} {number}" for number in range(20)])


@needs("static")
def test_an_encoder_of_english_is_silent_about_english(texts, recwarn):
    quick(2, encoder="static", max_iter=2).encoded(texts)
    assert not recwarn.list


@needs("static")
def test_wrong_items_for_a_named_encoder(photographs):
    with pytest.raises(EncoderError, match="takes texts, and X is images"):
        quick(2, encoder="static").fit(photographs)


@pytest.mark.parametrize("name", NAMED)
def test_every_name_says_what_it_is(name):
    assert NAMED[name].takes in ("texts", "images")
    assert NAMED[name].about


def test_images_with_strange_channels_are_refused():
    with pytest.raises(EncoderError, match="1 or 3 channels, not 2"):
        as_photographs(np.zeros((2, 8, 8, 2), dtype=np.uint8))
    with pytest.raises(EncoderError, match="takes images"):
        as_photographs(np.zeros((2, 8), dtype=np.uint8))


@pytest.fixture
def text_folder(tmp_path):
    """A tiny model of texts with random weights, as transformers saves it."""
    pytest.importorskip("sentence_transformers")
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "banana", "lions", "in", "hills", "little"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return folder


def test_a_folder_with_a_model_of_texts(text_folder, texts):
    model = quick(2, encoder=text_folder, max_iter=30).fit(texts)
    assert model.item_shape_ == (16,)
    assert model.encoder_.name == str(text_folder)
    np.testing.assert_array_equal(model.predict(texts), model.labels_)


def test_damaged_and_dangerous_folders_are_refused(text_folder, texts, tmp_path):
    weights = next(text_folder.glob("*.safetensors"))
    content = weights.read_bytes()
    weights.write_bytes(content[:1000])
    with pytest.raises(EncoderError, match="cannot be loaded"):
        quick(2, encoder=text_folder).fit(texts)
    weights.rename(text_folder / "model.bin")
    with pytest.raises(EncoderError, match="no weights as safetensors"):
        quick(2, encoder=text_folder).fit(texts)


def test_code_in_a_folder_is_not_run(text_folder, texts, tmp_path):
    (text_folder / "own.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\nclass Own: pass\n")
    (text_folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]')
    with pytest.raises(EncoderError, match="cannot be loaded"):
        quick(2, encoder=text_folder).fit(texts)
    assert not (tmp_path / "was-run").exists()


def test_a_folder_with_a_model_of_images(photographs, tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path / "tiny"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=16, **sizes)).save_pretrained(
        folder
    )
    try:
        transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    except ImportError as error:
        pytest.skip(str(error).splitlines()[0])
    try:
        features = features_of(photographs, encoder_of(folder, "images"))
    except EncoderError as error:
        if "orchvision" in str(error):
            pytest.skip("transformers reads images by torchvision")
        raise
    assert features.shape == (60, 16)


def test_nothing_is_loaded_from_a_folder_that_a_received_model_names(tmp_path, monkeypatch):
    """Unless it holds the very model of the fit; and a folder of everything is not searched for one."""
    (tmp_path / "weights.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("ddclust.encoders.choice.local_encoder", None)  # would fail
    received = FittedEncoder(str(tmp_path), "texts", "0" * 64)
    with pytest.raises(
        EncoderError, match="digest 000000000000..., but the one that is here is with the dig"
    ):
        encoder_again(received, None)
    monkeypatch.setattr(local, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.json").touch()
    with pytest.raises(EncoderError, match="holds more than 3 files; give the folder of a single model"):
        encoder_again(received, None)


def test_a_library_that_runs_code_of_folders_is_refused(tmp_path, monkeypatch):
    (tmp_path / "weights.safetensors").touch()
    monkeypatch.setattr(local, "find_spec", lambda package: package)
    monkeypatch.setattr(local, "version", lambda package: "5.1.2")
    with pytest.raises(EncoderError, match="needs sentence-transformers 6 or later"):
        encoder_of(str(tmp_path), "texts")
