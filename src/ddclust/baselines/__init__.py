"""The methods that DDC is compared with, as scikit-learn clusterers. k-means is scikit-learn's own."""

from ddclust.baselines._dec import DEC
from ddclust.baselines._itc import ITC
from ddclust.baselines._ldmgi import LDMGI
from ddclust.baselines._sec import SEC

__all__ = ["DEC", "ITC", "LDMGI", "SEC"]
