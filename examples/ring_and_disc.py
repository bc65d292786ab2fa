"""The paper's synthetic example: k-means cuts the ring in two, DDC separates it from the disc.

python examples/ring_and_disc.py [FIGURE.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

from ddclust import DDC
from ddclust.datasets import load_circles
from ddclust.metrics import align_labels, clustering_accuracy

COLOURS = ["#0072b2", "#e69f00"]  # apart for colour-blind readers and in grey
MARKERS = ["o", "^"]


def draw(axis, X, labels, title):
    for cluster in (0, 1):
        points = X[labels == cluster]
        axis.scatter(*points.T, s=8, c=COLOURS[cluster], marker=MARKERS[cluster], linewidths=0)
    axis.set(aspect="equal", xticks=[], yticks=[])
    axis.set_title(title, fontsize=11, pad=6)


def main(figure="ring_and_disc.png"):
    circles = load_circles()
    X, truth = circles.data, circles.target
    kmeans = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    ddc = DDC(2, n_init=1, max_iter=2000, random_state=0, verbose=True).fit_predict(X)

    canvas, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
    draw(axes[0], X, truth, "Data")
    for axis, name, labels in ((axes[1], "k-means", kmeans), (axes[2], "DDC", ddc)):
        accuracy = clustering_accuracy(truth, labels)
        draw(axis, X, align_labels(truth, labels), f"{name}: ACC {accuracy:.3f}")
        print(f"{name}: ACC {accuracy:.3f}")
    canvas.savefig(figure, dpi=110)
    print(f"Figure: {figure}")


if __name__ == "__main__":
    main(*sys.argv[1:])
