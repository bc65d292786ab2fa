"""Data that is read for a fitted model."""

import numpy as np
import pytest
from PIL import Image

from ddclust.datasets import DataError, load
from ddclust.reading import is_table, load_for, scaled_vectors, truth_of, vectorised
from helpers import quick


@pytest.fixture
def model_of_images(rng):
    """A model of images of 16 x 12 pixels, the channels first."""
    return quick(2, max_iter=2).fit(rng.integers(0, 255, size=(20, 3, 16, 12), dtype=np.uint8))


def test_images_of_a_folder_get_the_size_colour_and_layout_of_the_model(model_of_images, photos):
    bunch = load_for(model_of_images, photos)
    assert bunch.data.shape == (12, 3, 16, 12)
    plain = load(photos, image_size=(16, 12), colour="rgb").data
    assert np.array_equal(bunch.data, plain.transpose(0, 3, 1, 2))
    assert model_of_images.predict(bunch.data).shape == (12,)
    assert bunch.target is not None


def test_grey_images(rng, photos):
    model = quick(2, max_iter=2).fit(rng.integers(0, 255, size=(20, 16, 12), dtype=np.uint8))
    assert load_for(model, photos).data.shape == (12, 16, 12)


def test_one_image_is_enough(model_of_images, tmp_path):
    Image.new("L", (40, 40), 7).save(tmp_path / "one.png")
    assert load_for(model_of_images, tmp_path).data.shape == (1, 3, 16, 12)


def test_columns_are_found_by_name_and_the_model_stays_as_it_is(blobs, tmp_path):
    X, _ = blobs
    model = quick(3, max_iter=2).fit(X)
    model.feature_names_in_ = np.array(["mass", "age"], dtype=object)
    rows = [f"{age},word,{mass}" for mass, age in X.tolist()]
    (tmp_path / "new.csv").write_text("\n".join(["age,remark,mass", *rows]))
    assert np.array_equal(load_for(model, tmp_path / "new.csv").data, X)
    assert model.feature_names_in_.tolist() == ["mass", "age"]
    (tmp_path / "less.csv").write_text("age\n1\n")
    with pytest.raises(DataError, match="has no column 'mass'"):
        load_for(model, tmp_path / "less.csv")


def test_texts_and_truth_of_a_table(tmp_path):
    model = quick(2, max_iter=2).fit(["ships sail", "bread bakes"] * 5)
    (tmp_path / "new.csv").write_text("key,words,kind\na,a ship,x\nb,the bread,y\n")
    bunch = load_for(model, tmp_path / "new.csv", text_column="words", id_column="key", truth_column="kind")
    assert bunch.data == ["a ship", "the bread"]
    assert bunch.item_names == ["a", "b"]
    assert len(bunch.target) == 2


def test_named_data_is_as_it_is(model_of_images):
    assert load_for(model_of_images, "digits").data.shape == (1797, 8, 8)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("a.csv", True),
        ("A.TSV", True),
        ("a.csv.gz", True),
        ("a.parquet", True),
        ("a.npy", False),
        ("a", False),
    ],
)
def test_tables(data, expected):
    assert is_table(data) == expected


def test_truth_is_matched_by_name_or_else_by_position():
    truth = np.array([1, 2, 3])
    assert truth_of(["c", "a"], ["a", "b", "c"], truth, "t").tolist() == [3, 1]
    assert truth_of(["x", "y", "z"], ["a", "b", "c"], truth, "t").tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="'t' does not name all items that were clustered: 'x' is missing"):
        truth_of(["a", "x"], ["a", "b", "c"], truth, "t")
    with pytest.raises(DataError, match="The names of the items in 't' are not unique"):
        truth_of(["a"], ["a", "a", "c"], truth, "t")


def test_vectors(images, blobs):
    assert scaled_vectors(images).shape == (60, 64)
    assert np.allclose(scaled_vectors(blobs[0]).std(axis=0), 1)
    sparse = vectorised(["a ship sails", "bread bakes"])
    assert (scaled_vectors(sparse) != sparse).nnz == 0
    assert vectorised(images) is images
