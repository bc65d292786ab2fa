import numpy as np
import pytest
import torch

from ddclust.data.batches import BatchSource, Scaling, channel_axis, input_shape
from ddclust.data.items import all_equal


@pytest.mark.parametrize(
    ("item_shape", "axis", "shape"),
    [
        ((5,), None, (5,)),
        ((28, 28), None, (1, 28, 28)),
        ((32, 24, 3), 2, (3, 32, 24)),
        ((3, 32, 24), 0, (3, 32, 24)),
        ((10, 32, 32), 0, (10, 32, 32)),
        ((8, 8, 8), 2, (8, 8, 8)),
    ],
)
def test_layout(item_shape, axis, shape, rng):
    X = rng.integers(0, 255, size=(4, *item_shape), dtype=np.uint8)
    assert channel_axis(item_shape) == axis
    assert input_shape(item_shape) == shape
    assert BatchSource(X, Scaling.of(X)).batch(np.array([2, 0])).shape == (2, *shape)


def test_uint8_images_are_divided_by_255(rng):
    X = rng.integers(0, 256, size=(6, 9, 10, 3), dtype=np.uint8)
    batch = BatchSource(X, Scaling.of(X)).batch(np.array([4, 1]))
    assert batch.dtype == torch.float32
    np.testing.assert_allclose(batch.numpy(), X[[4, 1]].transpose(0, 3, 1, 2) / 255, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_vectors_are_standardised(dtype, rng):
    X = (rng.normal(size=(50, 4)) * 50 + 300).astype(dtype)
    batch = BatchSource(X, Scaling.of(X)).batch(slice(None)).double()
    assert batch.mean(dim=0).numpy() == pytest.approx(0, abs=1e-4)
    assert batch.std(dim=0, correction=0).numpy() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("shape", [(50, 9, 8, 3), (50, 3, 9, 8), (50, 9, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint16])
def test_channels_of_other_images_are_scaled_to_the_unit_range(shape, dtype, rng):
    X = (rng.uniform(size=shape) * 500 + 300).astype(dtype)
    batch = BatchSource(X, Scaling.of(X)).batch(slice(None)).double()
    assert batch.amin(dim=(0, 2, 3)).numpy() == pytest.approx(0, abs=1e-4)
    assert batch.amax(dim=(0, 2, 3)).numpy() == pytest.approx(1, abs=1e-4)


def test_values_far_from_zero_keep_their_digits(rng):
    X = 1.7e9 + rng.normal(size=(100, 2))  # seconds since 1970; float32 has steps of 128 there
    batch = BatchSource(X, Scaling.of(X)).batch(slice(None)).numpy()
    np.testing.assert_allclose(batch, (X - X.mean(0)) / X.std(0), atol=1e-5)


def test_constant_features_stay_finite():
    X = np.column_stack([np.arange(5.0), np.full(5, 7.0)])
    assert torch.isfinite(BatchSource(X, Scaling.of(X)).batch(slice(None))).all()


def test_overflowing_column_is_named():
    X = np.array([[0.0, 1e300], [1.0, -1e300], [2.0, 0.0]])
    with pytest.raises(ValueError, match="Column 1"):
        Scaling.of(X)


def test_the_user_s_array_is_not_written_to(rng):
    X = rng.normal(size=(20, 3)).astype(np.float32)
    X.flags.writeable = False
    kept = X.copy()
    BatchSource(X, Scaling.of(X)).batch(slice(None))
    assert np.array_equal(X, kept)


def test_identical_items(rng):
    assert all_equal(np.ones((5, 3)))
    X = np.ones((5, 3))
    X[4, 2] = 2
    assert not all_equal(X)
