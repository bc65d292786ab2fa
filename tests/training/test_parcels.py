"""States on their way from a worker: nothing is lost of them, and no kill makes the receiver wait for ever."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from ddclust.training.checkpoints import RunState
from ddclust.training.inference import Outputs
from ddclust.training.parcels import Parcel, packed
from ddclust.training.record import Outcome, RunRecord


def state(outputs=None):
    record = RunRecord(3, 2**31 - 2, outcome=Outcome.BUDGET, loss=0.1 + 0.2, terms={"divergence": 0.1 + 0.2})
    record.n_iter, record.clusters_used = 7, 2
    plain = {"iteration": 7, "history": [{"iteration": 7, "loss": 1 / 3}], "open": {}}
    return RunState({"module.weight": torch.rand(3, 5), "rng": torch.get_rng_state()}, plain, record, outputs)


@pytest.mark.parametrize("has_outputs", [False, True])
def test_a_state_arrives_as_it_was_and_leaves_nothing(tmp_path, rng, has_outputs):
    outputs = Outputs(*(rng.random((9, d), dtype=np.float32) for d in (2, 4))) if has_outputs else None
    sent = state(outputs)
    parcel = packed(sent, tmp_path)
    assert isinstance(parcel, Parcel)
    arrived = parcel.opened()
    assert arrived.record == sent.record
    assert arrived.plain == sent.plain
    assert arrived.tensors.keys() == sent.tensors.keys()
    assert all(torch.equal(arrived.tensors[name], value) for name, value in sent.tensors.items())
    assert (arrived.outputs is None) == (outputs is None)
    if outputs is not None:
        assert all(np.array_equal(*pair) for pair in zip(arrived.outputs, outputs, strict=True))
    assert not list(tmp_path.iterdir())


def test_a_state_goes_by_itself_to_another_machine_and_where_there_is_no_room(tmp_path, monkeypatch):
    sent = state()
    assert packed(sent, tmp_path / "elsewhere") is sent

    def full(self, content):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert packed(sent, tmp_path) is sent
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_worker_killed_while_its_state_is_on_its_way_does_not_stop_the_fit(tmp_path):
    """Killed where 20 MB of outputs wait in a pipe, if they go through one, or else as soon as there is a file."""
    script = tmp_path / "fit.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, tempfile, threading, time, warnings
            from pathlib import Path
            import numpy as np
            from torch import nn
            from ddclust import DDC


            class Wide(nn.Module):
                def __init__(self, n_clusters):
                    super().__init__()
                    self.hidden, self.output = nn.Linear(2, 256), nn.Linear(256, n_clusters)

                def forward(self, x):
                    hidden = self.hidden(x)
                    return hidden, self.output(hidden)


            def wide(shape, n_clusters):
                return Wide(n_clusters)


            def killer():
                until = time.monotonic() + 60
                while time.monotonic() < until:
                    for process in Path("/proc").glob("[0-9]*"):
                        try:
                            is_worker = b"popen_loky" in (process / "cmdline").read_bytes()
                            is_sending = is_worker and "pipe_write" in (process / "wchan").read_text()
                        except OSError:
                            continue
                        has_sent = list(Path(tempfile.gettempdir()).glob("ddclust-*/run-*"))
                        if is_sending or (is_worker and has_sent):
                            time.sleep(0.02)
                            os.kill(int(process.name), signal.SIGKILL)
                            print("killed", flush=True)
                            return


            if __name__ == "__main__":
                warnings.simplefilter("ignore")
                threading.Thread(target=killer, daemon=True).start()
                X = np.random.default_rng(0).normal(size=(20_000, 2))
                DDC(2, network=wide, augment=None, n_init=2, n_jobs=2, max_iter=2, verbose=False).fit(X)
                print("done", flush=True)
            """
        )
    )
    (tmp_path / "tmp").mkdir()
    ended = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["killed", "done"]
