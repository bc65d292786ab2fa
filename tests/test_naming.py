"""Names that are proposed for clusters."""

import numpy as np
import pandas
import pytest
import scipy.sparse

from ddclust import DDC
from ddclust.naming import feature_gaps, proposed_names, sample_of_clusters, telling_words
from helpers import quick


def fitted(X, labels):
    """A model of X that was told its clusters."""
    model = DDC(int(max(labels)) + 1, n_init=1, max_iter=2, random_state=0).fit(X)
    model.labels_ = np.array(labels)
    return model


def test_sample_holds_some_of_every_cluster():
    labels = np.zeros(10_000, dtype=int)
    labels[:3] = 1
    sample = sample_of_clusters(labels, 100, np.random.default_rng(0))
    assert 1 in labels[sample]
    assert 100 <= len(sample) <= 110
    assert len(np.unique(sample)) == len(sample)
    assert sample_of_clusters(labels[:50], 100, np.random.default_rng(0)).tolist() == list(range(50))


def test_telling_words():
    X = scipy.sparse.csr_array([[1.0, 0, 0.2], [1, 0, 0.2], [0, 3, 0.2], [0, 1, 0.2]])
    words = ["cat", "stock", "said"]
    assert telling_words(X, np.array([0, 0, 1, 1]), 0, words, 2) == ["cat"]
    assert telling_words(X, np.array([0, 0, 1, 1]), 1, words, 2) == ["stock"]
    assert telling_words(X, np.array([0, 0, 1, 1]), 2, words, 2) == []  # an empty cluster


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_feature_gaps(make):
    X = make([[0.0, 5, 1], [0, 5, 2], [10, 5, 1], [10, 5, 2]])
    assert feature_gaps(X, np.array([0, 0, 1, 1]), 0).tolist() == [-2, 0, 0]
    assert not feature_gaps(X, np.zeros(4, dtype=int), 0).any()


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_texts_are_named_by_whole_words():
    texts = ["Quarterly earnings payable", "earnings payable soon", "goalkeepers saved goals", "a saved goal"]
    names = proposed_names(fitted(texts, [0, 0, 1, 1]), texts)
    assert set(names[0].split(", ")[:2]) == {"earnings", "payable"}  # the stems are earn and payabl
    assert "saved" in names[1]


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_tables_are_named_by_columns():
    table = pandas.DataFrame({"mass (kg)": [1.0, 1, 9, 9, 1, 1], "age": [2.0, 2.1, 2, 2.1, 7, 7.1]})
    assert proposed_names(fitted(table, [0, 0, 1, 1, 2, 2]), table) == {
        0: "low mass",
        1: "high mass",
        2: "high age",
    }


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_no_two_names_are_the_same():
    """Clusters of one telling column get another one, and those that nothing else tells apart their numbers."""
    table = pandas.DataFrame({"a": [9.0, 9, 9, 9, 0, 0, 0, 0], "b": [1.0, 1, 2, 2, 1, 1, 2, 2]})
    names = proposed_names(fitted(table, [0, 0, 1, 1, 2, 2, 3, 3]), table)
    assert len(set(names.values())) == 4
    assert proposed_names(fitted(table[["a"]], [0, 1, 0, 1, 2, 2, 2, 2]), table[["a"]]) == {
        0: "high a (0)",
        1: "high a (1)",
        2: "low a",
    }


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_strange_columns_make_short_names_on_one_line():
    table = pandas.DataFrame({"x" * 200 + "\n=y": [0.0, 0, 1, 1]})
    for name in proposed_names(fitted(table, [0, 0, 1, 1]), table).values():
        assert len(name) <= 40
        assert "\n" not in name


def test_images_are_named_by_a_typical_one(images):
    model = quick(2, max_iter=30).fit(images)
    files = [f"{i}.png" for i in range(60)]
    for cluster, name in proposed_names(model, images, files).items():
        assert model.labels_[files.index(name.removeprefix("like "))] == cluster
    assert all(name.startswith("like item ") for name in proposed_names(model, images).values())


@pytest.mark.filterwarnings("ignore:The clustering uses")
def test_empty_clusters_and_single_ones_have_no_name():
    X = np.random.default_rng(0).random((10, 2))
    model = fitted(X, [0] * 9 + [2])
    assert set(proposed_names(model, X)) == {0, 2}
    model = DDC(1, n_init=1, max_iter=2, random_state=0).fit(X)
    assert proposed_names(model, X) == {}


def test_clusters_of_tables_are_named_by_levels_and_columns():
    kind = np.arange(40) % 2
    table = pandas.DataFrame(
        {
            "species": np.array(["Adelie", "Gentoo"])[kind],
            "mass (g)": np.where(np.arange(40) % 20 < 2, np.nan, 3700.0 + np.arange(40) % 7),
        }
    )
    model = DDC(2, n_init=1, max_iter=5, random_state=0).fit(table)
    model.labels_ = kind
    assert sorted(proposed_names(model, table).values()) == ["species = Adelie", "species = Gentoo"]
    model.labels_ = (table["mass (g)"] > 3703).to_numpy().astype(np.int64)
    assert proposed_names(model, table)[1] == "high mass"
    model.labels_ = table["mass (g)"].isna().to_numpy().astype(np.int64)
    assert proposed_names(model, table)[1] == "mass (g) missing"
