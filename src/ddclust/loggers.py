"""Callbacks that log the runs of a fit to an experiment tracker: TensorBoard or MLflow.

Each run of the fit becomes one run of the tracker. It gets the resolved setup as parameters, the loss and its terms for
every entry of the history, and at the end the outcome, the loss and its terms on the whole data, and the number of
clusters used. Steps are iterations. A fit that continues from checkpoints continues the tracker's runs.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from ddclust.storage.plain import CUSTOM
from ddclust.training.callbacks import Callback, Run, kept_arrays
from ddclust.training.record import Outcome, RunRecord

FINAL = "final_"  # the prefix of what is measured on the whole data when a run ends


class Logger(Callback, ABC):
    """What the loggers share: which numbers are logged, and when. Each of them says how, by the four methods at the end."""

    _logged = 0  # the iteration of the newest record that has been logged

    def on_run_begin(self, run: Run) -> None:
        self._logged = run.iteration
        self._begin(run)

    def on_epoch_end(self, run: Run, record: dict[str, Any] | None) -> None:
        if record is not None:
            self._log_record(record)

    def on_run_end(self, run: Run) -> None:
        for record in run.record.history:
            if record["iteration"] > self._logged:  # the last one, which need not end with an epoch
                self._log_record(record)
        self._finish(run.record)

    def on_fit_end(self, model: Any, kept: list[dict[str, NDArray]]) -> None:
        # Runs are eliminated between two stages, so none of them has seen its end.
        for record, arrays in zip(map(RunRecord.from_dict, model.runs_), kept, strict=True):
            if record.outcome is Outcome.ELIMINATED and self._find(record, arrays):
                self._finish(record)

    def _log_record(self, record: dict[str, Any]) -> None:
        step = record["iteration"]
        self._log({name: value for name, value in record.items() if name != "iteration"}, step)
        self._logged = step

    def _finish(self, record: RunRecord) -> None:
        if record.loss is not None:
            measured = {"loss": record.loss, **record.terms}
            final = {FINAL + name: value for name, value in measured.items()}
            self._log(final | {"clusters_used": float(record.clusters_used)}, record.n_iter)
        self._end(record)

    @abstractmethod
    def _begin(self, run: Run) -> None:
        """Begin a run of the tracker, or go on with the one that this run has."""

    @abstractmethod
    def _find(self, record: RunRecord, kept: dict[str, NDArray]) -> bool:
        """Go back to the run of the tracker that another process has begun; returns whether there is one."""

    @abstractmethod
    def _log(self, values: dict[str, float], step: int) -> None:
        """Log numbers to the current run of the tracker."""

    @abstractmethod
    def _end(self, record: RunRecord) -> None:
        """End the current run of the tracker."""


@dataclass
class TensorBoardLogger(Logger):
    """Log every run of a fit to TensorBoard.

    Run 0 is logged to the subfolder ``run-0``, and so on; ``tensorboard --logdir folder`` shows all of them. Use a new folder
    for each fit. Requires ``pip install ".[tensorboard]"`` in a checkout.

    Parameters
    ----------
    folder : path-like
        Created if it does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from ddclust import DDC
    >>> model = DDC(10, callbacks=[TensorBoardLogger("logs")])  # doctest: +SKIP

    For anything else, write a callback of your own:

    >>> class PrintLoss(Callback):
    ...     def on_epoch_end(self, run, record):
    ...         if record is not None:
    ...             print(f"run {run.index}, iteration {record['iteration']}: loss {record['loss']:.1f}")
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = DDC(2, n_init=1, max_iter=100, callbacks=[PrintLoss()], random_state=0).fit(X)  # doctest: +ELLIPSIS
    run 0, iteration 50: loss ...
    run 0, iteration 100: loss ...
    """

    folder: str | os.PathLike[str]
    _writer: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._writer_type()  # if something is missing, say so before the fit
        self.folder = Path(self.folder).absolute()  # the working directory of a worker may be another

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_writer": None}  # an open file cannot be pickled

    def on_fit_end(self, model: Any, kept: list[dict[str, NDArray]]) -> None:
        super().on_fit_end(model, kept)
        self._close()

    def _begin(self, run: Run) -> None:
        from torch.utils.tensorboard.summary import hparams

        self._open(run.index, run.iteration)
        shown = {
            f"{FINAL}loss": 0,
            "clusters_used": 0,
        }  # the columns beside the parameters; values come later
        experiment, begin, _ = hparams(parameters(run), shown)
        for summary in (experiment, begin):
            self._writer.file_writer.add_summary(summary, run.iteration)
        self._writer.add_text("setup", f"```\n{run.setup}\n```", run.iteration)
        self._writer.flush()

    def _find(self, record: RunRecord, kept: dict[str, NDArray]) -> bool:
        self._open(record.run, record.n_iter)
        return True

    def _log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()  # a worker may be gone before the next record

    def _end(self, record: RunRecord) -> None:
        from torch.utils.tensorboard.summary import hparams

        self._writer.add_text("outcome", record.error or str(record.outcome), record.n_iter)
        self._writer.file_writer.add_summary(hparams({}, {})[2], record.n_iter)
        self._close()

    def _open(self, index: int, iteration: int) -> None:
        """Open the writer of a run. What has been logged beyond the iteration is replaced."""
        self._close()  # that of a run whose stage has ended
        self._writer = self._writer_type()(str(Path(self.folder) / f"run-{index}"), purge_step=iteration + 1)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _writer_type(self) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise _missing("TensorBoardLogger", "tensorboard") from error
        return SummaryWriter


@dataclass
class MLflowLogger(Logger):
    """Log every run of a fit to MLflow.

    Requires ``pip install ".[mlflow]"`` in a checkout.

    Parameters
    ----------
    experiment : str, default="ddclust"
        Name of the experiment. Created if it does not exist.
    tracking_uri : str or None, default=None
        Where MLflow stores its data, for example ``"sqlite:///mlflow.db"`` or the address of a server. None takes what
        ``mlflow.get_tracking_uri()`` says when the logger is created.

    Examples
    --------
    >>> from ddclust import DDC
    >>> model = DDC(10, callbacks=[MLflowLogger("digits", "sqlite:///mlflow.db")])  # doctest: +SKIP
    """

    experiment: str = "ddclust"
    tracking_uri: str | None = None
    _run_id: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.tracking_uri = self._client().tracking_uri  # that of a worker may be another

    def _begin(self, run: Run) -> None:
        client = self._client()
        if self._find(run.record, kept_arrays(run.kept)):
            client.update_run(self._run_id, status="RUNNING")
            return
        tags = {"run": str(run.index), "seed": str(run.record.seed)}
        begun = client.create_run(self._experiment_id(), run_name=f"run-{run.index}", tags=tags)
        self._run_id = begun.info.run_id
        run.keep(self._id_name, torch.tensor(list(self._run_id.encode()), dtype=torch.uint8))
        for name, value in parameters(run).items():
            client.log_param(self._run_id, name, value)

    def _find(self, record: RunRecord, kept: dict[str, NDArray]) -> bool:
        if self._id_name not in kept:
            return False
        self._run_id = bytes(kept[self._id_name]).decode()
        return True

    def _log(self, values: dict[str, float], step: int) -> None:
        client = self._client()
        for name, value in values.items():
            client.log_metric(self._run_id, name, value, step=step)

    def _end(self, record: RunRecord) -> None:
        client = self._client()
        client.set_tag(self._run_id, "outcome", str(record.outcome))
        if record.error is not None:
            client.set_tag(self._run_id, "error", record.error)
        status = {Outcome.FAILED: "FAILED", Outcome.INTERRUPTED: "KILLED"}.get(record.outcome, "FINISHED")
        client.set_terminated(self._run_id, status)

    @property
    def _id_name(self) -> str:
        """The name under which a run keeps its identifier in MLflow, so that it finds it again."""
        return f"mlflow:{self.tracking_uri}:{self.experiment}"

    def _experiment_id(self) -> str:
        """The identifier of the experiment. Several workers may try to create it at once."""
        from mlflow.exceptions import MlflowException

        client = self._client()
        found = client.get_experiment_by_name(self.experiment)
        if found is not None:
            return found.experiment_id
        try:
            return client.create_experiment(self.experiment)
        except MlflowException:
            found = client.get_experiment_by_name(self.experiment)
            if found is None:
                raise
            return found.experiment_id

    def _client(self) -> Any:
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise _missing("MLflowLogger", "mlflow") from error
        return MlflowClient(self.tracking_uri)


def parameters(run: Run) -> dict[str, bool | int | float | str]:
    """Number, seed and setup of a run as a flat table, since trackers take no nested parameters.

    Examples
    --------
    >>> class Show(Callback):
    ...     def on_run_begin(self, run):
    ...         print({name: value for name, value in parameters(run).items() if name.startswith("learning_rate")})
    >>> import numpy as np
    >>> from ddclust import DDC
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = DDC(2, n_init=1, max_iter=1, callbacks=[Show()], random_state=0).fit(X)
    {'learning_rate': 'CosineRate', 'learning_rate.rate': 0.001}
    """
    table: dict[str, bool | int | float | str] = {"run": run.index, "seed": run.record.seed}
    for name, value in run.setup.to_dict().items():
        table |= dict(_flat(name, value))
    return table


def _flat(name: str, value: Any) -> Iterator[tuple[str, bool | int | float | str]]:
    """A plain value and its parts, with dots in their names; an object's own value is the name of its type."""
    if not isinstance(value, dict):
        yield name, value if isinstance(value, (bool, int, float, str)) else str(value)
        return
    kind: str
    content: Any
    kind, content = next(iter(value.items())) if len(value) == 1 else ("", None)
    if kind == CUSTOM:
        yield name, content
        return
    if isinstance(content, dict):
        yield name, kind
        value = content
    for part, inner in value.items():
        yield from _flat(f"{name}.{part}", inner)


def _missing(logger: str, extra: str) -> ImportError:
    return ImportError(
        f'{logger} needs packages that are not installed; run in a checkout of ddclust: pip install ".[{extra}]".'
    )
