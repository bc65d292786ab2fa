"""Data sets as files, and back."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from ddclust.data.readers.bunch import DataError, make_bunch
from ddclust.data.writing import write_data
from ddclust.datasets import load


def test_images_come_back(tmp_path):
    tiles = load("tiles")
    write_data(tiles, tmp_path / "photos")
    again = load(tmp_path / "photos")
    assert again.item_names == [f"{name}.png" for name in tiles.item_names]
    np.testing.assert_array_equal(again.data, tiles.data)
    assert again.target is None


def test_classes_of_images_are_folders(tmp_path):
    digits = load("digits")
    some = Bunch(**digits | {"data": digits.data[:30], "target": digits.target[:30]})
    write_data(some, tmp_path / "digits")
    again = load(tmp_path / "digits")
    assert again.target_names == digits.target_names
    place = again.item_names.index("7/7.png")
    expected = np.round(digits.data[7] / digits.data[:30].max() * 255)
    np.testing.assert_array_equal(again.data[place], expected)


def test_tables_and_texts_come_back(tmp_path):
    wine = load("wine")
    write_data(wine, tmp_path / "wine.csv")
    again = load(tmp_path / "wine.csv", truth_column="class")
    np.testing.assert_array_equal(again.data, wine.data)
    np.testing.assert_array_equal(again.target, wine.target)
    assert (again.feature_names, again.target_names) == (wine.feature_names, wine.target_names)
    manuals = load("manuals")
    write_data(manuals, tmp_path / "manuals.csv")
    texts = load(tmp_path / "manuals.csv", text_column="text", truth_column="class")
    assert texts.data == manuals.data
    assert texts.item_names == manuals.item_names


def test_names_never_lead_out_of_the_folder(tmp_path):
    pixels = np.zeros((3, 4, 4), dtype=np.uint8)
    names = [str(tmp_path / "elsewhere"), "../up", "a/b"]
    hostile = make_bunch(pixels, item_names=names, name="x", about="")
    write_data(hostile, tmp_path / "inner" / "photos")
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    assert len(list((tmp_path / "inner" / "photos").glob("*.png"))) == 3


def test_nothing_is_overwritten(tmp_path):
    alike = make_bunch(np.zeros((2, 4, 4), dtype=np.uint8), item_names=["a/b", "a_b"], name="x", about="")
    with pytest.raises(DataError, match=r"Two items of 'x' would both be written as 'a_b\.png'"):
        write_data(alike, tmp_path / "alike")
    assert not list(tmp_path.iterdir())
    (tmp_path / "wine.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        write_data(load("wine"), tmp_path / "wine.csv")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        write_data(load("tiles"), tmp_path / "photos")
    with pytest.raises(DataError, match=r"ends in \.csv"):
        write_data(load("wine"), tmp_path / "wine")
