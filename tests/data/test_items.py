"""Every kind of data gives the same clusters as the plain array with the same values."""

import pickle
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
import zarr
from sklearn.base import clone
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from ddclust.data.batches import BatchSource, Scaling
from ddclust.data.items import (
    BlockItems,
    DatasetItems,
    SparseItems,
    all_equal,
    blocks,
    fingerprint,
    first_non_finite,
    known_fingerprint,
    memory_map,
    shuffled,
)
from helpers import quick as quick_fit


class Pairs(Dataset):
    """(input, label) pairs; inputs as tensors."""

    def __init__(self, X, make=torch.from_numpy):
        self.X, self.make = X, make

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.make(self.X[i]), "a label"


class Batched(Pairs):
    """One that fetches several items at once."""

    def __getitem__(self, i):
        assert i == 0, "only to learn the shape"
        return super().__getitem__(i)

    def __getitems__(self, indices):
        return [(self.X[i], 0) for i in indices]


class Sliceable:
    """Just shape, dtype and slices."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self._X[rows]


def mapped(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def in_zarr(X, tmp_path):
    stored = zarr.create_array(
        str(tmp_path / "X.zarr"), shape=X.shape, chunks=(7, *X.shape[1:]), dtype=X.dtype
    )
    stored[:] = X
    return stored


def in_hdf5(X, tmp_path, mode="r"):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_dataset("group/X", data=X, chunks=(7, *X.shape[1:]))
    return h5py.File(tmp_path / "X.h5", mode)["group/X"]


KINDS = {
    "list": lambda X, _: X.tolist(),
    "tensor": lambda X, _: torch.from_numpy(X),
    "memory map": mapped,
    "tensor data set": lambda X, _: TensorDataset(torch.from_numpy(X), torch.zeros(len(X))),
    "data set": lambda X, _: Pairs(X),
    "data set of arrays": lambda X, _: Pairs(X, np.asarray),
    "data set that fetches many": lambda X, _: Batched(X),
    "zarr": in_zarr,
    "HDF5": in_hdf5,
    "sliceable": lambda X, _: Sliceable(X),
}
# Read in blocks, so in another order; everything else is the same to the bit.
IN_BLOCKS = {"zarr", "HDF5", "sliceable"}


quick = partial(quick_fit, 2, max_iter=5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_vectors(kind, rng, tmp_path):
    X = rng.normal(size=(60, 3)) + 5 * (np.arange(60)[:, None] % 2)
    given = KINDS[kind](X, tmp_path)
    if kind in IN_BLOCKS:
        given = BlockItems(given, block_length=7)
    expected = quick().fit(BlockItems(X, block_length=7) if kind in IN_BLOCKS else X)
    model = quick().fit(given)
    np.testing.assert_array_equal(model.predict_proba(given), model.probabilities_)
    np.testing.assert_array_equal(model.predict_proba(X), model.probabilities_)
    np.testing.assert_array_equal(model.transform(given), model.transform(X))
    np.testing.assert_array_equal(model.probabilities_, expected.probabilities_)
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "list"])
def test_every_kind_of_images(kind, images, tmp_path):
    given = KINDS[kind](images, tmp_path)
    model = quick().fit(given)
    assert model.item_shape_ == (8, 8)
    assert model.scaling_.is_of_bytes
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(images), model.probabilities_)


def written_to(X, tmp_path, mode):
    """A memory map in which every value was changed after it was opened."""
    np.save(tmp_path / "X.npy", np.zeros_like(X))
    opened = np.load(tmp_path / "X.npy", mmap_mode=mode)
    opened[:] = X
    return opened


IN_WORKERS = {
    "data set": KINDS["data set"],
    "zarr": in_zarr,
    "HDF5": in_hdf5,
    "HDF5 that is being written": lambda X, path: in_hdf5(X, path, "r+"),
    "memory map": mapped,
    "changed memory map": lambda X, path: written_to(X, path, "r+"),
    "copy on write": lambda X, path: written_to(X, path, "c"),
    "part of a map": lambda X, path: mapped(np.concatenate([X, X]), path)[len(X) :],
    "map of no file": lambda X, path: unlinked(X, path),
}


def unlinked(X, tmp_path):
    opened = mapped(X, tmp_path)
    (tmp_path / "X.npy").unlink()
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_WORKERS)
def test_worker_processes_get_the_same_data(kind, rng, tmp_path):
    X = rng.integers(0, 255, size=(2500, 500), dtype=np.uint8)  # large enough for joblib to share the array
    model, items = quick(n_init=2, max_iter=3), IN_WORKERS[kind](X, tmp_path)
    alone = clone(model).set_params(n_jobs=1).fit(items)
    together = clone(model).set_params(n_jobs=2).fit(items)
    np.testing.assert_array_equal(alone.probabilities_, together.probabilities_)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_sparse(container, form, rng):
    dense = np.where(rng.uniform(size=(60, 5)) < 0.3, rng.uniform(1, 2, size=(60, 5)), 0)
    X = container(dense).asformat(form)
    model = quick().fit(X)
    np.testing.assert_array_equal(model.predict_proba(X), model.probabilities_)
    np.testing.assert_array_equal(model.predict_proba(dense), model.probabilities_)
    np.testing.assert_array_equal(quick().fit(container(dense)).labels_, model.labels_)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, np.float64])
def test_scaling_of_sparse_values(dtype, rng):
    matrix = scipy.sparse.random_array((40, 9), density=0.3, rng=rng)
    matrix.data = rng.integers(100, 127, size=matrix.nnz).astype(dtype)  # their squares overflow int8
    items = SparseItems(scipy.sparse.csr_array(matrix))
    scaling = Scaling.of(items)
    scaled = scaling(items[:]).double().numpy()
    assert np.square(scaled).mean() == pytest.approx(1)
    assert (scaled[matrix.toarray() == 0] == 0).all()
    assert len(set(scaling.scale.tolist())) == 1


def test_huge_sparse_values_do_not_overflow():
    items = SparseItems(scipy.sparse.csr_array(np.diag([1e200, 2e200])))
    np.testing.assert_allclose(Scaling.of(items)(items[:]).numpy(), np.diag([0.894, 1.789]), atol=1e-3)


def test_sparse_matrix_without_values():
    items = SparseItems(scipy.sparse.csr_array((3, 4)))
    assert Scaling.of(items)(items[:]).abs().sum() == 0


def test_sparse_is_never_made_dense_as_a_whole(rng, monkeypatch):
    X = scipy.sparse.random_array((500, 50), density=0.1, rng=rng, format="csr")
    largest = 0
    toarray = scipy.sparse.csr_array.toarray

    def watched(self, *args, **kwargs):
        nonlocal largest
        if self.shape[1] == 50:  # not of labels, which scikit-learn makes dense
            largest = max(largest, self.shape[0])
        return toarray(self, *args, **kwargs)

    monkeypatch.setattr(scipy.sparse.csr_array, "toarray", watched)
    quick(batch_size=50).fit(X).predict(X)
    assert 0 < largest <= 256


@pytest.mark.parametrize("n", [1, 5, 64, 100])
def test_order_in_blocks_is_a_reproducible_permutation(n):
    items = BlockItems(np.arange(2 * n).reshape(n, 2), block_length=3)
    order = shuffled(items, np.random.default_rng(5))
    assert sorted(order.tolist()) == list(range(n))
    assert np.array_equal(order, shuffled(items, np.random.default_rng(5)))
    if n == 100:
        assert not np.array_equal(order, shuffled(items, np.random.default_rng(6)))


def test_each_block_is_read_once_per_epoch(rng):
    reads = []

    class Counted(Sliceable):
        def __getitem__(self, rows):
            reads.append(rows.start)
            return super().__getitem__(rows)

    items = BlockItems(Counted(rng.normal(size=(500, 2))), block_length=10)
    source = BatchSource(items, Scaling.of(items))
    order = source.order(np.random.default_rng(0))
    batches = np.array_split(order, 50)
    expected = source.scaling(items[order]).numpy()
    items._cache.clear()
    reads.clear()
    got = np.concatenate([source.batch(batch).numpy() for batch in batches])
    np.testing.assert_array_equal(got, expected)
    n_blocks, n_windows = 50, 7
    assert n_blocks <= len(reads) <= n_blocks + n_windows  # a batch across two windows may read a block again


def test_order_in_blocks_shuffles_blocks_and_items():
    items = BlockItems(np.zeros((1000, 1)), block_length=10)
    order = shuffled(items, np.random.default_rng(0))
    window = order[:80]  # of eight blocks
    assert len(set(window // 10)) == 8
    assert (np.diff(np.unique(window // 10)) > 1).any()  # not neighbours
    assert (np.diff(window) == 1).mean() < 0.1
    assert len(set(window[:20] // 10)) > 4  # mixed, not one block after the other


def test_pages_are_let_go_of(tmp_path, monkeypatch):
    def resident():
        """Of this process, in MB, memory-mapped files only."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssFile"))

    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells")
    X = mapped(np.ones((60_000, 1000), dtype=np.uint8).reshape(-1, 25, 40), tmp_path)
    monkeypatch.setattr("ddclust.data.batches.MAPPED_BYTES", 4 * 2**20)
    monkeypatch.setattr("ddclust.data.items.BLOCK_BYTES", 32 * 2**20)
    source = BatchSource(X, Scaling.of(X))
    before = resident()
    for batch in np.array_split(source.order(np.random.default_rng(0)), 600):
        source.batch(batch)
    assert resident() - before < 20
    for _ in blocks(X):
        pass
    assert resident() - before < 20
    assert X.sum() == X.size  # all pages at once
    assert resident() - before > 40  # so that the limits above mean something


def test_items_in_blocks_travel(tmp_path, rng):
    X = rng.normal(size=(20, 2))
    for stored in (in_zarr(X, tmp_path), in_hdf5(X, tmp_path)):
        items = BlockItems(stored)
        assert items.block_length % 7 == 0
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(items))[np.array([19, 3])], X[[19, 3]])


def test_pages_of_a_memory_map_are_let_go_of_only_if_nothing_is_lost(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((5, 2)))
    for mode, expected in (("r", True), ("r+", True), ("c", False)):
        X = np.load(tmp_path / "X.npy", mmap_mode=mode)
        assert (memory_map(np.asarray(X)[1:]) is not None) == expected
    X[:] = 7  # copy on write
    list(blocks(X))
    assert (X == 7).all()
    assert memory_map(np.zeros(3)) is None


def test_identical_items():
    assert all_equal(np.ones((500, 3)))
    for row in (4, 499):
        X = np.ones((500, 3))
        X[row, 2] = 2
        assert not all_equal(X)
    assert all_equal(SparseItems(scipy.sparse.csr_array(np.ones((500, 3)))))


def test_a_fingerprint_that_is_known_is_not_made_again(rng, monkeypatch):
    X = rng.normal(size=(30, 4))
    expected, other = fingerprint(X), fingerprint(X[1:])
    with known_fingerprint(X, expected), monkeypatch.context() as patch:
        patch.setattr("ddclust.data.items.blocks", lambda items: pytest.fail("read again"))
        assert fingerprint(X) == fingerprint(np.asarray(X)) == fingerprint(X[:]) == expected
    with known_fingerprint(X, expected):
        assert fingerprint(X[1:]) == other
        assert fingerprint(X.copy() + 1) != expected
    X[0, 0] += 1
    assert fingerprint(X) != expected


def test_fingerprint_sees_every_change(rng):
    X = rng.normal(size=(30, 4))
    X[X < 0] = 0
    sparse = scipy.sparse.csr_array(X)
    prints = {
        fingerprint(X),
        fingerprint(X[::-1]),
        fingerprint(X.astype(np.float32)),
        fingerprint(X.reshape(30, 2, 2)),
    }
    prints |= {fingerprint(sparse), fingerprint(sparse * 2), fingerprint(sparse[::-1])}
    prints |= {fingerprint(["ab", "c"]), fingerprint(["a", "bc"]), fingerprint(["ab", "c", ""])}
    assert len(prints) == 10
    assert fingerprint(SparseItems(sparse)) == fingerprint(sparse)
    assert fingerprint(BlockItems(X)) == fingerprint(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_place_of_what_is_not_finite(value, rng):
    X = rng.uniform(size=(50, 3))
    X[17, 2] = value
    shown = {"nan": "NaN"}.get(str(value), str(value))
    assert first_non_finite(X) == ((17, 2), shown)
    assert first_non_finite(SparseItems(scipy.sparse.csr_array(X))) == ((17, 2), shown)
    assert first_non_finite(np.full((2, 2), 1e308)) is None  # the sum alone overflows
    for given in (X, scipy.sparse.csr_array(X), BlockItems(X), Pairs(X)):
        with pytest.raises(ValueError, match=f"X holds {shown} in row 17, column 2"):
            quick().fit(given)
    model = quick().fit(np.nan_to_num(X, posinf=0, neginf=0))
    for given in (X, scipy.sparse.csr_array(X), BlockItems(X), Pairs(X)):
        with pytest.raises(ValueError, match=f"X holds {shown} in row 17, column 2"):
            model.predict(given)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


class Ragged(Pairs):
    def __getitem__(self, i):
        return np.zeros(3 if i < 10 else 4)


class Mixed(Pairs):
    def __getitem__(self, i):
        return np.zeros(3, dtype=np.int64 if i == 0 else np.float64)


def wrong_indices():
    X = scipy.sparse.csr_array(np.eye(4))
    X.indices[2] = 99
    return X


class Odd(Pairs):
    def __getitem__(self, i):
        return {"image": 1}


@pytest.mark.parametrize(
    ("X", "error", "sentence"),
    [
        (Stream(), TypeError, "IterableDataset, which has no length"),
        (Ragged(np.zeros((20, 3))), ValueError, r"Item 10 of the Dataset has shape \(4,\)"),
        (Odd(np.zeros((20, 3))), ValueError, "Item 0 of the Dataset is a dict"),
        (Pairs(np.zeros((0, 3))), ValueError, "shape"),
        (Pairs(np.zeros((1, 3))), ValueError, r"1 sample\(s\)"),
        (Sliceable(np.zeros((5, 2, 2, 2, 2))), ValueError, "got shape"),
        (Sliceable(np.zeros((5, 0))), ValueError, "vectors of no features"),
        (Sliceable(np.zeros((5, 8, 0))), ValueError, "images of no pixels"),
        (Sliceable(np.zeros((5, 2), dtype="U3")), ValueError, "not numbers"),
        ([[1, 2], [3, 4], [5]], ValueError, r"Item 2 of X has shape \(1,\), the first one has \(2,\)"),
        ([np.zeros((8, 8)), *[np.zeros((8, 9))] * 9], ValueError, r"Item 1 of X has shape \(8, 9\)"),
        ([[1, 2], [3, "four"]], ValueError, "X holds the text 'four' in row 1, column 1"),
        (np.array([["a", "b"], ["c", "d"]]), ValueError, "X holds the text 'a' in row 0, column 0"),
        (
            Mixed(np.zeros((20, 3))),
            ValueError,
            "Item 1 of the Dataset is of type float64, the first one of int64",
        ),
        (np.ma.masked_equal(np.eye(3), 1), ValueError, "masked values"),
        (np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"), ValueError, "not numbers"),
        (wrong_indices(), ValueError, "not a valid sparse matrix"),
        (scipy.sparse.csr_array((1, 5)), ValueError, "minimum of 2"),
        (scipy.sparse.csr_array(np.ones((30, 2))), ValueError, "identical"),
    ],
)
def test_unusable_data(X, error, sentence):
    with pytest.raises(error, match=sentence):
        quick().fit(X)


def test_other_shape_at_prediction(images, tmp_path):
    model = quick().fit(images)
    for given in (
        Pairs(images[:, :7]),
        BlockItems(images[..., None]),
        scipy.sparse.csr_array(np.ones((3, 64))),
    ):
        with pytest.raises(ValueError, match=r"fitted on items of shape \(8, 8\)"):
            model.predict(given)


def test_data_set_of_pictures():
    from PIL import Image

    class Pictures(Pairs):
        def __getitem__(self, i):
            return Image.new("RGB", (9, 8), (i, 0, 0)), i

    items = DatasetItems(Pictures(np.zeros(30)))
    assert items.shape == (30, 8, 9, 3)
    assert items[np.array([7])][0, 0, 0].tolist() == [7, 0, 0]
    assert quick().fit(Pictures(np.zeros(30))).item_shape_ == (8, 9, 3)


def test_data_set_of_lists():
    class Lists(Pairs):
        def __getitem__(self, i):
            return self.X[i].tolist()

    class ListPairs(Pairs):
        def __getitem__(self, i):
            return [torch.from_numpy(self.X[i]).requires_grad_(), i]

    X = np.arange(40.0).reshape(10, 4)
    for kind in (Lists, ListPairs):
        np.testing.assert_array_equal(DatasetItems(kind(X))[:], X)
    bfloat = torch.arange(40.0).reshape(10, 4).bfloat16()
    np.testing.assert_array_equal(DatasetItems(Pairs(bfloat, lambda t: t))[:], X)
    quick().fit(bfloat)


@pytest.mark.parametrize("block_length", [0, -1, 1.5])
def test_bad_block_length(block_length):
    with pytest.raises(ValueError, match="block_length"):
        BlockItems(np.zeros((5, 2)), block_length)


@pytest.mark.parametrize("stored", [[[1, 2]], scipy.sparse.csr_array((3, 3)), pd.DataFrame({"a": [1]})])
def test_what_cannot_be_read_in_blocks(stored):
    with pytest.raises(TypeError, match="BlockItems takes an array"):
        BlockItems(stored)
