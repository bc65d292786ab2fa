"""The score of a model, and what takes it: GridSearchCV."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from ddclust import DDC, Affine
from helpers import quick

pytestmark = pytest.mark.filterwarnings("ignore:The clustering uses")


@pytest.mark.parametrize("params", [{}, {"augment": None}, {"neighbors": 3}, {"n_init": 2, "n_vote": 2}])
def test_the_score_is_minus_the_loss_of_the_best_run(blobs, params):
    model = quick(max_iter=30, **params).fit(blobs[0])
    assert model.score(blobs[0]) == pytest.approx(-model.runs_[model.voters_[0]]["loss"], rel=1e-5)


def test_images_and_texts(images, tmp_path):
    model = quick(2, max_iter=20, augment=Affine(), neighbors=2).fit(images)
    assert model.score(images) == pytest.approx(-model.runs_[0]["loss"], rel=1e-5)
    model.save(tmp_path / "model")
    assert DDC.load(tmp_path / "model").score(images) == model.score(images)
    texts = ["a ship sails the sea", "fresh bread bakes"] * 15
    model = quick(2, max_iter=20).fit(texts)
    assert model.score(texts) == pytest.approx(-model.runs_[0]["loss"], rel=1e-5)
    assert np.isfinite(model.score(texts[:1]))


def test_grid_search_needs_no_scoring(blobs):
    search = GridSearchCV(
        quick(max_iter=60, neighbors=5), {"learning_rate": [1e-7, 1e-3]}, cv=2, error_score="raise"
    )
    search.fit(blobs[0])
    assert search.best_params_ == {"learning_rate": 1e-3}
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] > scores[0]
    assert search.predict(blobs[0]).shape == (150,)


def test_a_polars_frame_keeps_its_column_names(blobs):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"mass": blobs[0][:, 0], "age": blobs[0][:, 1]})
    model = quick(max_iter=10).fit(frame)
    assert model.feature_names_in_.tolist() == ["mass", "age"]
    assert np.array_equal(model.predict(frame), model.labels_)
    from ddclust.show.explain import explain

    assert explain(model, frame[:3]).feature_names.tolist() == ["mass", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"age": "years"}))
