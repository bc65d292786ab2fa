"""
How many clusters?
==================

If the number of clusters suits the data, different runs find the same clusters. ``scan`` makes some runs for each number and compares them, without
labels.
"""

from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust.scan import scan
from ddclust.show import plots

X, _ = make_blobs(300, centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=0)
model = DDC(n_init=3, max_iter=80, n_final=None, anchor=None, n_jobs=1, random_state=0, verbose=False)
result = scan(X, range(2, 7), model=model)
print(result.recommendation)
figure = plots.scan(result)
