"""Readers of files and folders: what was written is read again, and what cannot be read gets a sentence."""

import csv
import gzip
import io
import json
import os
import string
import struct
import zlib
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from ddclust.data.readers import images as image_reader
from ddclust.data.readers.files import BY_SUFFIX, FORMATS
from ddclust.data.readers.formats import ReadOptions
from ddclust.data.tables import Columns
from ddclust.datasets import DataError, load, read_labels

PROPERTY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.sampled_from(["<f4", "<f8", ">f8", "<i4", "u1", "<i8", "?"]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False} if "f" in dtype else None,
    )
)
TABLES = hnp.arrays("f8", hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)


def same(a, b):
    np.testing.assert_array_equal(a, b, strict=True)


def test_every_format_declares_suffixes_of_its_own_and_known_options():
    suffixes = [suffix for form in FORMATS for suffix in form.suffixes]
    assert sorted(suffixes) == sorted(BY_SUFFIX)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)
    known = {field.name for field in fields(ReadOptions)}
    assert all(form.options <= known for form in (*FORMATS, image_reader.IMAGE_FOLDER))


# What was written is read again.


@PROPERTY
@given(X=NUMBERS)
def test_npy_round_trip(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    bunch = load(tmp_path / "X.npy")
    assert isinstance(bunch.data, np.memmap)
    same(np.asarray(bunch.data), X)
    assert list(bunch.item_names) == [str(i) for i in range(len(X))]
    assert bunch.item_names[-1:] == [str(len(X) - 1)]


@PROPERTY
@given(X=NUMBERS, with_truth=st.booleans())
def test_npz_round_trip(X, with_truth, tmp_path):
    y = np.arange(len(X))
    np.savez(tmp_path / "X.npz", X=X, **({"y": y} if with_truth else {}))
    bunch = load(tmp_path / "X.npz")
    same(bunch.data, X)
    assert (bunch.target is not None) == with_truth


@PROPERTY
@given(X=TABLES, form=st.sampled_from(["csr", "csc", "coo"]))
def test_sparse_round_trip(X, form, tmp_path):
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.csr_array(X).asformat(form))
    data = load(tmp_path / "X.npz").data
    assert data.format == "csr"
    same(data.toarray(), X)


@PROPERTY
@given(
    X=TABLES,
    header=st.booleans(),
    delimiter=st.sampled_from(",;\t"),
    compressed=st.booleans(),
    bom=st.booleans(),
)
def test_csv_round_trip(X, header, delimiter, compressed, bom, tmp_path):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    if header:
        writer.writerow([f"column {i}" for i in range(X.shape[1])])
    writer.writerows(X.tolist())
    encoded = text.getvalue().encode("utf-8-sig" if bom else "utf-8")
    path = tmp_path / ("X.csv.gz" if compressed else "X.csv")
    path.write_bytes(gzip.compress(encoded) if compressed else encoded)
    looks_like_a_header = X[0].tolist() == list(range(X.shape[1])) and X.shape[1] > 1
    if header or not looks_like_a_header:
        same(load(path).data, X)
        assert load(path).name == "X"


@PROPERTY
@given(X=TABLES, names=st.data())
def test_csv_columns_of_names_and_classes(X, names, tmp_path):
    ids = [names.draw(WORDS) for _ in X]
    classes = [names.draw(st.sampled_from(["cat", "dog"])) for _ in X]
    columns = [f"c{i}" for i in range(X.shape[1])]
    with (tmp_path / "X.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who", *columns, "kind"])
        writer.writerows([i, *x, c] for i, x, c in zip(ids, X.tolist(), classes, strict=True))
    bunch = load(tmp_path / "X.csv", id_column="who", truth_column="kind")
    same(bunch.data, X)
    assert bunch.item_names == ids
    assert [bunch.target_names[code] for code in bunch.target] == classes


@PROPERTY
@given(X=TABLES)
def test_parquet_round_trip(X, tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    frame["id"] = [f"item {i}" for i in range(len(X))]
    frame["remark"] = "none"
    frame["tags"] = [["a", "b"]] * len(X)
    frame.to_parquet(tmp_path / "X.parquet")
    bunch = load(tmp_path / "X.parquet", drop_columns=["remark"])
    same(bunch.data, X)
    assert bunch.item_names == frame["id"].tolist()
    assert any("tags" in note for note in bunch.notes)
    assert any("'id' names the items" in note for note in bunch.notes)


@PROPERTY
@given(texts=st.lists(WORDS.filter(lambda t: t.strip()), min_size=1, max_size=5))
def test_texts_round_trip(texts, tmp_path):
    texts = [text.strip() for text in texts]
    records = [{"id": f"n{i}", "text": text, "kind": i % 2} for i, text in enumerate(texts)]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    pd.DataFrame(records).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(records).to_parquet(tmp_path / "a.parquet")
    assert load(tmp_path / "a.txt").data == texts
    assert load(tmp_path / "a.txt").item_names == [str(2 * i + 1) for i in range(len(texts))]
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        bunch = load(tmp_path / name, text_column="text", truth_column="kind")
        assert bunch.data == texts
        assert bunch.item_names == [record["id"] for record in records]
        assert bunch.target.tolist() == [record["kind"] for record in records]


# What cannot be read gets a sentence that names the file, and nothing else happens.


@settings(parent=PROPERTY, max_examples=150)
@given(
    suffix=st.sampled_from(sorted(BY_SUFFIX)),
    content=st.one_of(
        st.binary(max_size=200),
        st.text(string.printable, max_size=200).map(str.encode),
        st.binary(max_size=50).map(lambda b: b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', " + b),
        st.binary(max_size=50).map(lambda b: b"PAR1" + b + b"PAR1"),
        st.binary(max_size=50).map(lambda b: b"PK\x03\x04" + b),
        st.recursive(
            st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_any_bytes_are_data_or_a_sentence(suffix, content, tmp_path):
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    try:
        bunch = load(path)
    except DataError as error:
        assert path.name in str(error)
    else:
        assert len(bunch.item_names) >= 1


@settings(parent=PROPERTY, max_examples=100)
@given(cut=st.integers(0, 2000), suffix=st.sampled_from([".npy", ".npz", ".parquet", ".csv.gz", ".jsonl.gz"]))
@pytest.mark.filterwarnings("ignore")
def test_cut_files_are_data_or_a_sentence(cut, suffix, tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".npy":
        np.save(whole, X)
    elif suffix == ".npz":
        np.savez(whole, X=X)
    elif suffix == ".parquet":
        pd.DataFrame(X, columns=list("abc")).to_parquet(whole)
    elif suffix == ".csv.gz":
        whole.write_bytes(gzip.compress(pd.DataFrame(X).to_csv().encode()))
    else:
        whole.write_bytes(gzip.compress(b'{"text": "a document"}\n' * 50))
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole.read_bytes()[:cut])
    try:
        load(path)
    except DataError as error:
        assert path.name in str(error)


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.csv", "a,b\n1,1e999\n", {}, "infinite numbers: column 'b' in line 2. Leave such cells empty"),
        ("a.csv", "a,b\nx,2\ny,inf\n", {}, "infinite numbers: column 'b' in line 3"),
        ("a.csv", "a,a\nx,2\ny,3\n", {}, "has several columns 'a'; rename them"),
        ("a.csv", "a,b\nx,2\n", {"kinds": {"c": "number"}}, "has no column 'c'; its columns are a, b"),
        ("a.npy", "", {"kinds": {"c": "number"}}, "kinds={'c': 'number'} does not apply"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", {}, "line 3 has 3 columns, the first one has 2"),
        ("a.csv", "a,b\n1,2\n", {"id_column": "c"}, "has no column 'c'; its columns are a, b"),
        ("a.csv", "id\n1\n", {}, "no column left to cluster"),
        ("a.csv", "\n\n", {}, "is empty"),
        ("a.csv", 'text\n"hello there\nsecond\nthird', {"text_column": "text"}, "cannot be read as a table"),
        ("a.csv", "a,a\n1,2\n", {"truth_column": "a"}, "has several columns 'a'"),
        ("a.csv", "a,kind\n1,x\n2,\n", {"truth_column": "kind"}, "line 3 has no class in column 'kind'"),
        ("a.csv", "a,b\n1,2\n", {"value_columns": ["a", "c"]}, "has no column 'c'"),
        ("a.csv", "a,b\n1,2\n", {"image_size": 8}, "image_size=8 does not apply"),
        ("a.txt", "one\n", {"id_column": "x"}, "id_column='x' does not apply"),
        ("a.tsv", "a\tb\n1\tinf\n", {}, "column 'b' in line 2"),
        ("a.txt", " \n\n", {}, "is empty"),
        ("a.txt", "one\ntw\0o\n", {}, "line 2 holds a zero byte"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', {}, "line 2 is not JSON"),
        ("a.jsonl", "[1]\n", {}, "line 1 is not an object"),
        ("a.jsonl", '{"text": "a"}\n{"text": 5}\n', {}, "line 2: 'text' is not a text but 5"),
        ("a.jsonl", '{"words": "a"}\n', {}, "has no field 'text'; its fields are words"),
        ("a.jsonl", '{"text": "a"}\n', {"text_column": "title,body"}, "has no field 'title'"),
        ("a.jsonl", '{"text": "a", "t": ["x", "y"]}\n', {"truth_column": "t"}, "line 1: 't' is .* one class"),
        ("a.jsonl", "[" * 100_000, {}, "line 1 is not JSON"),
        ("a.parquet", "not at all", {}, "cannot be read as a .parquet file"),
        ("a.doc", "x", {}, "is not a data file"),
        ("a.npy.gz", "x", {}, "is not a data file"),
    ],
)
def test_bad_files(name, content, options, sentence, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=sentence) as caught:
        load(tmp_path / name, **options)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("frame", "options", "sentence"),
    [
        ({"a": [1.0, np.inf], "b": ["x", "y"]}, {}, "infinite numbers: column 'a' in row 1"),
        ({"a": [["x"], ["y"]]}, {}, "no column to cluster"),
        ({"a": []}, {}, "holds no rows"),
        ({"a": [1, 2]}, {"truth_column": "b"}, "has no column 'b'"),
        ({"a": [1, 2], "b": ["x", None]}, {"truth_column": "b"}, "row 1 has no class in column 'b'"),
        ({"a": [[1.0, 2.0], [3.0]]}, {}, "row 1, column 'a' holds 1 values, the first row 2"),
        ({"a": [[1.0, 2.0], None]}, {}, "row 1, column 'a' holds 0 values"),
    ],
)
def test_bad_parquet(frame, options, sentence, tmp_path):
    pd.DataFrame(frame).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=sentence):
        load(tmp_path / "a.parquet", **options)


def test_parquet_keeps_types_and_takes_decimals(tmp_path):
    from decimal import Decimal

    frame = pd.DataFrame({"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32)})
    frame.to_parquet(tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").data.dtype == np.float32
    pd.DataFrame({"a": [Decimal("1.50"), Decimal("2.25")], "b": [True, False]}).to_parquet(
        tmp_path / "b.parquet"
    )
    assert load(tmp_path / "b.parquet").data.tolist() == [[1.5, 1], [2.25, 0]]


def test_parquet_column_of_embeddings(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b"], "mass": [7.0, 8.0], "embedding": [[1.0, 2.0], [3.0, 4.0]]})
    frame.to_parquet(tmp_path / "a.parquet")
    bunch = load(tmp_path / "a.parquet")
    assert bunch.data.tolist() == [[7, 1, 2], [8, 3, 4]]
    assert bunch.feature_names == ["mass", "embedding[0]", "embedding[1]"]
    again = load(tmp_path / "a.parquet", value_columns=bunch.feature_names)
    assert again.data.tolist() == bunch.data.tolist()


@pytest.mark.parametrize("name", ["ID", "Id", ""])
def test_row_numbers_are_names_not_features(name, tmp_path):
    (tmp_path / "a.csv").write_text(f"{name},x,y\n7,1,2\n9,3,4\n")
    bunch = load(tmp_path / "a.csv")
    assert bunch.data.tolist() == [[1, 2], [3, 4]]
    assert bunch.item_names == ["7", "9"]
    assert f"The column {name!r} names the items" in bunch.notes[0]
    frame = pd.DataFrame({"x": [1, 2]}, index=[5, 6])
    frame.to_parquet(tmp_path / "a.parquet")
    bunch = load(tmp_path / "a.parquet")
    assert bunch.data.tolist() == [[1], [2]]
    assert bunch.item_names == ["5", "6"]


def test_a_header_may_hold_years(tmp_path):
    (tmp_path / "a.csv").write_text("name,2019,2020\nx,1,2\ny,3,4\n")
    bunch = load(tmp_path / "a.csv", id_column="name")
    assert bunch.data.tolist() == [[1, 2], [3, 4]]
    assert bunch.feature_names == ["2019", "2020"]


def test_columns_are_found_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("cost,kind,width\n1,x,2\n3,y,4\n")
    assert load(tmp_path / "a.csv", value_columns=["width", "cost"]).data.tolist() == [[2, 1], [4, 3]]


def test_names_that_are_no_utf8_are_escaped(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "\\ud800x", "text": "a"}\n{"id": null, "text": "b"}\n')
    assert load(tmp_path / "a.jsonl").item_names == ["\\ud800x", "2"]


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    import builtins

    usual = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return usual(name, *args, **kwargs)

    (tmp_path / "a.parquet").touch()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match="needs pyarrow; run: pip install pyarrow"):
        load(tmp_path / "a.parquet")


@pytest.mark.parametrize("form", [{}, {"format": np.array(b"csr")}, {"format": np.array(b"csc")}])
@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 9])},
        {"indices": np.array([0, -1])},
        {"indptr": np.array([0, 5, 2])},
        {"shape": np.array([2])},
        {"data": np.array(["a", "b"])},
        {"data": np.array([1.0, np.nan])},
        {"format": np.array("nonsense")},
    ],
)
def test_bad_sparse_files(change, form, tmp_path):
    parts = {
        "data": np.array([1.0, 2.0]),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
        "shape": np.array([2, 2]),
    }
    np.savez(tmp_path / "a.npz", **(parts | form | change))
    with pytest.raises(DataError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


def test_long_texts_and_line_breaks_in_cells(tmp_path):
    long = "word " * 100_000
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["title", "body"], ["a", long], ["b", "two\nlines"]])
    limit = csv.field_size_limit()
    assert load(tmp_path / "a.csv", text_column="title,body").data == [f"a\n{long}", "b\ntwo\nlines"]
    assert csv.field_size_limit() == limit


def test_large_table_is_read_in_chunks(tmp_path, rng):
    X = rng.normal(size=(25_001, 2))
    pd.DataFrame(X).to_csv(tmp_path / "a.csv", index=False, header=["a", "b"])
    same(load(tmp_path / "a.csv").data, X)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("1,oops\n")
    table = load(tmp_path / "a.csv").data
    same(table.columns["a"], np.append(X[:, 0], 1))
    assert table.columns["b"][-1] == "oops"
    assert "words such as 'oops' become" in str(Columns.of(table))


# Folders.


def picture(path, mode="RGB", size=(40, 30), colour=(200, 30, 30), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path, **options)


@pytest.fixture
def photos(tmp_path):
    """Images of every format, mode and size; two classes by sub-folder."""
    folder = tmp_path / "photos"
    picture(folder / "cat" / "a.png")
    picture(folder / "cat" / "b.jpg", size=(300, 500))
    picture(folder / "cat" / "c.GIF", mode="P", colour=3)
    picture(folder / "cat" / "deep" / "d.webp", size=(10, 10))
    picture(folder / "dog" / "e.bmp")
    picture(folder / "dog" / "f.tiff", mode="L", colour=120)
    picture(folder / "dog" / "g.png", mode="RGBA", colour=(0, 0, 0, 0))
    picture(folder / "dog" / "h.ppm")
    picture(folder / "dog" / "i.png", mode="1", colour=1)
    picture(folder / "dog" / "j.png", mode="LA", colour=(10, 255))
    (folder / "README.txt").write_text("about the photos")
    (folder / ".hidden.png").write_text("no image")
    return folder


def test_folder_of_images(photos):
    bunch = load(photos)
    assert bunch.data.shape == (10, 32, 32, 3)
    assert bunch.data.dtype == np.uint8
    assert bunch.item_names[:4] == ["cat/a.png", "cat/b.jpg", "cat/c.GIF", "cat/deep/d.webp"]
    assert bunch.target.tolist() == [0] * 4 + [1] * 6
    assert bunch.target_names == ["cat", "dog"]
    images = dict(zip(bunch.item_names, bunch.data, strict=True))
    assert images["cat/a.png"][16, 16].tolist() == [200, 30, 30]
    assert np.abs(images["cat/b.jpg"][16, 16].astype(int) - [200, 30, 30]).max() < 5
    assert images["dog/g.png"][0, 0].tolist() == [255, 255, 255]  # transparent is white
    assert images["dog/i.png"][0, 0].tolist() == [255, 255, 255]
    assert images["dog/j.png"][0, 0].tolist() == [10, 10, 10]


@pytest.mark.parametrize(("size", "colour", "shape"), [(16, "grey", (16, 16)), ((9, 12), "rgb", (9, 12, 3))])
def test_size_and_colour_as_asked_for(photos, size, colour, shape):
    assert load(photos, image_size=size, colour=colour).data.shape == (10, *shape)


def test_small_images_of_one_size_stay_as_they_are(tmp_path, rng):
    pixels = rng.integers(0, 256, size=(12, 28, 20), dtype=np.uint8)
    (tmp_path / "a").mkdir()
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "a" / f"{i:02}.png")
    bunch = load(tmp_path / "a")
    same(bunch.data, pixels)
    assert bunch.target is None
    assert load(tmp_path / "a", colour="rgb").data.shape == (12, 28, 20, 3)


def test_images_of_16_bits_are_scaled_not_clipped(tmp_path):
    ramp = np.linspace(0, 65535, 64 * 64).reshape(64, 64).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    read = image_reader.read_image(tmp_path / "a.png", (64, 64))[0]
    np.testing.assert_allclose(read, ramp / 257, atol=1.5)


def test_images_lie_upright(tmp_path):
    upright = Image.new("L", (64, 64))
    upright.paste(255, (0, 0, 64, 32))  # bright above
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    upright.rotate(180).save(tmp_path / "a.jpg", exif=exif, quality=95)
    read = image_reader.read_image(tmp_path / "a.jpg", (64, 64))[0]
    assert read[:30].mean() > 250
    assert read[34:].mean() < 5


def test_crop_is_central(tmp_path):
    wide = Image.new("L", (90, 30))
    wide.paste(255, (30, 0, 60, 30))
    wide.save(tmp_path / "a.png")
    assert (image_reader.read_image(tmp_path / "a.png", (30, 30))[0] == 255).all()


def test_a_few_unreadable_images_are_listed_and_skipped(photos, tmp_path):
    for i in range(10):
        picture(photos / "cat" / f"more{i}.png")
    (photos / "cat" / "text.png").write_text("no image at all")
    cut = (photos / "cat" / "b.jpg").read_bytes()
    (photos / "dog" / "cut.jpg").write_bytes(cut[: len(cut) // 2])
    (photos / "dog" / "empty.jpg").touch()
    (photos / "dog" / "jpeg.png").write_bytes(cut)  # a JPEG by another name
    (photos / "dog" / "page.eps").write_text(
        "%!PS-Adobe-3.0 EPSF-3.0\n"
    )  # never opened: it would run a program
    bunch = load(photos)
    assert set(bunch.skipped) == {"cat/text.png", "dog/cut.jpg", "dog/empty.jpg"}
    assert bunch.skipped["cat/text.png"] == "not an image"
    assert "truncated" in bunch.skipped["dog/cut.jpg"]
    assert len(bunch.data) == len(bunch.item_names) == len(bunch.target) == 21
    images = dict(zip(bunch.item_names, bunch.data, strict=True))
    same(images["dog/jpeg.png"], images["cat/b.jpg"])
    same(images["cat/more9.png"], images["cat/a.png"])


def test_what_is_no_file_or_visited_before_is_passed_over(photos):
    os.mkfifo(photos / "cat" / "pipe.png")
    (photos / "cat" / "again").symlink_to(photos)
    (photos / "dangling.png").symlink_to(photos / "nowhere.png")
    outside = photos.parent / "outside"
    picture(outside / "z.png")
    (photos / "bird").symlink_to(outside)
    bunch = load(photos)
    assert len(bunch.data) == 11
    assert bunch.target_names == ["bird", "cat", "dog"]


def test_one_colour_image_that_was_not_looked_at_makes_all_colour(tmp_path, monkeypatch):
    monkeypatch.setattr(image_reader, "SAMPLED_FILES", 5)
    for i in range(20):
        picture(tmp_path / "a" / f"{i:02}.png", mode="L", colour=i, size=(9, 9))
    assert load(tmp_path / "a").data.shape == (20, 9, 9)
    picture(tmp_path / "a" / "03.png", size=(9, 9))
    assert load(tmp_path / "a").data.shape == (20, 9, 9, 3)


def test_values_without_a_range_are_refused(photos):
    Image.fromarray(np.full((30, 30), 3.5, dtype=np.float32)).save(photos / "cat" / "f.tiff")
    Image.fromarray(np.full((30, 30), 10**6, dtype=np.int32)).save(photos / "cat" / "i.tiff")
    assert set(load(photos).skipped) == {"cat/f.tiff", "cat/i.tiff"}


def test_images_with_annotations_are_images(photos):
    for i in range(15):
        (photos / "cat" / f"{i}.txt").write_text("0 0.5 0.5 0.1 0.1")
    (photos / "notes.heic").touch()
    bunch = load(photos)
    assert bunch.data.ndim == 4
    assert bunch.notes == [
        "Files of other kinds are left out: 16 .txt, 1 .heic.",
        "The sub-folders (cat, dog) are taken as known classes, only to score the clusters.",
    ]


def test_too_many_unreadable_images_are_an_error(photos):
    for i in range(5):
        (photos / f"bad{i}.png").write_text("x")
    with pytest.raises(DataError, match=r"5 of the 15 images in .* cannot be read \(bad0.png: not an image"):
        load(photos)


@pytest.mark.parametrize("side", [10_500, 20_000])  # beyond our limit, and beyond Pillow's
def test_decompression_bombs_are_refused(photos, side):
    picture(photos / "cat" / "bomb.png", mode="1", size=(1, 1), colour=0)
    content = bytearray((photos / "cat" / "bomb.png").read_bytes())
    content[16:24] = struct.pack(">II", side, side)  # the size that the header claims
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    (photos / "cat" / "bomb.png").write_bytes(content)
    bunch = load(photos)
    assert list(bunch.skipped) == ["cat/bomb.png"]
    assert "pixels" in bunch.skipped["cat/bomb.png"]


def test_many_images_are_read_by_several_processes_in_order(tmp_path, monkeypatch):
    used = []
    usual = image_reader.in_workers

    def watched(tasks, n_jobs, **options):
        used.append(n_jobs)
        return usual(tasks, n_jobs=n_jobs, **options)

    monkeypatch.setattr(image_reader, "in_workers", watched)
    monkeypatch.setattr(image_reader, "TASK_FILES", 20)
    folder = tmp_path / "many"
    for i in range(300):
        picture(folder / f"{i:03}.png", mode="L", size=(8, 8), colour=i % 256)
    (folder / "150.png").write_text("no image")
    bunch = load(folder)
    assert used == [-1]
    assert bunch.data[:, 0, 0].tolist() == [i % 256 for i in range(300) if i != 150]
    assert bunch.item_names[149:151] == ["149.png", "151.png"]


def test_more_images_than_fit_in_memory_are_a_file(photos, monkeypatch):
    expected = load(photos).data
    monkeypatch.setattr(image_reader, "IN_MEMORY_BYTES", 1000)
    bunch = load(photos)
    name = bunch.data.base.filename if bunch.data.filename is None else bunch.data.filename
    same(np.asarray(bunch.data), expected)
    from pathlib import Path

    assert Path(name).exists()
    del bunch
    assert not Path(name).exists()


def test_folder_of_texts(tmp_path):
    for name in ("sea/a.txt", "sea/b.txt", "land/c.txt", "land/d.txt", "land/e.txt"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\nin two lines")
    (tmp_path / "docs" / "land" / "e.txt").write_bytes(b"\xff\xfe\x00")
    bunch = load(tmp_path / "docs")
    assert bunch.item_names == ["land/c.txt", "land/d.txt", "sea/a.txt", "sea/b.txt"]
    assert bunch.data[2] == "text of sea/a.txt\nin two lines"
    assert bunch.target.tolist() == [0, 0, 1, 1]
    assert bunch.skipped == {"land/e.txt": "not in UTF-16"}


def test_empty_folder(tmp_path):
    with pytest.raises(DataError, match="holds no images or texts"):
        load(tmp_path)


@pytest.mark.parametrize("options", [{"colour": "blue"}, {"image_size": 0}])
def test_bad_options_for_images(photos, options):
    with pytest.raises(DataError, match=next(iter(options))):
        load(photos, **options)


def test_labels_with_any_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text("item;cluster\nx;2\ny;1\n")
    read = read_labels(tmp_path / "a.csv")
    assert read.labels.tolist() == ["2", "1"]
    assert read.item_names == ["x", "y"]
