"""Reference methods that DDC is compared with, as scikit-learn clusterers. k-means is in scikit-learn."""

from ddclust.baselines.dec import DEC
from ddclust.baselines.itc import ITC
from ddclust.baselines.ldmgi import LDMGI
from ddclust.baselines.sec import SEC

__all__ = ["DEC", "ITC", "LDMGI", "SEC"]
