"""Runs on every engine end the same; dead workers and Ctrl-C lose nothing."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import psutil
import pytest

from ddclust import Selection
from ddclust.networks import MLP
from ddclust.training import engine as _engine
from ddclust.training.record import Outcome
from helpers import quick

OPTIONS = {"n_init": 3, "n_vote": 2, "max_iter": 60}


def timeless(model):
    return [{k: v for k, v in run.items() if k != "seconds"} for run in model.runs_]


def assert_same(first, second):
    assert np.array_equal(first.probabilities_, second.probabilities_)
    assert timeless(first) == timeless(second)


@pytest.fixture
def reference(blobs):
    return quick(**OPTIONS).fit(blobs[0])


@pytest.mark.parametrize("halving", [False, True])
def test_worker_processes_give_the_same_result(blobs, halving):
    X, _ = blobs
    options = OPTIONS | {"selection": Selection(halving=halving)}
    assert_same(quick(**options, n_jobs=2).fit(X), quick(**options, n_jobs=1).fit(X))


def test_threads_give_the_same_result(blobs, reference):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert_same(quick(**OPTIONS, n_jobs=None).fit(blobs[0]), reference)


class DiesOnce:
    """A network factory that kills its worker process the first time that it is called there."""

    def __init__(self, marker):
        self.marker = marker
        self.home = os.getpid()

    def __call__(self, input_shape, n_clusters):
        if os.getpid() != self.home and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return MLP(input_shape, n_clusters)


@pytest.mark.slow
def test_the_runs_of_a_dead_worker_are_repeated(blobs, tmp_path):
    X, _ = blobs
    factory = DiesOnce(str(tmp_path / "died"))
    with pytest.warns(RuntimeWarning, match="worker process died"):
        model = quick(**OPTIONS, network=factory, n_jobs=2).fit(X)
    assert (tmp_path / "died").exists()
    assert_same(model, quick(**OPTIONS, network=MLP).fit(X))


class DiesAlways(DiesOnce):
    def __call__(self, input_shape, n_clusters):
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return MLP(input_shape, n_clusters)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker process died")
def test_workers_that_always_die_are_an_error(blobs):
    with pytest.raises(_engine.WorkersDiedError, match="n_jobs=1"):
        quick(**OPTIONS, network=DiesAlways(""), n_jobs=2).fit(blobs[0])


@pytest.fixture(scope="module")
def dask_client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_gives_the_same_result(blobs, reference, dask_client):
    with joblib.parallel_config(backend="dask"):
        model = quick(**OPTIONS, n_jobs=-1).fit(blobs[0])
    assert_same(model, reference)


class Counted(np.ndarray):
    """An array that counts how often it is pickled."""

    pickled = 0

    def __reduce_ex__(self, protocol):
        Counted.pickled += 1
        return np.asarray(self).__reduce_ex__(protocol)


@pytest.mark.slow
def test_data_goes_to_dask_once(dask_client, blobs):
    X = np.repeat(blobs[0], 50, axis=0).view(Counted)
    plan = quick()
    plan.item_shape_ = (2,)
    plan = plan._plan(np.asarray(X))
    Counted.pickled = 0
    with joblib.parallel_config(backend="dask"):
        states = _engine.run_all(X, plan, [1, 2, 3, 4, 5, 6], n_jobs=-1)
    assert len(states) == 6
    assert Counted.pickled <= 2  # one scatter, and perhaps a look at its size


@pytest.mark.slow
def test_a_dask_worker_that_dies_is_replaced(blobs, tmp_path, dask_client):
    X, _ = blobs
    with joblib.parallel_config(backend="dask"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask brings some data back by itself, some not
        model = quick(**OPTIONS, network=DiesOnce(str(tmp_path / "died")), n_jobs=-1).fit(X)
    assert (tmp_path / "died").exists()
    assert_same(model, quick(**OPTIONS, network=MLP).fit(X))


@pytest.mark.slow
@pytest.mark.ray
def test_ray_gives_the_same_result(blobs, reference):
    import ray
    from ray.util.joblib import register_ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            register_ray()
            with joblib.parallel_config(backend="ray"):
                model = quick(**OPTIONS, n_jobs=2).fit(blobs[0])
        finally:
            ray.shutdown()
    assert_same(model, reference)


def test_board_is_silent_where_it_does_not_exist(tmp_path):
    board = _engine.Board(tmp_path / "elsewhere", 2)
    board.report(0, 5, 0.1)
    assert not board.should_stop()


INTERRUPTED = """
import sys, warnings
import numpy as np
from ddclust import DDC
X = np.random.default_rng(0).normal(size=(400, 8, 8))
model = DDC(3, n_init=3, max_iter=100_000, early_stopping=None, random_state=0, n_jobs=int(sys.argv[1]), verbose=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.set_params(checkpoint_dir=sys.argv[2]).fit(X)
assert any("Interrupted: the best result so far is kept. Fit again" in str(w.message) for w in caught), caught
assert "interrupted" in [run["outcome"] for run in model.runs_]
assert (model.predict(X) == model.labels_).all()
print("usable", [run["n_iter"] for run in model.runs_])
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_the_best_so_far(tmp_path, n_jobs):
    command = [sys.executable, "-c", INTERRUPTED, str(n_jobs), str(tmp_path / "checkpoints")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: list((tmp_path / "checkpoints").glob("run-*")))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith("usable")
    state = _engine.RunStore(tmp_path / "checkpoints").load(0)
    assert state.record.outcome is Outcome.RUNNING  # and so it can go on


@pytest.mark.slow
def test_workers_end_with_the_fit_that_they_work_for(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, "2", str(tmp_path / "checkpoints")]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_for(lambda: len(list((tmp_path / "checkpoints").glob("run-*"))) > 1)
    workers = psutil.Process(process.pid).children(recursive=True)
    busy = [worker for worker in workers if worker.is_running() and worker.cpu_times().user > 0.5]
    assert len(busy) >= 2
    process.kill()  # the fit alone, not its workers
    process.wait()
    _, alive = psutil.wait_procs(busy, timeout=60)
    for worker in alive:
        worker.kill()
    assert not alive


def wait_for(condition, seconds=100):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
