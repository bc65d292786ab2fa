"""Borders between clusters that run through dense data."""

import warnings

import numpy as np
import pytest

from commands import WITH_REPORT, run
from ddclust import DDC
from ddclust.choosing.borders import crossings, doubtful_border
from ddclust.data.neighbors import nearest_neighbors
from ddclust.scan import scan
from helpers import quick


def test_crossings_are_counted_as_by_a_loop(rng):
    labels, neighbors = rng.integers(3, size=40), rng.integers(40, size=(40, 4))
    P = np.zeros((3, 3))
    for item in range(40):
        for neighbor in neighbors[item][neighbors[item] != item]:
            P[labels[item], labels[neighbor]] += 0.5
            P[labels[neighbor], labels[item]] += 0.5
    found = crossings(labels, neighbors, 3)
    for a in range(3):
        for b in range(3):
            expected = 0 if a == b else P[a, b] / min(P[a].sum(), P[b].sum())
            assert np.isclose(found[a, b], expected)


def test_a_divided_group_is_noticed_and_whole_ones_are_not(blobs):
    X, truth = blobs
    neighbors = nearest_neighbors(X, 5).indices
    assert doubtful_border(truth, neighbors, 3) is None
    divided = np.where(truth == 2, 2 + (np.arange(len(X)) % 2), truth)
    sentence = doubtful_border(divided, neighbors, 4)
    assert "between 2 and 3" in sentence
    assert "n_clusters=3" in sentence
    assert doubtful_border(np.zeros(len(X), dtype=int), neighbors, 1) is None


def test_a_fit_that_shows_its_progress_warns_too(rng):
    X = rng.normal(size=(100, 2))  # one group
    with pytest.warns(UserWarning, match="The data do not decide"):
        quick(2, max_iter=2, n_final=None, verbose=True).fit(X)


def test_the_report_shows_the_warning(rng, tmp_path):
    np.save(tmp_path / "noise.npy", rng.normal(size=(300, 2)))
    folder = tmp_path / "out"
    found = run("fit", tmp_path / "noise.npy", "-k", 2, "--out", folder, *WITH_REPORT)
    assert found.exit_code == 0
    assert found.stderr.count("The data do not decide") == 1
    assert "The data do not decide" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_silent_fit_warns_where_it_divides_one_group_and_nowhere_else(rng, blobs):
    options = {"n_init": 1, "max_iter": 100, "random_state": 0, "verbose": False}
    with pytest.warns(UserWarning, match="The data do not decide"):
        DDC(2, **options).fit(rng.normal(size=(300, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DDC(3, **options).fit(blobs[0])
        scan(blobs[0], [3, 4], model=DDC(**options | {"n_init": 2}))
