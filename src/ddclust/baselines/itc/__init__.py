"""ITC: hierarchical information theoretic clustering by the Cauchy-Schwarz divergence."""

from ddclust.baselines.itc.estimator import ITC

__all__ = ["ITC"]
