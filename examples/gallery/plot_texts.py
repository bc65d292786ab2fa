"""
Texts
=====

A list of texts is all that is needed. Here they are the documentation of functions of SciPy, PyTorch and Matplotlib; words become TF-IDF vectors of their stems. The
figure has the words that speak most for each cluster.
"""

import matplotlib.pyplot as plt
import numpy as np

from ddclust import DDC, load_data

manuals = load_data("manuals")
print(f"{len(manuals.data):,} texts, such as {manuals.data[0][:90]!r}")
model = DDC(6, n_init=1, max_iter=150, encoder=None, random_state=0, verbose=False).fit(manuals.data)

# %%
# What a cluster has more of than the others, in the weights of the model's own words:

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
