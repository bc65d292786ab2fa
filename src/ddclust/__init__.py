"""Deep divergence-based clustering: a scikit-learn clusterer, and the functions it is made of."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddclust.choosing.consensus import majority_vote
    from ddclust.choosing.metrics import clustering_accuracy, expected_calibration_error, nmi
    from ddclust.choosing.selection import Selection
    from ddclust.data.tables import Table
    from ddclust.datasets import load as load_data
    from ddclust.ddc import DDC
    from ddclust.networks import Network
    from ddclust.objective.augment import Affine, Dropout, Noise, Photo
    from ddclust.objective.kernels import gaussian_kernel
    from ddclust.objective.loss import DDCLoss, ddc_loss
    from ddclust.show.explain import explain
    from ddclust.snapshots import Snapshots
    from ddclust.training.callbacks import Callback
    from ddclust.training.rates import ConstantRate, CosineRate
    from ddclust.training.trainer import EarlyStopping

__version__ = version("ddclust")
__all__ = [
    "DDC",
    "Affine",
    "Callback",
    "ConstantRate",
    "CosineRate",
    "DDCLoss",
    "Dropout",
    "EarlyStopping",
    "Network",
    "Noise",
    "Photo",
    "Selection",
    "Snapshots",
    "Table",
    "__version__",
    "clustering_accuracy",
    "ddc_loss",
    "expected_calibration_error",
    "explain",
    "gaussian_kernel",
    "load_data",
    "majority_vote",
    "nmi",
]

# Loaded when first used, so that the command line answers without waiting for torch.
_HOMES = {
    "choosing.consensus": ("majority_vote",),
    "choosing.metrics": ("clustering_accuracy", "expected_calibration_error", "nmi"),
    "choosing.selection": ("Selection",),
    "data.tables": ("Table",),
    "datasets": ("load_data",),
    "ddc": ("DDC",),
    "networks": ("Network",),
    "objective.augment": ("Affine", "Dropout", "Noise", "Photo"),
    "objective.kernels": ("gaussian_kernel",),
    "objective.loss": ("DDCLoss", "ddc_loss"),
    "show.explain": ("explain",),
    "snapshots": ("Snapshots",),
    "training.callbacks": ("Callback",),
    "training.rates": ("ConstantRate", "CosineRate"),
    "training.trainer": ("EarlyStopping",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"ddclust.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ddclust' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
