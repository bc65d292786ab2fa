"""
The loss in pictures
====================

DDC minimises the sum of three terms, which depend on the soft assignments and on a kernel matrix. Each term asks for something different.

**Divergence** is small if clusters are far apart and the items of each are close together, as measured by the kernel. **Orthogonality** is small if
items are spread over the clusters. **Corners** is small if each item belongs clearly to one cluster.

Here 90 items form three groups. The upper row shows four ways to assign them, with a column for each item; the lower row shows the three terms of each.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_blobs

from ddclust import ddc_loss, gaussian_kernel

X, group = make_blobs([30, 30, 30], centers=[[0, 0], [4, 0], [2, 3.5]], cluster_std=0.6, random_state=0)
X = X[np.argsort(group, kind="stable")]
hidden = torch.from_numpy(X)
right = np.eye(3)[np.repeat([0, 1, 2], 30)]
rng = np.random.default_rng(0)
assignments = {
    "right": 0.94 * right + 0.02,
    "undecided": 0.04 * right + 0.32,
    "all in one": 0.94 * np.eye(3)[np.zeros(90, dtype=int)] + 0.02,
    "at random": 0.94 * np.eye(3)[rng.integers(3, size=90)] + 0.02,
}

# %%
# The kernel matrix of the groups, and the assignments
# ----------------------------------------------------
# The kernel is near 1 for two items of one group, which gives the three bright blocks, and near 0 for others. Its width is a fraction of the median
# distance.

figure, axes = plt.subplots(2, 5, figsize=(11, 4.6), height_ratios=(1, 0.9), layout="constrained")
axes[0, 0].scatter(*X.T, c=np.repeat([0, 1, 2], 30), cmap="viridis", s=8)
axes[0, 0].set(title="items", xticks=[], yticks=[])
axes[1, 0].imshow(gaussian_kernel(hidden), cmap="magma")
axes[1, 0].set(title="kernel matrix", xticks=[], yticks=[])
for place, (title, A) in enumerate(assignments.items(), start=1):
    axes[0, place].imshow(A.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    axes[0, place].set(
        title=title, xticks=[], yticks=[], ylabel="clusters" if place == 1 else "", xlabel="items"
    )
    terms = ddc_loss(hidden, torch.from_numpy(A))
    axes[1, place].bar(
        terms._fields, [float(value) for value in terms], color=["#4477aa", "#ee6677", "#228833"]
    )
    axes[1, place].set(ylim=(0, 1.05), title=f"sum {sum(map(float, terms)):.2f}")
    axes[1, place].tick_params(axis="x", rotation=35)

# %%
# Only the right assignment is low in all three terms. If all items are undecided, all clusters are the same, so divergence and corners are as high as
# possible. If all are in one cluster, orthogonality is high, too. At random, the clusters overlap, which divergence and corners show.

if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=90)
