"""The registry: every method is declared once, and can be listed without loading torch."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from ddclust.compare import worker
from ddclust.compare.job import Job, data_file
from ddclust.compare.methods import METHODS, Method


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_default_and_at_most_nine_choices(name):
    choices = METHODS[name].choices
    assert 1 <= len(choices) <= 9
    assert len({json.dumps(choice) for choice in choices}) == len(choices)


@pytest.mark.parametrize("name", METHODS)
def test_settings_and_choices_are_parameters_of_the_estimator(name, tmp_path):
    method = METHODS[name]
    module, _, estimator = method.estimator.rpartition(".")
    job = Job(name, {}, 2, 0, dict.fromkeys(method.options, 1), "data.npy", str(tmp_path))
    known = getattr(import_module(module), estimator)().get_params()
    for choice in method.choices:
        assert {"n_clusters", "random_state", *method.settings(job), *choice} <= known.keys()


def test_titles_are_unique():
    titles = [title for method in METHODS.values() for title in method.titles]
    assert len(set(titles)) == len(titles)


def test_one_declaration_adds_a_method(tmp_path, monkeypatch):
    method = Method("sklearn.cluster.MiniBatchKMeans", ("mini-batch",), settings=lambda job: {"n_init": 2})
    monkeypatch.setitem(METHODS, "mini-batch", replace(method, objective=lambda model: model.inertia_))
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0)
    with data_file(tmp_path, X) as file:
        fit = worker.fitted(Job("mini-batch", {}, 2, 0, {}, str(file), str(tmp_path)))
    assert len(set(fit.labels["mini-batch"][:10])) == 1
    assert fit.labels["mini-batch"][0] != fit.labels["mini-batch"][-1]
    assert fit.objective == pytest.approx(0, abs=1e-6)


def test_listing_the_methods_does_not_load_torch():
    code = "import sys; from ddclust.compare.methods import METHODS; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
