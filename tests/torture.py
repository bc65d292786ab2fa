"""Kill a fit with SIGKILL at random moments, again and again, and compare its end with an undisturbed one's.

    python tests/torture.py FOLDER --kills 50 [--jobs 2] [--halving]

Prints a line of JSON. The fits are forked from a process that has imported everything, so that kills hit the training
and the writing of checkpoints rather than imports.
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch
from joblib.externals.loky import get_reusable_executor
from sklearn.datasets import make_blobs

from ddclust import DDC, Selection
from ddclust.training import run as _runs

X, _ = make_blobs(400, centers=3, random_state=0)


def fit(checkpoints, out, n_jobs, halving):
    # A checkpoint at nearly every step, so that many kills fall into the writing of one.
    _runs.CHECKPOINT_SECONDS, _runs.CHECKPOINT_SHARE = 0.0, 1.0
    model = DDC(3, n_init=4, n_vote=3, max_iter=120, learning_rate=1e-3, random_state=0, n_jobs=n_jobs)
    model.set_params(checkpoint_dir=checkpoints, selection=Selection(halving=halving))
    model.fit(X).save(out)


def start(*arguments):
    """The process id of a fit in a session of its own, so that it can be killed with its workers."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    try:
        fit(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    get_reusable_executor().shutdown()  # os._exit leaves its workers, and they would keep our output open
    os._exit(0)


def last_saved(checkpoints):
    """When the latest checkpoint was written."""
    return max((file.stat().st_mtime_ns for file in checkpoints.glob("run-*")), default=0)


def ended(pid):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done and status:
        sys.exit(f"the fit ended with status {status}")
    return bool(done)


def torture(folder, kills, n_jobs, halving, rng):
    """Kill it ``kills`` times, each time after some progress and a random while; then let it end."""
    checkpoints, out = folder / "checkpoints", folder / "resumed"
    done = torn = 0
    while True:
        before = last_saved(checkpoints)
        pid = start(checkpoints, out, n_jobs, halving)
        while done < kills and not ended(pid):
            if last_saved(checkpoints) > before:
                time.sleep(rng.uniform(0, 0.03))
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                done += 1
                torn += any(checkpoints.glob(".*.partial"))
                break
            time.sleep(0.002)
        else:
            if done == kills:
                _, status = os.waitpid(pid, 0)
                return {"kills": done, "in the middle of a write": torn, "status": status}
            return {"kills": done, "in the middle of a write": torn, "status": 0}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--halving", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    undisturbed = start(
        options.folder / "other-checkpoints", options.folder / "undisturbed", 1, options.halving
    )
    os.waitpid(undisturbed, 0)
    result = torture(options.folder, options.kills, options.jobs, options.halving, np.random.default_rng(0))
    first, second = (DDC.load(options.folder / name) for name in ("undisturbed", "resumed"))
    records = [
        [{k: v for k, v in run.items() if k != "seconds"} for run in model.runs_] for model in (first, second)
    ]
    result["same"] = bool(
        np.array_equal(first.probabilities_, second.probabilities_) and records[0] == records[1]
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
