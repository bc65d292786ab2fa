"""
A tree of clusters
==================

With a number as ``n_final``, many clusters are trained, and the most similar ones are merged. The tree shows in which order, and which clusters would
be merged next, so you can see whether two of them are nearly one.
"""

import numpy as np

from ddclust import DDC, load_data
from ddclust.show import plots

digits = load_data("digits")
vectors = digits.data.reshape(len(digits.data), -1)
model = DDC(16, n_final=10, n_init=1, max_iter=300, random_state=0, verbose=False).fit(vectors)
figure = plots.merge_tree(model)

# %%
# The clusters before merging, with some images of each:

figure = plots.gallery(digits.data, np.eye(16)[model.fine_labels_], n_top=8)
