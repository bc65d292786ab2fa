"""What the estimators check before they use data, and how they say what is wrong."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import BaseEstimator
from torch.utils.data import TensorDataset

from ddclust.baselines import SEC
from ddclust.data.containers import as_items, is_read_in_pieces
from ddclust.data.items import BlockItems, SparseItems
from ddclust.data.validation import check_items, check_items_can_be_clustered, check_vectors
from helpers import quick


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0], [3.0, 4.0]],
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        TensorDataset(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(2)),
    ],
)
def test_sequences_and_tensors_are_arrays(X):
    assert as_items(X).tolist() == [[1, 2], [3, 4]]


def test_arrays_tables_and_sparse_matrices_stay_as_they_are():
    for X in (np.eye(3), pd.DataFrame(np.eye(3)), scipy.sparse.csr_array(np.eye(3)), BlockItems(np.eye(3))):
        assert as_items(X) is X
        assert is_read_in_pieces(X) == isinstance(X, BlockItems)


@pytest.mark.parametrize(
    "X", [np.eye(4), pd.DataFrame(np.eye(4), columns=list("abcd")), np.zeros((4, 3, 2, 2))]
)
def test_the_shape_of_an_item_is_remembered_and_compared(X):
    estimator = BaseEstimator()
    items = check_items(estimator, X, reset=True)
    assert items.dtype == np.float64
    assert estimator.item_shape_ == items.shape[1:]
    assert estimator.n_features_in_ == np.prod(items.shape[1:])
    assert hasattr(estimator, "feature_names_in_") == isinstance(X, pd.DataFrame)
    assert check_items(estimator, X[:1], reset=False).shape == (1, *items.shape[1:])
    with pytest.raises(ValueError, match="shape|features"):
        check_items(estimator, np.zeros((3, 5, 5)), reset=False)
    check_items(estimator, np.zeros((3, 5, 5)), reset=True)
    assert (estimator.item_shape_, estimator.n_features_in_) == ((5, 5), 25)
    assert not hasattr(estimator, "feature_names_in_")


def test_the_column_of_what_is_not_finite_is_named():
    frame = pd.DataFrame({"mass": [1.0, 2.0], "age": [3.0, np.nan]})
    with pytest.raises(ValueError, match=r"X holds NaN in row 1, column 1 \('age'\)"):
        check_items(BaseEstimator(), frame, reset=True)


def test_fewer_items_than_clusters_are_refused(rng):
    X = rng.normal(size=(3, 2))
    check_items_can_be_clustered(X, 3)
    check_items_can_be_clustered(np.ones((3, 2)), 1)
    with pytest.raises(ValueError, match=r"n_clusters=4 is more than there are items \(n_samples=3\)"):
        check_items_can_be_clustered(X, 4)
    with pytest.raises(ValueError, match="All 3 samples of X are identical"):
        check_items_can_be_clustered(SparseItems(scipy.sparse.csr_array(np.ones((3, 2)))), 2)


def test_reordered_columns_of_an_arrow_table_are_refused(rng):
    import pyarrow as pa

    table = pa.table({"mass": rng.normal(size=30), "age": rng.normal(size=30)})
    model = quick(2, max_iter=5).fit(table)
    assert model.feature_names_in_.tolist() == ["mass", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.select(["age", "mass"]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_on_another_scale(images, dtype):
    model = quick(2, max_iter=5).fit(images if dtype == np.uint8 else images.astype(dtype) / 255)
    other = images / 255 if dtype == np.uint8 else images
    with pytest.warns(UserWarning, match="another scale"):
        model.predict(other)


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (np.arange(8, dtype=np.uint8).reshape(2, 2, 2), np.float32),
        (np.arange(8.0).reshape(2, 4), np.float64),
        (scipy.sparse.csc_array(np.arange(8, dtype=np.float32).reshape(2, 4)), np.float32),
    ],
)
def test_vectors_are_one_row_per_item(X, dtype):
    vectors = check_vectors(BaseEstimator(), X, reset=True)
    assert vectors.dtype == dtype
    rows = vectors.toarray() if scipy.sparse.issparse(X) else vectors
    assert rows.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_texts_are_no_vectors():
    with pytest.raises(ValueError, match=r"SEC takes vectors, not texts.*StemVectorizer"):
        SEC(2).fit(["a cat", "a mouse", "the stock market"])


@pytest.mark.parametrize(("factor", "size"), [(1e155, "large"), (1e-200, "small")])
def test_extreme_values_are_refused_where_distances_are_needed(blobs, factor, size):
    with pytest.raises(ValueError, match=f"too {size} to compute distances"):
        SEC(3).fit(blobs[0] * factor)


@pytest.mark.parametrize(
    "wrap", [lambda x: x, list, torch.utils.data.TensorDataset], ids=["tensor", "list", "Dataset"]
)
def test_tensors_without_values_are_refused(wrap):
    with pytest.raises(ValueError, match="is a meta tensor, which has a shape but no values"):
        quick().fit(wrap(torch.zeros(20, 3, device="meta")))


@pytest.mark.parametrize("shape", [(10, 2), (10, 8, 8)])
def test_integers_beyond_float_are_refused(shape):
    X = np.full(shape, 10**400, dtype=object)
    for data in (X, X.tolist()):
        with pytest.raises(
            ValueError, match="holds an integer that is too large for a float; scale the values"
        ):
            quick().fit(data)
