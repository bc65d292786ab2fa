"""The methods that DDC is compared with, as scikit-learn clusterers. k-means is scikit-learn's own."""

from ddclust.baselines._dec import DEC

__all__ = ["DEC"]
