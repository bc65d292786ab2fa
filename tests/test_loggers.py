"""What trackers hold after a fit, read back with their own tools."""

import pickle
import subprocess
import sys

import pytest

from ddclust import Selection
from ddclust.loggers import MLflowLogger, TensorBoardLogger
from ddclust.training.callbacks import Callback
from helpers import Stop, interrupted_fit, quick


def steps(history, name="loss"):
    """Iterations and values of a name, as the history of a run has them."""
    return [(record["iteration"], pytest.approx(record[name], rel=1e-6)) for record in history]


class TestTensorBoard:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("tensorboard")

    @staticmethod
    def read(folder, run):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder / f"run-{run}"))
        events.Reload()
        return events

    @staticmethod
    def scalars(events, name="loss"):
        is_there = name in events.Tags()["scalars"]
        return [(event.step, event.value) for event in events.Scalars(name)] if is_there else []

    @staticmethod
    def text(events, name):
        (last,) = events.Tensors(f"{name}/text_summary")[-1:]
        return last.tensor_proto.string_val[0].decode()

    def test_every_run_of_two_workers(self, blobs, tmp_path):
        logger = TensorBoardLogger(tmp_path)
        model = quick(3, n_init=2, n_jobs=2, callbacks=[logger]).fit(blobs[0])
        for run, record in enumerate(model.runs_):
            events = self.read(tmp_path, run)
            for name in ("loss", *record["terms"]):
                assert self.scalars(events, name) == steps(record["history"], name)
            assert self.scalars(events, "final_loss") == [(record["n_iter"], pytest.approx(record["loss"]))]
            assert self.scalars(events, "clusters_used") == [(record["n_iter"], record["clusters_used"])]
            assert self.text(events, "outcome") == record["outcome"]
            assert "batch_size" in self.text(events, "setup")

    def test_the_setup_is_a_table_of_parameters(self, blobs, tmp_path):
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

        model = quick(3, callbacks=[TensorBoardLogger(tmp_path)]).fit(blobs[0])
        metadata = self.read(tmp_path, 0).SummaryMetadata("_hparams_/session_start_info")
        begun = HParamsPluginData.FromString(metadata.plugin_data.content).session_start_info
        assert begun.hparams["batch_size"].number_value == 100
        assert begun.hparams["seed"].number_value == model.runs_[0]["seed"]
        assert begun.hparams["loss"].string_value == "DDCLoss"
        assert begun.hparams["loss.weights.orthogonality"].number_value == 5

    def test_the_last_record_need_not_end_with_an_epoch(self, blobs, tmp_path):
        model = quick(3, max_iter=101, callbacks=[TensorBoardLogger(tmp_path)]).fit(blobs[0])
        assert model.history_[-1]["iteration"] == 101
        assert self.scalars(self.read(tmp_path, 0)) == steps(model.history_)

    def test_eliminated_runs_end_too(self, blobs, tmp_path):
        logger = TensorBoardLogger(tmp_path)
        model = quick(3, n_init=4, selection=Selection(halving=True), callbacks=[logger]).fit(blobs[0])
        outcomes = [record["outcome"] for record in model.runs_]
        assert "eliminated" in outcomes
        for run, record in enumerate(model.runs_):
            events = self.read(tmp_path, run)
            assert self.text(events, "outcome") == record["outcome"]
            assert self.scalars(events) == steps(record["history"])
        pickle.dumps(model)

    def test_a_resumed_run_goes_on_in_the_same_place(self, blobs, tmp_path, monkeypatch):
        logger = TensorBoardLogger(tmp_path / "logs")
        model = quick(3, checkpoint_dir=tmp_path / "checkpoints", callbacks=[logger])
        interrupted_fit(model, blobs[0], monkeypatch, moment=120)
        model.fit(blobs[0])
        assert self.scalars(self.read(tmp_path / "logs", 0)) == steps(model.history_)

    def test_a_logger_with_an_open_writer_can_be_pickled(self, blobs, tmp_path):
        logger = TensorBoardLogger(tmp_path)

        class Break(Callback):
            def on_epoch_end(self, run, record):
                raise Stop

        with pytest.raises(Stop):
            quick(3, callbacks=[logger, Break()]).fit(blobs[0])
        assert logger._writer is not None
        assert pickle.loads(pickle.dumps(logger)) == logger
        logger._close()


@pytest.mark.slow
class TestMLflow:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        pytest.importorskip("mlflow")
        pytest.importorskip("sqlalchemy")

    @pytest.fixture
    def uri(self, tmp_path):
        return f"sqlite:///{tmp_path}/mlflow.db"

    @staticmethod
    def read(uri, experiment="blobs"):
        """A client and the runs of an experiment, in the order of the fit's."""
        from mlflow import MlflowClient

        client = MlflowClient(uri)
        found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
        return client, sorted(found, key=lambda run: int(run.data.tags["run"]))

    @staticmethod
    def metrics(client, run, name="loss"):
        return [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, name)]

    def test_every_run_of_two_workers(self, blobs, uri):
        logger = MLflowLogger("blobs", uri)
        model = quick(3, n_init=2, n_jobs=2, callbacks=[logger]).fit(blobs[0])
        client, runs = self.read(uri)
        assert len(runs) == 2
        for run, record in zip(runs, model.runs_, strict=True):
            for name in ("loss", *record["terms"]):
                assert self.metrics(client, run, name) == steps(record["history"], name)
            assert run.data.metrics["final_loss"] == pytest.approx(record["loss"])
            assert run.data.metrics["clusters_used"] == record["clusters_used"]
            assert run.data.tags["outcome"] == record["outcome"]
            assert run.info.status == "FINISHED"
            assert run.data.params["seed"] == str(record["seed"])
            assert run.data.params["loss"] == "DDCLoss"
            assert run.data.params["loss.weights.orthogonality"] == "5.0"

    def test_eliminated_runs_end_too(self, blobs, uri):
        logger = MLflowLogger("blobs", uri)
        model = quick(3, n_init=4, selection=Selection(halving=True), callbacks=[logger]).fit(blobs[0])
        _, runs = self.read(uri)
        assert [run.data.tags["outcome"] for run in runs] == [record["outcome"] for record in model.runs_]
        assert {run.info.status for run in runs} == {"FINISHED"}

    def test_a_resumed_run_goes_on_in_the_same_place(self, blobs, uri, tmp_path, monkeypatch):
        logger = MLflowLogger("blobs", uri)
        model = quick(3, checkpoint_dir=tmp_path / "checkpoints", callbacks=[logger])
        interrupted_fit(model, blobs[0], monkeypatch, moment=120)
        model.set_params(callbacks=[MLflowLogger("blobs", uri)]).fit(blobs[0])
        client, (run,) = self.read(uri)
        assert self.metrics(client, run) == steps(model.history_)
        assert run.info.status == "FINISHED"

    def test_without_a_uri_it_is_mlflow_s_own(self, uri):
        import mlflow

        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(uri)
        try:
            assert MLflowLogger().tracking_uri == uri
        finally:
            mlflow.set_tracking_uri(before)


@pytest.mark.parametrize(
    ("logger", "arguments", "package"),
    [(TensorBoardLogger, ("logs",), "tensorboard"), (MLflowLogger, (), "mlflow")],
)
def test_what_is_missing_is_named_before_the_fit(logger, arguments, package, monkeypatch):
    for name in (package, f"torch.utils.{package}"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f'pip install "\\.\\[{package}\\]"'):
        logger(*arguments)


def test_trackers_are_not_loaded_with_the_package():
    code = "import sys, ddclust.loggers; print(sorted({'mlflow', 'tensorboard'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
