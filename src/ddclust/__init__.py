"""Deep divergence-based clustering: a scikit-learn clusterer, and the functions it is made of."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddclust.ddc import DDC
    from ddclust.objective.losses import DDCLoss

__version__ = version("ddclust")
__all__ = ["DDC", "DDCLoss", "__version__"]

# Loaded when first used, so that the command line answers without waiting for torch.
_LAZY = {"DDC": "ddclust.ddc", "DDCLoss": "ddclust.objective.losses"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ddclust' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
