"""Watch the runs of a fit: a callback that prints, and TensorBoard if it is installed.

python examples/callbacks.py
"""

import tempfile
from importlib.util import find_spec

from sklearn.datasets import make_blobs

from ddclust import DDC, Callback
from ddclust.loggers import TensorBoardLogger


class PrintLoss(Callback):
    """Print the loss now and then, and how each run ends."""

    def on_epoch_end(self, run, record):
        if record is not None:
            print(f"run {run.index}, iteration {record['iteration']:3d}: loss {record['loss']:.2f}")

    def on_run_end(self, run):
        record = run.record
        print(f"run {run.index}: {record.outcome}, loss {record.loss:.2f}, {record.clusters_used} clusters")


def main():
    X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=3)
    callbacks = [PrintLoss()]
    if find_spec("tensorboard"):
        folder = tempfile.mkdtemp(prefix="ddclust-logs-")
        callbacks.append(TensorBoardLogger(folder))
        print(f"Show the logs by: tensorboard --logdir {folder}")
    DDC(3, n_init=2, n_jobs=1, max_iter=150, callbacks=callbacks, random_state=0).fit(X)


if __name__ == "__main__":
    main()
