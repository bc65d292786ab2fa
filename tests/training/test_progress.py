"""The time that is left, and the bar that shows it."""

import contextlib
import itertools
import os
import re
import select
import subprocess
import sys

import numpy as np
import pytest

from ddclust import DDC, ddc
from ddclust import progress as lines
from ddclust.training.estimate import Estimate
from ddclust.training.progress import TimeLeft
from helpers import quick, setup_of


def test_the_time_left_never_rises_and_ends_at_zero():
    left, rng = TimeLeft(expected=0.1), np.random.default_rng(0)
    paces = itertools.cycle([0.05, 0.4, 0.1])  # of a machine that others use, too
    now, shown = 0.0, []
    for done in range(1, 501):
        now += next(paces) * rng.uniform(0.5, 2)
        shown.append(left.after(now, done=done, total=500))
    assert all(later <= earlier for earlier, later in itertools.pairwise(shown))
    assert shown[0] == pytest.approx(0.1 * 499)
    assert shown[-1] == 0


def test_the_time_left_follows_the_pace():
    left = TimeLeft(expected=5.0)
    for second in range(1, 41):
        shown = left.after(second, done=10 * second, total=500)
    assert shown == pytest.approx(0.1 * 100)


def test_the_time_left_is_known_before_the_first_step():
    assert TimeLeft(expected=0.5).after(3, done=0, total=100) == 50
    unknown = TimeLeft(expected=float("nan"))
    assert unknown.after(0, done=0, total=100) == float("inf")
    unknown.after(1, done=1, total=100)
    assert unknown.after(2, done=2, total=100) == 98


def test_an_estimate_counts_what_trains_at_a_time():
    def seconds(n_workers, **changes):
        return Estimate(setup_of(**changes), n_workers, 0.1).seconds

    assert seconds(1, n_init=3, max_iter=100) == pytest.approx(30)
    assert seconds(1, n_init=8, max_iter=800, halving=True) == pytest.approx(
        0.1 * (8 * 100 + 4 * 100 + 2 * 200 + 400)
    )
    alone, beside = seconds(1, n_init=3, max_iter=1000), seconds(2, n_init=3, max_iter=1000)
    assert beside == pytest.approx(alone * 2 / 3, abs=5)  # and workers have to start


def test_an_estimate_in_words():
    setup = setup_of(n_init=4, max_iter=3500)
    assert str(Estimate(setup, 2, 0.05)) == "4 runs of 3,500 iterations, 2 at a time: about 6 minutes."
    assert str(Estimate(setup, 1, float("nan"))) == "4 runs of 3,500 iterations."
    with_search = Estimate(setup, 2, 0.05, neighbor_seconds=20)
    assert str(with_search).endswith("about 6 minutes; neighbours before that: 20 seconds.")
    assert with_search.seconds == with_search.training_seconds + 20
    encoded = Estimate(setup, 2, 0.05, neighbor_seconds=20, encoding_seconds=240)
    assert str(encoded).endswith("; encoding before that: 4 minutes; neighbours before that: 20 seconds.")
    assert encoded.seconds == with_search.seconds + 240


def test_an_estimate_comes_near(images):
    model = quick(2, max_iter=150)
    expected = model.estimate(images).seconds
    real = model.fit(images).runs_[0]["seconds"]
    assert real / 5 < expected < 5 * real
    assert not hasattr(DDC(2), "setup_")


def test_long_fits_speak_up_where_somebody_looks(blobs, capfd, monkeypatch):
    monkeypatch.setattr(lines, "is_watched", lambda: True)
    assert DDC().verbose == "auto"
    quick(max_iter=20).fit(blobs[0])
    assert capfd.readouterr().err == ""  # too short
    monkeypatch.setattr(ddc, "QUIET_SECONDS", 0.0)
    quick(max_iter=20, neighbors=2).fit(blobs[0])
    first, second, *_ = capfd.readouterr().err.splitlines()
    assert first == "Training 1 run of 20 iterations: about a few seconds."
    assert second == "Each item should share its cluster with one of its 2 nearest neighbours."
    quick(max_iter=20, verbose=False).fit(blobs[0])
    monkeypatch.setattr(lines, "is_watched", lambda: False)
    quick(max_iter=20).fit(blobs[0])
    assert capfd.readouterr().err == ""


def test_announcing_changes_nothing(images):
    silent, loud = (quick(2, max_iter=20, verbose=verbose).fit(images) for verbose in (False, True))
    assert np.array_equal(silent.probabilities_, loud.probabilities_)


@pytest.mark.slow
def test_in_a_terminal_the_time_left_only_falls(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ddclust",
        "fit",
        "circles",
        "-k",
        "2",
        "--runs",
        "4",
        "--max-iter",
        "400",
    ]
    seen = in_terminal([*command, "--no-report", "--out", "run"], tmp_path)
    assert "?" not in seen
    assert "Training 4 runs of 400 iterations" in seen
    left = [60 * int(m) + int(s) for m, s in re.findall(r"(\d+):(\d+) left", seen)]
    assert len(left) > 3
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


def in_terminal(command, folder):
    """What a command writes to a terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the command ends
        while select.select([ours], [], [], 200)[0]:
            part = os.read(ours, 65536)
            if not part:
                break
            seen += part
    os.close(ours)
    assert process.wait(60) == 0, seen.decode()
    return seen.decode()
