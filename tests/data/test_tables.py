"""Tables with gaps, words, dates and texts: what columns are taken for, the vectors made of them, and models of them."""

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ddclust import DDC, Table
from ddclust.baselines import DEC
from ddclust.data.batches import Scaling
from ddclust.data.outliers import outliers
from ddclust.data.tables import Columns, mixed_table
from ddclust.data.tables.cells import ISO, column_of, decimal_comma_numbers, parsed_date
from ddclust.data.tables.guess import described_column, guessed_kind
from ddclust.data.tables.kinds import (
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    TextColumn,
)
from ddclust.data.tables.units import NumberForm
from ddclust.datasets import load
from ddclust.storage.model_folder import ModelFormatError
from helpers import edit, quick

WORDS = [
    "oil",
    "price",
    "ship",
    "goal",
    "match",
    "river",
    "lake",
    "mountain",
    "bank",
    "money",
    "bread",
    "train",
]
N = 120


def frame(seed=0, n=N):
    """A table with a column of every kind."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 1000,
            "mass (kg)": np.where(rng.random(n) < 0.2, np.nan, rng.normal(60, 9, n)),
            "pay": rng.lognormal(3, 2, n),
            "species": rng.choice(["Adelie", "Gentoo"], n),
            "city": [f"city {int(x)}" for x in rng.exponential(15, n)],
            "day": rng.choice([20240131, 20230530, 20220101], n),
            "member": np.where(rng.random(n) < 0.1, None, rng.choice(["yes", "no"], n)),
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "remark": [" ".join(rng.choice(WORDS, 8)) for _ in range(n)],
            "land": "NO",
        }
    )


@pytest.fixture(scope="module")
def model():
    return quick(max_iter=10).fit(frame())


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", [1, 2.5, None, 4], "number"),
        ("a", ["1", "2", "3", "x"] * 2, "category"),
        ("a", [*map(str, range(0, 40, 2)), "x"], "number"),
        ("a", ["1,200", "3,400.5", "7"], "number"),
        ("a", ["12 kg", "3.5 kg", None, "1,200 kg"], "number"),
        ("a", ["$1,200", "-$5", "$3.50"], "number"),
        ("a", ["3.4 %", "2 %"], "number"),
        ("a", ["1.200,50 €", "3 €"], "number"),
        ("a", ["CHF 1'200.00", "CHF 7.50"], "number"),
        ("a", ["1,5", "2,25", "7"], "number"),
        ("a", ["12 kg", "3 lb"] * 4, "category"),
        ("a", ["1A", "2B", "3A"] * 4, "category"),
        (
            "a",
            [f"{i} {'kg' if i % 3 else 'lb'}" for i in range(20)],
            "numbers in different units: kg, lb; convert them to one",
        ),
        ("a", [0, 1, 1, None], "boolean"),
        ("a", [True, False, True], "boolean"),
        ("a", ["Yes", "no", None], "boolean"),
        ("a", ["m", "f", "m"], "category"),
        ("a", [3, 4, 5, 6], "an id, all values differ"),
        ("a", [3, 5, 4, 6], "number"),
        ("PassengerId", [3, 5, 4, 6], "an id, all values differ"),
        ("paid", [3, 5, 4, 6], "number"),
        ("user-id", [f"u{i % 30}" for i in range(90)], "an id by its name"),
        ("name", [f"n{i}" for i in range(30)], "an id, all values differ"),
        ("name", [f"n{i}" for i in range(29)] + ["n0"], "an id, nearly all values differ"),
        ("a", ["2024-01-31", "2023-02-01", None], "date"),
        ("a", ["2024-01-31T10:00:00Z", "2024-01-31 11:30:00+02:00"], "date"),
        ("a", ["31.12.2024", "01.02.2023"], "date"),
        ("a", [20240131, 20231201, None], "date"),
        ("a", [20240131, 20231299, None], "number"),
        ("a", ["12/31/2024", "01/02/2023"], "date"),
        ("a", ["31/12/2024 10:15", "01/02/2023 08:00"], "date"),
        ("a", ["3 Mar 2021", "14 Apr 2022"], "date"),
        ("a", np.array(["2024-01", "2024-03"], dtype="datetime64[M]"), "date"),
        ("a", ["the ship sails at dawn to sea", "a loaf of bread is in oven", "x y z u v w"], "text"),
        ("a", ["I do not agree with this at all", "I agree with all of it fully"] * 10, "category"),
    ],
)
def test_the_guess(name, values, kind):
    assert guessed_kind(name, column_of(values)) == kind


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        ("number", NumberColumn),
        ("category", CategoryColumn),
        ("date", DateColumn),
        ("boolean", BooleanColumn),
        ("text", TextColumn),
    ],
)
def test_the_guess_can_be_corrected(kind, described):
    values = {"date": ["2024-01-01", "2024-01-02"], "text": ["big ship", "red bread"]}.get(kind, ["1", "2"])
    assert isinstance(described_column("a", column_of(values), kind, "english"), described)
    left_out = described_column("a", column_of(values), "id", "english")
    assert left_out.done == "left out: an id"


def test_gaps_become_the_median_with_a_flag():
    column = NumberColumn.of("a", column_of([1, 3, 5, None]))
    encoded = column.encode(column_of([3, None, "word"]))
    assert encoded[0, 0] == encoded[1, 0] == encoded[2, 0] == 0  # the mean of 1, 3, 5, 3 is the median, too
    assert encoded[0, 1] < 0 < encoded[1, 1] == encoded[2, 1]
    assert column.features == ("a", "a missing")
    assert NumberColumn.of("a", column_of([1, 3, 5])).encode(column_of([None])).shape == (1, 1)


def test_every_column_weighs_as_much_as_a_number(model):
    columns, table = model.columns_, Table(frame())
    for column in columns.used:
        encoded = column.encode(table.columns[column.name])
        flags = [name.endswith(" missing") and column.kind != "category" for name in column.features]
        weight = encoded[:, ~np.array(flags)].var(axis=0).sum()
        assert weight == pytest.approx(1, abs=0.1) or (column.name == "city" and 0.25 < weight < 1), (
            column.name
        )
        assert encoded.shape[1] == len(column.features)
        assert np.abs(encoded.mean(axis=0)).max() < 1e-5


def test_a_rare_level_is_no_farther_than_a_frequent_one():
    rare, even = column_of(["a"] * 999 + ["b"]), column_of(["a", "b"] * 500)
    for kind in (CategoryColumn, BooleanColumn):
        far = [np.ptp(kind.of("x", values).encode(column_of(["a", "b"])), axis=0) for values in (rare, even)]
        np.testing.assert_allclose(far[0], far[1])
        assert np.linalg.norm(far[0]) == pytest.approx(2)  # of a number, two standard deviations


def test_many_levels_are_hashed():
    rng = np.random.default_rng(0)
    values = column_of(["often"] * 300 + [f"level {i}" for i in rng.integers(0, 200, 700)])
    column = CategoryColumn.of("a", values)
    assert column.levels == ("often",) or column.levels[0] == "often"
    assert column.n_buckets == 8
    rows = column._indicators(column_of(["often", "level 3", "never seen", None]))
    assert rows.sum(axis=1).tolist() == [1, 1, 1, 0]
    assert "hashed groups" in column.done
    # The same on every machine and in every process.
    assert rows.argmax(axis=1).tolist()[:3] == [
        0,
        *column._indicators(column_of(["level 3", "never seen"])).argmax(axis=1),
    ]


def test_heavy_tails_become_ranks():
    rng = np.random.default_rng(0)
    values = np.append(rng.lognormal(0, 2, 500), 1e300)
    column = NumberColumn.of("a", values)
    assert column.quantiles
    encoded = column.encode(np.sort(values)).ravel()
    assert (np.diff(encoded) >= 0).all()
    assert np.abs(encoded).max() < 4
    assert np.isfinite(NumberColumn.of("a", column_of([1e300, -1e300, 1.0, 2.0])).encode(values)).all()
    assert not NumberColumn.of("a", rng.normal(size=500)).quantiles
    assert not NumberColumn.of("a", rng.exponential(size=5000)).quantiles


def test_dates_have_the_cycles_that_they_span():
    def cycles(start, **steps):
        return DateColumn.of(
            "a", pd.date_range(start, periods=40, **steps).to_numpy().astype("datetime64[us]")
        ).cycles

    assert cycles("2020-01-01", freq="min") == ()
    assert cycles("2020-01-01", freq="7h") == ("hour",)
    assert cycles("2020-01-01", freq="D") == ("weekday",)
    assert cycles("2020-01-01", freq="MS") == ("month",)
    midnight, same = (
        DateColumn.of(
            "a", column_of(["2020-01-01 23:59", "2020-01-05 00:01", "2020-01-03 12:00"] * 9)
        ).encode(column_of([time]))
        for time in ("2020-01-09 23:59", "2020-01-10 00:01")
    )
    np.testing.assert_allclose(midnight[:, 1:], same[:, 1:], atol=0.02)


def test_texts_become_topics():
    texts = ["the ship sails on the sea with sailors", "bread is baked in the oven by bakers"] * 20
    column = TextColumn.of("a", column_of(texts), "english")
    ships, bread, nothing = column.encode(column_of(["a ship at sea", "baking bread", None]))
    mine = column.encode(column_of(texts[:1]))[0]
    assert np.linalg.norm(mine - ships) < np.linalg.norm(mine - bread)
    assert np.isfinite(nothing).all()


def test_numbers_share_a_unit():
    column = NumberColumn.of("mass", column_of(["10 kg", "1,000 kg", None, "70 kg"]))
    assert (column.unit, column.median, column.heading) == ("kg", 70.0, "mass (kg)")
    assert column.done == "in kg, standardised; gaps become 70, with a flag"
    words, numbers = column_of(["70 kg", "70", "70 lb"]), column_of([70.0])
    assert column.numbers(words).tolist()[:2] == [70.0, 70.0]
    assert np.isnan(column.numbers(words)[2])  # not taken for kilograms
    assert column.numbers(numbers).tolist() == [70.0]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["1.200 €", "850 €"], [1200, 850]),
        (["1.234,5 €", "-2 €"], [1234.5, -2]),
        (["$1.250", "$3.5"], [1.25, 3.5]),
        (["−3 °C", "4 °C"], [-3, 4]),
        (["1 200 km", "3 km"], [1200, 3]),
        (["1,20,000", "7"], [120000, 7]),
        (["1e3 m", "2 m"], [1000, 2]),
        (["0,123", "0,5"], [0.123, 0.5]),
    ],
)
def test_how_numbers_are_written(words, numbers):
    assert NumberForm.of(column_of(words)).numbers(column_of(words)).tolist() == numbers


def test_different_units_stay_apart():
    column = CategoryColumn.of("mass", column_of(["1 kg", "2 lb", "1 kg"]))
    assert column.done == "2 levels: 1 kg, 2 lb; as numbers, convert kg, lb to one unit"
    assert CategoryColumn.of("seat", column_of(["1A", "2B"])).units == ()
    with pytest.raises(
        ValueError, match=r"'mass' holds numbers in different units: kg, lb; convert them to one"
    ):
        described_column("mass", column_of(["1 kg", "2 lb"]), "number", "english")


def test_descriptions_of_earlier_versions_have_no_units():
    plain, arrays = Columns.of(Table({"a": [1.0, None, 3.0], "b": ["x", "y", "x"]})).to_plain()
    for own in plain["described"]:
        own.pop("unit", None), own.pop("decimal", None), own.pop("units", None)
    assert Columns.from_plain(plain, arrays).names == ("a", "b")


def test_decimal_commas():
    assert decimal_comma_numbers(["1.234,5", "-7", ",5", None])[:3].tolist() == [1234.5, -7, 0.5]
    assert decimal_comma_numbers(["1,5", "word"]) is None


def test_the_same_table_from_anywhere(tmp_path, model):
    table = frame()
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    everywhere = {
        "polars": pl.from_pandas(table),
        "arrow": pa.Table.from_pandas(table),
        "categories": table.astype({"species": "category", "city": "string"}),
        "csv": load(tmp_path / "a.csv").data,
        "parquet": load(tmp_path / "a.parquet").data,
        "mapping": Table(table.to_dict("list")),
    }
    expected = Columns.of(Table(table))
    vectors = expected.encode(Table(table))
    for name, other in everywhere.items():
        found = other if isinstance(other, Table) else mixed_table(other)
        columns = Columns.of(found)
        assert columns.kinds == expected.kinds, name
        np.testing.assert_allclose(columns.encode(found), vectors, atol=1e-5, err_msg=name)
        np.testing.assert_array_equal(model.predict(other), model.labels_, err_msg=name)


def test_numbers_without_gaps_are_left_alone(blobs):
    X = blobs[0]
    alone = pd.DataFrame(X, columns=["a", "b"])
    by_array = quick(max_iter=10).fit(X)
    for plain in (alone, pl.from_pandas(alone), alone.astype(object)):
        by_frame = quick(max_iter=10).fit(plain)
        np.testing.assert_array_equal(by_frame.probabilities_, by_array.probabilities_)
        assert not hasattr(by_frame, "columns_")
    assert mixed_table(alone.assign(c=True)) is None


def test_attributes_are_those_of_scikit_learn(model):
    table = frame()
    assert model.n_features_in_ == table.shape[1]
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    assert model.item_shape_ == (len(model.columns_.features),)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    assert model.columns_.names == tuple(table.columns)


def test_new_tables_need_not_look_the_same(model):
    table = frame()
    shuffled = table[table.columns[::-1]].drop(columns=["land", "customer_id"]).assign(extra="x")
    np.testing.assert_array_equal(model.predict(shuffled), model.labels_)
    strange = table.head(3).assign(
        species="Emperor", city="nowhere", pay=None, since="not a day", remark=None
    )
    assert np.isfinite(model.predict_proba(strange)).all()
    np.testing.assert_array_equal(model.predict(table.to_numpy(dtype=object)), model.labels_)
    with pytest.raises(
        ValueError, match="X lacks 2 columns of the fit: 'pay', 'species'; add them, possibly empty"
    ):
        model.predict(table.drop(columns=["pay", "species"]))
    with pytest.raises(ValueError, match="fitted on a table of 10 columns; give a data frame"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="X holds inf in row 1, column 'pay'"):
        model.predict(table.assign(pay=[1, np.inf] + [2] * (N - 2)))


def test_a_model_of_numbers_takes_no_gaps(blobs):
    fitted = quick(max_iter=5).fit(pd.DataFrame(blobs[0], columns=["a", "b"]))
    with pytest.raises(ValueError, match="NaN in row 0"):
        fitted.predict(pd.DataFrame({"a": [None, 1.0], "b": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="was fitted on numbers without gaps"):
        fitted.predict(Table({"a": [None, 1.0], "b": [1.0, 2.0]}))
    assert not hasattr(quick(max_iter=5).fit(frame()).fit(blobs[0]), "columns_")


def test_a_few_extreme_rows_of_a_table_give_no_warning(recwarn):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, None] * 5 + [1e9], "b": ["x", "y", "z"] * 7})
    quick(2, max_iter=5).fit(table)
    assert not [warning for warning in recwarn if "look alike" in str(warning.message)]


def test_values_at_the_edges_of_numbers_and_dates():
    with pytest.raises(
        ValueError, match="The column 'a' holds a number beyond the range of floating-point numbers"
    ):
        Table({"a": [10**400, None]})
    with pytest.raises(ValueError, match="The column 'a' holds 0001-01-01 .*, which is no date in UTC"):
        Table({"a": [datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))]})
    assert parsed_date("0001-01-01T00:00:00+05:00", ISO) is None
    assert parsed_date("0001-01-02T00:00:00+05:00", ISO) == datetime(1, 1, 1, 19)


def test_a_feature_that_is_nearly_constant_stops_no_fit():
    """Of a table with more features than columns; it was looked up among the columns."""
    notes = ["a seal seen on the ice", "a ship seen at sea", "a seal seen at sea"]
    table = Table(
        {"a": [1.0, None, 3.0] * 20, "note": [f"{note} {n}" for n, note in enumerate(notes * 20)]},
        {"note": "text"},
    )
    X = Columns.of(table).encode(table)
    assert outliers(X, Scaling.none(X)) is not None
    assert len(quick(2, max_iter=5).fit(table).labels_) == 60


def test_dec_takes_tables():
    fitted = DEC(2, layers=(8, 4), layer_iter=5, finetune_iter=5, max_iter=5, random_state=0).fit(frame())
    np.testing.assert_array_equal(fitted.predict(frame()), fitted.labels_)


@pytest.mark.parametrize(
    ("data", "kinds", "sentence"),
    [
        (
            {"a": ["x", "x"], "b": [None, None]},
            {},
            "No column of X can be clustered: 'a' is left out: the same every",
        ),
        (
            {"a": [1, None]},
            {"a": "colour"},
            "The column 'a' cannot be a 'colour'; there are the kinds number,",
        ),
        ({"a": [1, None]}, {"b": "number"}, "kinds names 'b', but X has no such column"),
        ({"a": ["x", "y"]}, {"a": "number"}, "The column 'a' holds no numbers"),
        (
            {"a": ["x", "y", "z"]},
            {"a": "boolean"},
            "The column 'a' has 3 different values; a boolean has two",
        ),
        ({"a": ["x", "y"]}, {"a": "date"}, "The column 'a' holds no dates that can be read"),
        ({"a": ["1", "2"]}, {"a": "text"}, "The column 'a' cannot be read as texts"),
        ({"a": [[1], [2]]}, {}, "The column 'a' holds lists; make a column of each"),
        ({"a": [1.0, np.inf], "b": ["x", "y"]}, {}, "X holds inf in row 1, column 'a'; remove such values"),
        ({}, {}, "X has no columns"),
    ],
)
def test_tables_that_cannot_be_clustered(data, kinds, sentence):
    with pytest.raises(ValueError, match=sentence):
        quick(2, max_iter=5).fit(Table(data, kinds))


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = DDC.load(tmp_path / "model")
    assert str(loaded.columns_) == str(model.columns_)
    assert loaded.n_features_in_ == model.n_features_in_
    np.testing.assert_array_equal(loaded.predict_proba(frame(seed=1)), model.predict_proba(frame(seed=1)))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_text() == (tmp_path / "model" / "model.json").read_text()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mass (kg)", {"scale": 0.0}),
        ("mass (kg)", {"scale": "1"}),
        ("mass (kg)", {"median": None}),
        ("mass (kg)", {"gap_share": 1.0}),
        ("mass (kg)", {"gaps": 0}),
        ("mass (kg)", {"gaps": 10**400}),
        ("mass (kg)", {"gaps": -1}),
        ("mass (kg)", {"name": 5}),
        ("mass (kg)", {"name": "pay"}),
        ("mass (kg)", {"name": "other"}),
        ("mass (kg)", {"kind": "pickle"}),
        ("mass (kg)", {"kind": "text"}),
        ("mass (kg)", {"kind": ["number"]}),
        ("mass (kg)", {"more": 1}),
        ("pay", {"quantiles": [3.0, 1.0]}),
        ("pay", {"quantiles": 5}),
        ("species", {"levels": ["Adelie"]}),
        ("species", {"levels": ["Adelie", "Adelie"]}),
        ("species", {"shares": [0.5, 2.0]}),
        ("species", {"shares": [0.5, "x"]}),
        ("city", {"n_buckets": 10**9}),
        ("city", {"n_buckets": -1}),
        ("member", {"share": 7.0}),
        ("since", {"form": "%%"}),
        ("since", {"median": 1e300}),
        ("since", {"cycles": ["eon", "weekday"]}),
        ("since", {"cycle_scales": []}),
        ("remark", {"stems": ["one"]}),
        ("remark", {"language": "klingon"}),
        ("remark", {"scale": -1.0}),
        ("remark", {"kind": "left out"}),
        ("land", {"kind": "number"}),
    ],
)
def test_damaged_columns_are_refused(model, tmp_path, name, change):
    model.save(tmp_path / "model")
    columns = edit(tmp_path / "model")["columns"]
    own = next(column for column in columns["described"] if column["name"] == name)
    own.update(change)
    edit(tmp_path / "model", columns=columns)
    with pytest.raises(ModelFormatError) as caught:
        DDC.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        [],
        5,
        {"described": [], "n_rows": 1},
        {"described": 3, "n_rows": 1},
        {"described": [{}], "n_rows": 1},
    ],
)
def test_no_columns_at_all_are_refused(model, tmp_path, columns):
    model.save(tmp_path / "model")
    edit(tmp_path / "model", columns=columns)
    with pytest.raises(ModelFormatError):
        DDC.load(tmp_path / "model")


def test_descriptions_are_json(model):
    plain, arrays = model.columns_.to_plain()
    again = Columns.from_plain(json.loads(json.dumps(plain)), arrays)
    np.testing.assert_array_equal(again.encode(Table(frame())), model.columns_.encode(Table(frame())))


def test_a_table_is_known_by_its_values():
    table = Table(frame())
    assert table.sha256() == Table(frame()).sha256()
    for other in (frame(1), frame().rename(columns={"pay": "paid"}), frame().assign(city=None)):
        assert Table(other).sha256() != table.sha256()
    assert Table(frame(), {"pay": "category"}).sha256() != table.sha256()
    assert len(table[np.array([3, 1])]) == 2


def test_a_column_that_is_called_an_id_names_the_items(tmp_path):
    file = tmp_path / "customers.csv"
    rows = "".join(f"C{i},{'Oslo' if i % 2 else 'Rome'},{i}\n" for i in range(30))
    file.write_text(f"customer id,city,age\n{rows}")
    bunch = load(file)
    assert bunch.item_names[:2] == ["C0", "C1"]
    assert "The column 'customer id' names the items and is not clustered." in bunch.notes
    file.write_text(f"customer id,city,age\n{rows.replace('C1,', 'C0,')}")  # that one calls two rows the same
    assert list(load(file).item_names[:2]) == ["0", "1"]
