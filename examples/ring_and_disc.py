"""The paper's first example: k-means cuts the ring in two, DDC separates it from the disc.

python examples/ring_and_disc.py [FIGURE.png]
"""

import sys

from sklearn.cluster import KMeans

from ddclust import DDC, clustering_accuracy
from ddclust.datasets import load_circles
from ddclust.show import plots


def main(figure="ring_and_disc.png"):
    circles = load_circles()
    X, truth = circles.data, circles.target
    kmeans = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    ddc = DDC(2, n_init=1, max_iter=2000, random_state=0, verbose=True).fit_predict(X)

    panels = {"Data": truth}
    for name, labels in (("k-means", kmeans), ("DDC", ddc)):
        title = f"{name}: ACC {clustering_accuracy(truth, labels):.3f}"
        panels[title] = labels
        print(title)
    plots.clusterings(X, panels).savefig(figure, dpi=110)
    print(f"Figure: {figure}")


if __name__ == "__main__":
    main(*sys.argv[1:])
