"""
Clusters of very different size
===============================

k-means makes clusters of similar extent and divides the large blob. DDC follows the nearest neighbours of each point, so the sizes of its clusters
follow the data.
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from ddclust import DDC, clustering_accuracy
from ddclust.show import plots

X, truth = make_blobs(
    [900, 60, 40], centers=[[0, 0], [5.5, 4], [6.5, -2.5]], cluster_std=[1.6, 0.4, 0.4], random_state=0
)
kmeans = KMeans(3, n_init=10, random_state=0).fit_predict(X)
ddc = DDC(3, n_init=1, max_iter=300, random_state=0, verbose=False).fit_predict(X)
print("sizes by k-means", np.bincount(kmeans), "and by DDC", np.bincount(ddc))

panels = {"Data": truth}
for name, labels in (("k-means", kmeans), ("DDC", ddc)):
    panels[f"{name}: ACC {clustering_accuracy(truth, labels):.3f}"] = labels
figure = plots.clusterings(X, panels)
