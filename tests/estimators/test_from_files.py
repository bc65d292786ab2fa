"""Image files and single texts for a fitted model."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ddclust import DDC, load_data
from helpers import quick

pytestmark = pytest.mark.filterwarnings("ignore:The clustering uses")


@pytest.fixture(params=["RGB", "L"])
def folder(request, tmp_path, rng):
    """A folder of images of several sizes, in colour or grey."""
    for number in range(12):
        pixels = rng.integers(0, 90, size=(30 + number, 40, 3)) + 150 * (number % 2)
        image = Image.fromarray(pixels.astype(np.uint8)).convert(request.param)
        image.save(tmp_path / f"p{number:02d}.{'png' if number % 3 else 'jpg'}")
    return tmp_path


def test_files_get_the_clusters_of_the_fit(folder):
    photos = load_data(folder)
    model = quick(2, max_iter=20).fit(photos.data)
    paths = [folder / name for name in photos.item_names]
    np.testing.assert_array_equal(model.predict(paths), model.labels_)
    np.testing.assert_array_equal(model.predict([str(path) for path in paths]), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(paths), model.predict_proba(photos.data))
    model.save(folder / "model")
    loaded = DDC.load(folder / "model")
    for one in (paths[3], str(paths[3]), [paths[3]]):
        assert loaded.predict(one).tolist() == [model.labels_[3]]


def test_files_can_be_fitted(folder):
    photos = load_data(folder)
    paths = [str(folder / name) for name in photos.item_names]
    np.testing.assert_array_equal(
        quick(2, max_iter=5).fit(paths).probabilities_,
        quick(2, max_iter=5).fit(photos.data).probabilities_,
    )


def test_an_image_of_another_mode_and_size(folder):
    photos = load_data(folder)
    model = quick(2, max_iter=20).fit(photos.data)
    with Image.open(folder / photos.item_names[1]) as image:
        larger = image.resize((400, 320))
    for mode, name in [("RGBA", "a.png"), ("P", "p.gif"), ("L", "l.png"), ("CMYK", "c.jpg")]:
        larger.convert("RGB").convert(mode).save(folder / name)
        assert model.predict(folder / name).shape == (1,)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "There is no file"),
        (lambda path: path.write_text("no image"), "cannot be read as an image: not an image"),
    ],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_files_that_cannot_be_read(images, tmp_path, make, sentence, kind):
    model = quick(2, max_iter=2).fit(images)
    make(tmp_path / "a.png")
    with pytest.raises(ValueError, match=sentence):
        model.predict([kind(tmp_path / "a.png")])


def test_a_model_of_vectors_takes_no_images(blobs, tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="fitted on items of shape"):
        quick(max_iter=2).fit(blobs[0]).predict([str(tmp_path / "nothing.txt")])
    with pytest.raises(ValueError, match="was fitted on vectors of 2 features"):
        quick(max_iter=2).fit(blobs[0]).predict([str(tmp_path / "a.png")])


def test_a_single_text():
    texts = ["a ship sails the sea", "fresh bread bakes"] * 10
    model = quick(2, max_iter=5).fit(texts)
    assert model.predict("a ship on the sea").tolist() == model.predict(["a ship on the sea"]).tolist()
    with pytest.raises(ValueError, match="single text"):
        quick(2).fit("a ship")


def test_names_of_images_are_texts_for_a_model_of_texts(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "ship.png")
    model = quick(2, max_iter=5).fit(["a ship sails the sea", "fresh bread bakes"] * 10)
    assert model.predict([str(tmp_path / "ship.png")]).shape == (1,)
