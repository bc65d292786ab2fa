"""Runs the command line in the tests."""

import re
import sys

from click.testing import CliRunner

from ddclust import DDCLoss
from ddclust.cli.main import main

# One short run in this process.
WITH_REPORT = ("--runs", "1", "--max-iter", "20", "--jobs", "1")
QUICK = (*WITH_REPORT, "--no-report")
# As a user starts it, but with the interpreter of the tests.
PROCESS = (sys.executable, "-m", "ddclust")


def run(*arguments):
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def as_predicted(labels):
    """A labels.csv of a single run as ``predict`` prints it for the same items: without the agreement, which is that of the fit."""
    return re.sub(r"^(.*,\d+,[\d.]+),[\d.]*,", r"\1,,", labels.read_text(), flags=re.MULTILINE)


def set_by_options(model):
    """What --criterion, --balance and --sizes set in a model."""
    loss = DDCLoss() if isinstance(model.loss, str) else model.loss
    return {
        "criterion": model.setup_.criterion,
        "balance": loss.weights.get("orthogonality"),
        "sizes": loss.cluster_sizes,
    }
