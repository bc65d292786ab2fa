"""Checkpoints: resumed fits end exactly as undisturbed ones, whatever happened to them."""

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ddclust import DDCLoss, Snapshots
from ddclust.training.checkpoints import CheckpointError, RunState, RunStore
from ddclust.training.record import Outcome, RunRecord
from helpers import Small, assert_same, edit_json, interrupted_fit, quick, timeless


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "n_jobs", "halving"), [(12, 1, False), (8, 1, True), (3, 2, False)])
def test_killed_again_and_again_it_ends_the_same(tmp_path, kills, n_jobs, halving):
    command = [sys.executable, "-m", "torture.kills", tmp_path, "--kills", kills, "--jobs", n_jobs]
    command += ["--halving"] if halving else []
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=Path(__file__).parents[1],
    )
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout.splitlines()[-1])
    assert outcome["failures"] == []
    assert outcome["kills"] == kills


@pytest.mark.parametrize("moment", [1, 2, 7, 20, 41])
@pytest.mark.parametrize("network", ["auto", Small], ids=["mlp", "with dropout"])
def test_stopped_in_the_middle_of_a_write(blobs, tmp_path, monkeypatch, moment, network):
    X, _ = blobs
    options = {"n_init": 2, "max_iter": 20, "network": network}
    undisturbed = quick(**options).fit(X)
    model = quick(**options, checkpoint_dir=tmp_path / "checkpoints")
    interrupted_fit(model, X, monkeypatch, moment)
    assert_same(model.fit(X), undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [3, 8, 30])
def test_snapshots_go_on_too(rng, tmp_path, monkeypatch, moment):
    """Also those of seeds left to chance, which are found in the folder."""
    X = rng.normal(size=(2010, 2))
    options = {"n_init": 2, "max_iter": 20, "batch_size": 500, "callbacks": [Snapshots((0, 1, 4))]}
    model = quick(**options, random_state=None, checkpoint_dir=tmp_path)
    interrupted_fit(model, X, monkeypatch, moment)
    monkeypatch.setattr(
        "ddclust.ddc.check_random_state", lambda _: np.random.RandomState(1)
    )  # another chance
    model.fit(X)
    seeds = json.loads((tmp_path / "fit.json").read_text())["seeds"]

    class Seeds:
        def randint(self, *args, **kwargs):
            return np.array(seeds)

    monkeypatch.setattr("ddclust.ddc.check_random_state", lambda _: Seeds())
    undisturbed = quick(**options).fit(X)
    assert_same(model, undisturbed)
    assert undisturbed.snapshots_.epochs.tolist() == [0, 1, 4]
    for resumed, expected in zip(model.snapshots_, undisturbed.snapshots_, strict=True):
        assert np.array_equal(resumed, expected)


def test_a_finished_fit_is_read_not_repeated(blobs, tmp_path, monkeypatch):
    X, _ = blobs
    model = quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path).fit(X)
    monkeypatch.setattr("ddclust.training.setup.Trainer", None)
    assert_same(quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path).fit(X), model)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "garbage", "delete"])
@pytest.mark.parametrize("which", ["newer", "older", "both"])
def test_damaged_checkpoints_are_noticed(blobs, tmp_path, monkeypatch, damage, which):
    X, _ = blobs
    undisturbed = quick(n_init=2, max_iter=20).fit(X)
    model = quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path)
    interrupted_fit(model, X, monkeypatch, 15)
    files = sorted(tmp_path.glob("run-000.*"), key=lambda file: file.stat().st_mtime_ns)
    assert len(files) == 2
    for file in {"older": files[:1], "newer": files[1:], "both": files}[which]:
        content = bytearray(file.read_bytes())
        if damage == "truncate":
            content = content[: len(content) * 2 // 3]
        elif damage == "flip":
            content[len(content) // 2] ^= 1
        elif damage == "empty":
            content = bytearray()
        elif damage == "garbage":
            content = bytearray(b"\x00" * 1000)
        file.unlink() if damage == "delete" else file.write_bytes(content)
    state = RunStore(tmp_path).load(0)
    assert (state is None) == (which == "both")
    assert_same(model.fit(X), undisturbed)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_iter": 21}, "max_iter is 20 there and 21 here"),
        ({"n_init": 3}, "n_init is 2 there and 3 here"),
        ({"callbacks": [Snapshots((0, 5))]}, "the callbacks keep other things"),
        ({"loss": DDCLoss(bandwidth=0.3)}, "bandwidth is 0.15 there and 0.3 here"),
        ({"network": Small}, r"network is \{'Network': .* there and \{'custom': 'helpers.Small'\} here"),
        ({"random_state": 1}, "random_state is another"),
        ({"n_clusters": 2}, "n_clusters is 3 there and 2 here"),
        ({"loss": DDCLoss(weights={"pairs": 3})}, "pairs is 1.0 there and 3.0 here"),
        ({"augment": None}, "neighbors is 10 there and None here"),
    ],
)
def test_other_parameters_are_refused(blobs, tmp_path, change, sentence):
    options = {"n_init": 2, "max_iter": 20, "checkpoint_dir": tmp_path, "loss": DDCLoss()}
    quick(**options).fit(blobs[0])
    with pytest.raises(CheckpointError, match=sentence):
        quick(**{**options, **change}).fit(blobs[0])


def test_other_data_and_versions_are_refused(blobs, tmp_path):
    X, _ = blobs
    model = quick(max_iter=20, checkpoint_dir=tmp_path).fit(X)
    with pytest.raises(CheckpointError, match="the data differ"):
        model.fit(X + 1)
    file = tmp_path / "fit.json"
    identity = json.loads(file.read_text())
    for change, sentence in [
        ({"ddclust": "0.0.1"}, "ddclust is '0.0.1' there"),
        ({"format_version": 7}, "holds checkpoints of format 7, this ddclust reads 2"),
        ({"format": "x"}, "does not describe checkpoints"),
    ]:
        file.write_text(json.dumps(identity))
        edit_json(file, **change)
        with pytest.raises(CheckpointError, match=sentence):
            model.fit(X)
    file.write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON .* delete the folder to start anew"):
        model.fit(X)


def test_what_does_not_change_the_result_may_differ(blobs, tmp_path):
    X, _ = blobs
    first = quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path).fit(X)
    second = quick(n_init=2, max_iter=20, checkpoint_dir=tmp_path, n_jobs=2, n_vote=2, verbose=True).fit(X)
    assert timeless(first) == timeless(second)


def test_chance_seeds_are_remembered(blobs, tmp_path):
    X, _ = blobs
    options = {"n_init": 2, "max_iter": 20, "checkpoint_dir": tmp_path, "random_state": None}
    assert_same(quick(**options).fit(X), quick(**options).fit(X))


def test_a_folder_of_other_things_is_refused(blobs, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(CheckpointError, match="other files"):
        quick(checkpoint_dir=tmp_path).fit(blobs[0])
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_fits_do_not_share_a_folder(blobs, tmp_path):
    model = quick(max_iter=5, checkpoint_dir=tmp_path).fit(blobs[0])
    other = RunStore(tmp_path)
    other._take_lock()
    with pytest.raises(CheckpointError, match="Another fit"):
        model.fit(blobs[0])
    other.release()
    model.fit(blobs[0])


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small file system can be mounted only by root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_an_error_and_loses_nothing(blobs, small_disk, tmp_path, monkeypatch):
    X, _ = blobs
    monkeypatch.setattr("ddclust.training.run.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("ddclust.training.run.CHECKPOINT_SHARE", 1e9)
    options = {"n_init": 2, "max_iter": 30, "network": Small}
    undisturbed = quick(**options).fit(X)
    model = quick(**options, checkpoint_dir=small_disk / "checkpoints")
    real, calls = RunStore.save, {"n": 0}

    def fill_the_disk_later(self, state):
        calls["n"] += 1
        if calls["n"] == 40:
            with pytest.raises(OSError, match="space"), (small_disk / "big").open("wb", buffering=0) as file:
                while True:
                    file.write(b"\x00" * 4096)
        real(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(RunStore, "save", fill_the_disk_later)
        with pytest.raises(OSError, match="No space left on device: the checkpoint of run 2 .* make room"):
            model.fit(X)
    assert RunStore(small_disk / "checkpoints").load(0).record.outcome is Outcome.BUDGET
    (small_disk / "big").unlink()
    assert_same(model.fit(X), undisturbed)


def test_state_survives_the_file_exactly(tmp_path):
    tensors = {"a": torch.randn(3, 4).T, "rng": torch.get_rng_state()}
    plain = {"iteration": 3, "history": [{"loss": 0.1 + 0.2}], "open": {"steps": 2, "x": 1e-17}}
    store = RunStore(tmp_path)
    record = RunRecord(4, seed=9, outcome=Outcome.RUNNING, loss=0.5, losses_at={3: 0.1 + 0.2}, saves=1)
    store.save(RunState(tensors, plain, record))
    state = store.load(4)
    assert all(torch.equal(state.tensors[name], value) for name, value in tensors.items())
    assert state.plain == plain
    assert state.record == record


def tampered(file, change):
    """Change the metadata of a checkpoint, digest included."""
    body = file.read_bytes()[32:]
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    state = json.loads(header["__metadata__"]["state"])
    change(header, state)
    if "__metadata__" in header:
        header["__metadata__"]["state"] = json.dumps(state)
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + body[8 + length :]
    file.write_bytes(hashlib.sha256(body).digest() + body)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, state: header.pop("__metadata__"),
        lambda header, state: state.pop("plain"),
        lambda header, state: state["plain"].pop("iteration"),
        lambda header, state: state["plain"].update(iteration="many"),
        lambda header, state: state["plain"].update(history=[5]),
        lambda header, state: state["record"].update(outcome="lost"),
        lambda header, state: state["record"].update(losses_at={"x": 1}),
        lambda header, state: state["record"].pop("seed"),
        lambda header, state: state["record"].update(loss=None),
        lambda header, state: state["record"].update(loss=None, outcome="waiting"),
        lambda header, state: state["record"].update(outcome="failed"),
        lambda header, state: state["record"].update(outcome="\ud800"),
        lambda header, state: header.pop("rng"),
        lambda header, state: header["rng"].update(shape=[10**12]),
        lambda header, state: header["rng"].update(dtype="Z"),
        lambda header, state: header.update({"module.new": header["rng"]}),
    ],
)
def test_checkpoints_that_hold_something_else_are_refused(blobs, tmp_path, change):
    model = quick(max_iter=5, checkpoint_dir=tmp_path).fit(blobs[0])
    for file in tmp_path.glob("run-*"):
        tampered(file, change)
    with pytest.raises(CheckpointError, match="; delete the folder of the checkpoints to start anew"):
        model.fit(blobs[0])


def test_what_is_shared_by_runs_is_checked(tmp_path):
    store = RunStore(tmp_path)
    store.remembered("neighbors", lambda: np.arange(3))
    (tmp_path / "neighbors").rename(tmp_path / "others")
    with pytest.raises(CheckpointError, match="others' lacks the tensor 'others'; delete the folder"):
        store.remembered("others", lambda: np.arange(3))


def test_checkpoints_take_under_two_percent_by_construction(blobs, tmp_path, monkeypatch):
    """Writing that takes long makes the next checkpoint wait."""
    monkeypatch.setattr("ddclust.training.run.CHECKPOINT_SECONDS", 0.01)
    writes = []
    real = RunStore.save

    def slow(self, state):
        writes.append(time.perf_counter())
        time.sleep(0.02)
        real(self, state)

    monkeypatch.setattr(RunStore, "save", slow)
    start = time.perf_counter()
    quick(max_iter=300, checkpoint_dir=tmp_path).fit(blobs[0])
    during = [w for w in writes if w < writes[-1]]
    assert len(during) <= (time.perf_counter() - start) / (0.02 / 0.02) + 1
