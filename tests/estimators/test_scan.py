"""The scan: its rule by hand, and what it says of data with clusters and without."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust import scan as scanning
from ddclust.choosing.openness import landscape_of
from ddclust.choosing.selection import agreement
from ddclust.data.batches import BatchSource, Scaling
from ddclust.scan import ScanError, recommend, scan
from ddclust.show import plots
from ddclust.training.checkpoints import RunStore


def rows_of(stabilities, spread=0.0, used=None, openness=None):
    """Rows of four restarts with these stabilities; those that are not stable are open, too, if nothing else is said."""
    offsets = np.array([-1, -1, 1, 1]) * spread
    return [
        {
            "k": k,
            "stability": value,
            "agreements": (value + offsets).tolist(),
            "openness": openness or (0.1 if value >= 0.85 else 0.9),
            "divergence": 0.1,
            "clusters_used": [k] * 4 if used is None else used[k],
            "seconds": 1.0,
        }
        for k, value in stabilities.items()
    ]


def quick(**options):
    options = {"n_init": 4, "max_iter": 150, "learning_rate": 1e-3, "random_state": 0, "n_jobs": 1, **options}
    return DDC(**options)


def test_of_a_plateau_the_first_number_is_recommended():
    found = recommend(rows_of({8: 0.68, 9: 0.79, 10: 0.886, 11: 0.867, 12: 0.877, 13: 0.877}))
    assert found.n_clusters == 10
    assert found.confidence > 0.9
    assert "the finer k = 11, 12, 13 are as stable" in found.reason


def test_the_peak_is_recommended():
    found = recommend(rows_of({2: 0.6, 3: 0.7, 4: 0.98, 5: 0.8}, spread=0.02))
    assert (found.n_clusters, found.confidence) == (4, 1.0)
    assert "agree by 0.98" in found.reason


def test_of_stable_numbers_the_largest():
    found = recommend(rows_of({2: 1.0, 3: 0.7, 4: 0.97, 5: 0.75}))
    assert found.n_clusters == 4
    assert "the coarser k = 2 is as stable" in found.reason


def test_too_little_stability_is_unclear():
    found = recommend(rows_of({2: 0.3, 3: 0.72, 4: 0.6}, openness=0.1))
    assert found.n_clusters is None
    assert found.confidence == 1.0
    assert "the best stability is 0.72, at k = 3" in found.reason


def test_an_answer_that_hangs_on_few_restarts_is_unclear():
    found = recommend(rows_of({2: 0.5, 3: 0.901, 4: 0.95}, spread=0.2))
    assert found.n_clusters is None
    assert found.confidence < 0.6
    assert "the answer might be k = 4" in found.reason


def test_one_pair_of_runs_gives_no_confidence():
    rows = [
        {"k": k, "agreements": [a, a], "openness": 0.1, "clusters_used": [k, k]}
        for k, a in [(2, 0.5), (3, 1.0)]
    ]
    found = recommend(rows)
    assert (found.n_clusters, found.confidence, found.n_pairs) == (3, None, 1)
    assert recommend(rows[:1]).confidence is None
    three = [row | {"agreements": [row["agreements"][0]] * 3} for row in rows]
    assert (recommend(three).confidence, recommend(three).n_pairs) == (1.0, 3)


def test_numbers_whose_clusters_are_not_all_used_do_not_count():
    used = {3: [3, 3, 3, 3], 4: [3, 3, 3, 4], 5: [3, 3, 3, 3]}
    found = recommend(rows_of({3: 0.95, 4: 0.99, 5: 1.0}, used=used))
    assert found.n_clusters == 3
    nothing = recommend(rows_of({3: 0.95}, used={3: [2, 2, 2, 2]}))
    assert nothing.n_clusters is None
    assert "leave clusters empty" in nothing.reason


def test_numbers_whose_clusters_are_open_do_not_count():
    rows = rows_of({2: 1.0, 3: 0.99, 4: 0.98})
    for row, openness in zip(rows, (0.8, 0.31, 0.29), strict=True):
        row["openness"] = openness
    assert recommend(rows).n_clusters == 4
    unclear = recommend(rows[:2])
    assert unclear.n_clusters is None
    assert "there may be a single one" in unclear.reason
    assert "0.31 at best, at k = 3" in unclear.reason
    rows[0]["openness"] = None  # of images
    assert recommend(rows[:1]).n_clusters == 2


def test_a_finer_number_that_is_nearly_as_closed_makes_it_unclear():
    def said(*openness):
        rows = rows_of({2: 0.95, 3: 0.7, 4: 0.6})
        for row, value in zip(rows, openness, strict=True):
            row["openness"] = value
        return recommend(rows)

    assert said(0.2, 0.41, 0.5).n_clusters == 2
    assert said(0.2, 0.35, 0.5).n_clusters is None
    assert said(0.2, 0.25, 0.5).n_clusters is None  # closed, but not found again
    assert (
        "the finer k = 3 are nearly as closed: an openness of 0.35, not 0.20" in said(0.2, 0.35, 0.39).reason
    )
    assert recommend(rows_of({2: 0.6, 3: 0.95}, openness=0.2)).n_clusters == 3  # coarser ones do not matter


def test_the_last_number_is_said_to_be_the_last():
    assert "larger ones may be worth a scan" in recommend(rows_of({2: 0.5, 3: 0.97})).reason


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [3, 4])
def test_obvious_groups_are_found(n_groups):
    centers = [[0, 0], [9, 0], [0, 9], [9, 9]][:n_groups]
    X, _ = make_blobs(200, centers=centers, random_state=0)
    found = scan(X, range(n_groups - 1, n_groups + 2), model=quick())
    assert found.recommendation.n_clusters == n_groups
    assert found.recommendation.confidence > 0.8


@pytest.mark.slow
def test_a_uniform_cloud_is_unclear(rng):
    found = scan(rng.random((200, 2)), (2, 3, 5), model=quick())
    assert found.recommendation.n_clusters is None


def test_rows_are_those_of_the_fits(blobs):
    X, _ = blobs
    (row,) = scan(X, [3], model=quick(max_iter=40)).rows
    model = quick(n_clusters=3, max_iter=40, anchor=None, n_vote=4).fit(X)
    assert row["agreements"] == pytest.approx(agreement(list(model.member_labels_)))
    opened = landscape_of(BatchSource(X, Scaling.of(X))).openness
    assert row["openness"] == np.median([opened(labels) for labels in model.member_labels_])
    assert row["stability"] == pytest.approx(np.mean(row["agreements"]))
    assert row["divergence"] == pytest.approx(np.mean([run["terms"]["divergence"] for run in model.runs_]))
    assert row["clusters_used"] == [min(run["clusters_used"], 3) for run in model.runs_]


def test_images_are_not_asked_how_open_their_clusters_are(rng):
    images = rng.integers(0, 255, size=(40, 8, 8), dtype=np.uint8)
    (row,) = scan(images, [2], model=quick(max_iter=2)).rows
    assert row["openness"] is None


def test_a_scan_goes_on(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    model = quick(max_iter=20)
    first = scan(X, (2, 3), model=model, folder=tmp_path / "scan")
    fitted = []
    monkeypatch.setattr(
        scanning, "_fitted_row", lambda X, model, landscape: fitted.append(model.n_clusters) or first.rows[0]
    )
    again = scan(X, (2, 3, 4), model=quick(max_iter=20, n_jobs=2), folder=tmp_path / "scan")
    assert fitted == [4]
    assert again.rows[:2] == first.rows
    with pytest.raises(ScanError, match="holds a scan of other work: the data differ"):
        scan(X[:100], (2, 3), model=model, folder=tmp_path / "scan")
    with pytest.raises(ScanError, match="holds a scan of other work: max_iter is 20 there and 21 here"):
        scan(X, (2, 3), model=quick(max_iter=21), folder=tmp_path / "scan")


def test_texts_are_scanned():
    texts = [f"{a} {b} market" for a in ("oil", "rain", "goal") for b in ("one", "two", "three", "four")] * 3
    assert [row["k"] for row in scan(texts, (2, 3), model=quick(max_iter=5)).rows] == [2, 3]


@pytest.mark.parametrize(
    ("ks", "options", "message"),
    [
        ((1, 2), {}, "from 2 on"),
        ((), {}, "from 2 on"),
        ((2, 151), {}, "There are 150 items, too few for 151 clusters"),
        ((2,), {"n_init": 1}, "at least two of them, got n_init=1"),
    ],
)
def test_what_cannot_be_scanned(blobs, ks, options, message):
    with pytest.raises(ScanError, match=message):
        scan(blobs[0], ks, model=quick(**options))


def test_the_figure_holds_the_rows():
    rows = rows_of({2: 0.6, 3: 0.95, 4: 0.7}, spread=0.1, used={2: [2] * 4, 3: [3] * 4, 4: [3] * 4})
    stability, _ = plots.scan(rows, 3).axes
    assert stability.get_title(loc="left") == "recommended: 3"
    (line,) = (line for line in stability.lines if len(line.get_xdata()) == 3)
    assert line.get_ydata() == pytest.approx([0.6, 0.95, 0.7])
    hollow = [c for c in stability.collections if len(c.get_offsets()) == 1]
    assert [c.get_offsets()[0].tolist() for c in hollow] == [[4, pytest.approx(0.7)]]
    unclear = plots.scan(rows)
    assert unclear.axes[0].get_title(loc="left") == "unclear"
    without = [row | {"divergence": None} for row in rows]
    assert len(plots.scan(without).axes) == 1
    with pytest.raises(ValueError, match="no rows"):
        plots.scan([])


def test_a_scan_leaves_its_results(blobs, tmp_path):
    found = scan(blobs[0], (2, 3), model=quick(max_iter=10), folder=tmp_path / "scan")
    content = json.loads((tmp_path / "scan" / "scan.json").read_text())
    assert content["rows"] == found.rows
    assert content["recommendation"]["n_clusters"] == found.recommendation.n_clusters
    assert (tmp_path / "scan" / "scan.png").read_bytes().startswith(b"\x89PNG")
    assert not list((tmp_path / "scan").glob("*/checkpoints"))


def test_a_number_whose_folder_is_a_link_is_refused(blobs, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "scan").mkdir()
    (tmp_path / "scan" / "k-002").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ScanError, match=r"k-002' is a symbolic link, which is not followed"):
        scan(blobs[0], range(2, 4), model=quick(max_iter=2), folder=tmp_path / "scan")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_scan_that_was_stopped_takes_up_its_checkpoints(blobs, tmp_path, monkeypatch):
    from helpers import Stop

    X, _ = blobs
    whole = scan(X, [3], model=quick(max_iter=20))
    real, begun = RunStore.save, []

    def stop_later(self, state):
        begun.append(state)
        if len(begun) == 3:
            raise Stop
        real(self, state)

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(RunStore, "save", stop_later)
        scan(X, [3], model=quick(max_iter=20), folder=tmp_path)
    assert len(list((tmp_path / "k-003" / "checkpoints").glob("run-*"))) == 2
    begun.clear()
    trained = []
    monkeypatch.setattr(
        RunStore, "save", lambda self, state: (trained.append(state.record.run), real(self, state))
    )
    (row,) = scan(X, [3], model=quick(max_iter=20), folder=tmp_path).rows
    assert set(trained) == {2, 3}
    assert row | {"seconds": 0} == whole.rows[0] | {"seconds": 0}
