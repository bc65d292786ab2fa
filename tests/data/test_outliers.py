"""Outliers that rule the scaling are reported before training; heavy tails and real data are not."""

import warnings

import numpy as np
import pytest
from sklearn import datasets

from commands import QUICK, run
from ddclust.data.batches import Scaling
from ddclust.data.outliers import OutlierWarning, outliers
from ddclust.datasets import NAMED, load
from helpers import quick

RNG = np.random.default_rng
USUAL = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "exponential": lambda rng, n: rng.exponential(size=(n, 5)),
    "log-normal": lambda rng, n: rng.lognormal(size=(n, 5)),
    "wide log-normal": lambda rng, n: rng.lognormal(sigma=2, size=(n, 5)),
    "Pareto": lambda rng, n: rng.pareto(1.2, size=(n, 5)),
    "t": lambda rng, n: rng.standard_t(2, size=(n, 5)),
    "Poisson": lambda rng, n: rng.poisson(0.7, size=(n, 5)),
    "rare": lambda rng, n: (rng.random((n, 5)) < 0.01).astype(float),
    "rare amounts": lambda rng, n: (rng.random((n, 5)) < 0.025) * rng.lognormal(8, 2, size=(n, 5)),
    "small far cluster": lambda rng, n: rng.normal(size=(n, 5)) + 100 * (rng.random((n, 1)) < 0.01),
    "time stamps": lambda rng, n: 1.7e9 + rng.normal(size=(n, 5)),
    "constant": lambda rng, n: np.ones((n, 5)),
    "digits of 10": lambda rng, n: 10.0 ** rng.integers(0, 4, size=(n, 5)),
}


def found(X, **options):
    return outliers(X, Scaling.of(X), **options)


@pytest.mark.parametrize("n", [10, 100, 2000, 30_000])
@pytest.mark.parametrize("kind", USUAL)
def test_usual_data_raise_no_alarm(kind, n):
    assert [found(USUAL[kind](RNG(seed), n)) for seed in range(3)] == [None] * 3


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud"])
def test_toy_sets_raise_no_alarm(name):
    assert found(getattr(datasets, f"load_{name}")().data) is None


@pytest.mark.parametrize("name", ["circles", "digits", "mnist", "seals"])
def test_named_sets_raise_no_alarm(name):
    if NAMED[name].at_hand() != "yes":
        pytest.skip("its files are not at hand")
    data = load(name).data[:20_000]
    assert found(data.reshape(len(data), -1)) is None


@pytest.mark.parametrize("value", [1e9, -1e6, 1e30])
@pytest.mark.parametrize("n", [50, 200, 20_000])
def test_a_few_extreme_rows_are_named(n, value):
    X = RNG(0).normal(size=(n, 4))
    X[[7, 3], 1] = value
    alarm = found(X, column_names=["a", "b", "c", "d"])
    assert (alarm.rows, alarm.columns) == ([3, 7], [1])
    assert str(alarm).startswith(
        f"2 of {n:,} rows lie so far out that the others look alike after scaling: row 3, 7,"
    )
    assert "in column 1 ('b') (counted from 0). Remove these rows, or clip or transform" in str(alarm)


def test_many_rows_and_columns_are_counted():
    X = RNG(0).normal(size=(2000, 8))
    X[:10] = 1e9
    alarm = str(found(X))
    assert alarm.startswith("10 of 2,000 rows")
    assert "row 0, 1, 2, 3, 4, ..., in column 0, 1, 2, 3, 4, ... (counted" in alarm


def test_a_fit_warns_once_before_it_trains_and_the_remedy_works():
    X, _ = datasets.make_blobs(200, centers=3, random_state=0)
    X[:3] = 1e9
    model = quick(max_iter=5, n_init=2)
    with pytest.warns(OutlierWarning) as caught:
        model.fit(X)
    assert sum(issubclass(one.category, OutlierWarning) for one in caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutlierWarning)
        model.fit(X[3:])
        model.fit(np.clip(X, -20, 20))


def test_the_command_line_names_the_columns(tmp_path):
    X = RNG(0).normal(size=(60, 2))
    X[5, 1] = 1e9
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="age,pay", comments="")
    done = run("fit", tmp_path / "x.csv", "-k", "2", *QUICK, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "Warning: 1 of 60 rows lie so far out" in done.stderr
    assert "row 5, in column 1 ('pay')" in done.stderr
