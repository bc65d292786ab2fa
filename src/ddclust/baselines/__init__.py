"""The methods that DDC is compared with, as scikit-learn clusterers. k-means is scikit-learn's own."""

from ddclust.baselines._itc import ITC

__all__ = ["ITC"]
