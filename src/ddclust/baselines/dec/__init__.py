"""DEC: deep embedded clustering."""

from ddclust.baselines.dec.estimator import DEC

__all__ = ["DEC"]
