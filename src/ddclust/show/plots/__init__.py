"""Figures, one file each. Every function takes arrays or a fitted model and returns a matplotlib figure.

``figure.savefig("name.png")`` writes it. The global state of matplotlib is not touched. To add a figure, write its
file here and export its function below.
"""

from ddclust.show.plots._clusterings import clusterings
from ddclust.show.plots._explanations import explanations
from ddclust.show.plots._gallery import gallery
from ddclust.show.plots._kernel_matrix import kernel_matrix
from ddclust.show.plots._merge_tree import merge_tree
from ddclust.show.plots._risk_coverage import risk_coverage
from ddclust.show.plots._runs import runs
from ddclust.show.plots._scan import scan
from ddclust.show.plots._simplex import simplex
from ddclust.show.plots._training_curves import snapshot_accuracy, training_curves

__all__ = [
    "clusterings",
    "explanations",
    "gallery",
    "kernel_matrix",
    "merge_tree",
    "risk_coverage",
    "runs",
    "scan",
    "simplex",
    "snapshot_accuracy",
    "training_curves",
]
