"""
What you know: links
====================

How should four blobs form two clusters: left and right, or above and below? The data do not say. A few links do: pairs of items that should share a
cluster, and pairs that should not.
"""

import numpy as np
from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust.show import plots

X, blob = make_blobs([100] * 4, centers=[[-3, -3], [-3, 3], [3, -3], [3, 3]], cluster_std=0.6, random_state=0)
first = [np.flatnonzero(blob == number)[:5] for number in range(4)]
left, right = np.column_stack(first[:2]), np.column_stack(first[2:])
below, above = np.column_stack(first[::2]), np.column_stack(first[1::2])

model = DDC(2, n_init=1, max_iter=250, random_state=0, verbose=False)
panels = {
    "no links": model.fit_predict(X),
    "left and right": model.fit_predict(X, must_link=np.r_[left, right], cannot_link=np.r_[below, above]),
    "below and above": model.fit_predict(X, must_link=np.r_[below, above], cannot_link=np.r_[left, right]),
}
figure = plots.clusterings(X, panels)
