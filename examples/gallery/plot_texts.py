"""
Texts
=====

All you need is a list of texts. These are the documentation of functions of SciPy, PyTorch and Matplotlib. Each text becomes a TF-IDF vector of its
word stems. The figure shows the words that are most typical of each cluster.
"""

import matplotlib.pyplot as plt
import numpy as np

from ddclust import DDC, load_data

manuals = load_data("manuals")
print(f"{len(manuals.data):,} texts, such as {manuals.data[0][:90]!r}")
model = DDC(6, n_init=1, max_iter=150, encoder=None, random_state=0, verbose=False).fit(manuals.data)

# %%
# The words that have a higher weight in a cluster than in the others:

words = np.array(model.vectorizer_.whole_words(manuals.data))
weights = model.vectorizer_.transform(manuals.data)
figure, axes = plt.subplots(2, 3, figsize=(8.5, 4.4), layout="constrained")
for cluster, axis in enumerate(axes.flat):
    own = model.labels_ == cluster
    gap = (
        np.asarray(weights[own].mean(axis=0) - weights[~own].mean(axis=0)).ravel()
        if own.any()
        else np.zeros(len(words))
    )
    top = gap.argsort()[-7:]
    axis.barh(words[top], gap[top], color="#4477aa")
    axis.set(title=f"cluster {cluster}: {own.sum()} texts", xticks=[])
