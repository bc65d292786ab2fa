"""
Ring and disc
=============

The paper's first example. k-means takes the nearest centre and cuts the ring in two. DDC follows the neighbours of each point and separates the
ring from the disc.
"""

from sklearn.cluster import KMeans

from ddclust import DDC, clustering_accuracy, load_data
from ddclust.show import plots

circles = load_data("circles")
X, truth = circles.data, circles.target
kmeans = KMeans(2, n_init=10, random_state=0).fit_predict(X)
ddc = DDC(2, n_init=1, max_iter=600, random_state=0, verbose=False).fit_predict(X)

panels = {"Data": truth}
for name, labels in (("k-means", kmeans), ("DDC", ddc)):
    panels[f"{name}: ACC {clustering_accuracy(truth, labels):.3f}"] = labels
figure = plots.clusterings(X, panels)
